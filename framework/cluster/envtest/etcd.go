package envtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// socketLimit is the limit of the path of a Unix socket, in bytes: that of macOS, which is the
// lowest.
const socketLimit = 103

// startEtcd starts etcd and waits until it is healthy. It returns the URL for clients.
//
// etcd has no authentication here, so it does not listen on a port, where every user of this
// machine could read and write the objects of the API server. It listens on Unix sockets in
// the folder, which only this user can enter.
func (s *Server) startEtcd(ctx context.Context, programs assets.Assets) (string, error) {
	socket := filepath.Join(s.supervision.folder, "etcd.sock")
	if len(socket) > socketLimit {
		return "", fmt.Errorf("start etcd: the path of its socket, %s, has %d bytes, want at most %d: set TMPDIR to a directory with a shorter path",
			socket, len(socket), socketLimit)
	}
	var err error
	s.etcd, err = run("etcd", s.supervision.command(s.supervision.folder, programs.Etcd(),
		"--data-dir="+filepath.Join(s.supervision.folder, "etcd"),
		"--listen-client-urls=unix://"+socket,
		// etcd takes the socket's path from the host of this URL, and not from its path:
		// it is relative to the working directory.
		"--listen-peer-urls=unix://peer.sock",
		// The flag is required with the first one, and has no effect without other members.
		"--advertise-client-urls=http://localhost:2379",
		"--unsafe-no-fsync=true"))
	if err != nil {
		return "", err
	}
	s.etcdClient = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	err = s.etcd.ready(ctx, func(ctx context.Context) error {
		return getOK(ctx, s.etcdClient, "http://etcd/health")
	})
	return "unix://" + socket, err
}

// getOK returns nil if the response to a GET has the status 200.
func getOK(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: got status %s, want 200", url, response.Status)
	}
	return nil
}
