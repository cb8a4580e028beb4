// Command kine is kine with the command line of etcd, so that package envtest of controller-runtime starts it in etcd's
// stead: kube-apiserver then stores its objects in SQLite. Package servers builds it under the name etcd.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/k3s-io/kine/pkg/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kine:", err)
		os.Exit(1)
	}
}

// run serves until the context ends. Only two flags of etcd matter; the others are left out.
func run(ctx context.Context, args []string) error {
	if slices.Contains(args, "--version") {
		fmt.Println("etcd Version: 3.6.0 (kine)")
		return nil
	}
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	address := flags.String("listen-client-urls", "", "where clients connect")
	dir := flags.String("data-dir", "", "the folder of the data")
	if err := flags.Parse(slices.DeleteFunc(args, func(arg string) bool {
		return !strings.HasPrefix(arg, "--listen-client-urls=") && !strings.HasPrefix(arg, "--data-dir=")
	})); err != nil {
		return err
	}
	at, err := url.Parse(*address)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*dir, 0o700); err != nil {
		return err
	}
	socket := filepath.Join(*dir, "kine.sock")
	ended := make(chan error, 1)
	go func() {
		ended <- app.New().RunContext(ctx, []string{
			"kine", "--listen-address", "unix://" + socket, "--endpoint", "sqlite://" + filepath.Join(*dir, "kine.db") + "?_journal=WAL&cache=shared&_busy_timeout=30000", "--metrics-bind-address", "0",
		})
	}()
	for { // before /health says that it is ready
		if _, err := os.Stat(socket); err == nil {
			break
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
	network, on := "tcp", at.Host
	if at.Scheme == "unix" {
		network, on = "unix", filepath.Join(at.Host, at.Path)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, on)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go serve(connection, socket)
	}
}

// serve gives a connection of HTTP/2 to kine, which does not know etcd's /health, and answers each other one.
func serve(connection net.Conn, socket string) {
	defer func() { _ = connection.Close() }()
	reader := bufio.NewReader(connection)
	const preface = "PRI" // of HTTP/2
	if begin, err := reader.Peek(len(preface)); err != nil || string(begin) != preface {
		_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 17\r\nConnection: close\r\n\r\n{\"health\":\"true\"}")
		return
	}
	kine, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = kine.Close() }()
	go func() {
		_, _ = io.Copy(kine, reader)
		_ = kine.Close()
	}()
	_, _ = io.Copy(connection, kine)
}
