package envtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/processes"
)

const (
	// startLimit is the limit for the start of the servers.
	startLimit = time.Minute
	// stopLimit is the limit for the servers to end after a signal.
	stopLimit = 20 * time.Second
	// unlimited is for controller-runtime, whose limits do not leave out pauses of this process.
	unlimited = time.Duration(math.MaxInt64)
)

// socketLimit is the limit of the path of a Unix socket, in bytes: that of macOS, which is the
// lowest.
const socketLimit = 103

// configureEtcd sets the flags of etcd.
//
// etcd has no authentication here, so it does not listen on a port, where every user of this
// machine could read and write the objects of the API server. It listens on Unix sockets in
// the folder, which only this user can enter.
func (s *Server) configureEtcd(etcd *envtest.Etcd, programs binaries.Assets) (err error) {
	if len(s.socket()) > socketLimit {
		return fmt.Errorf("start etcd: the path of its socket, %s, has %d bytes, want at most %d: set TMPDIR to a directory with a shorter path",
			s.socket(), len(s.socket()), socketLimit)
	}
	etcd.DataDir = filepath.Join(s.supervision.folder, "etcd-data")
	etcd.Configure().
		Set("listen-client-urls", "unix://"+s.socket()).
		// etcd takes the socket's path from the host of this URL, and not from its path:
		// it is relative to the working directory.
		Set("listen-peer-urls", "unix://peer.sock").
		// The flag is required with the first one, and has no effect without other members.
		Set("advertise-client-urls", "http://localhost:2379").
		Set("unsafe-no-fsync", "true")
	etcd.Path, err = s.supervision.wrap(program{name: "etcd", path: programs.Etcd(), dir: s.supervision.folder})
	return err
}

// socket is the path of the socket of etcd.
func (s *Server) socket() string { return filepath.Join(s.supervision.folder, "etcd.sock") }

// etcdGate opens the gate of etcd.
func (s *Server) etcdGate() (*gate, error) {
	s.etcdClient = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket())
	}}}
	return openGate(nil, func(ctx context.Context) error {
		return getOK(ctx, s.etcdClient, "http://etcd/health")
	}, func() { s.Environment.ControlPlane.Etcd.URL = &url.URL{Scheme: "unix", Path: s.socket()} })
}

// startPlane starts the servers and waits until they are ready. controller-runtime's start knows no context, but it
// ends when a server ends.
func (s *Server) startPlane(ctx context.Context) error {
	etcd, err := s.etcdGate()
	if err != nil {
		return err
	}
	defer etcd.close()
	apiServer, err := s.apiServerGate()
	if err != nil {
		return err
	}
	defer apiServer.close()
	plane := &s.Environment.ControlPlane
	plane.Etcd.URL = &url.URL{Scheme: "http", Host: etcd.address.String()}
	plane.APIServer.Address, plane.APIServer.Port = etcd.address.IP.String(), strconv.Itoa(apiServer.address.Port)
	limited, cancel := processes.WithTimeout(ctx, startLimit)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- plane.Start() }()
	select {
	case err = <-started:
	case <-s.ended:
		s.supervision.cut()
		err = <-started
	case <-limited.Done():
		s.stopping.Store(true)
		s.supervision.cut()
		<-started //nolint:errcheck // it says that a server ended
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		late, at := s.etcd, etcd
		if etcd.problem() == nil {
			late, at = s.apiServer, apiServer
		}
		return fmt.Errorf("%s is not ready after %s: %w; it printed: %s", late.name, startLimit, at.problem(), late.stderr.last())
	}
	if ended := s.Err(); err != nil && ended != nil {
		return ended // err only says that a server is not ready
	}
	if err != nil {
		return err
	}
	s.wasReady.Store(true)
	return nil
}

// stopPlane waits for the end of the servers, after SIGTERM. If they do not end in time, the error says so, and
// they are killed.
func (s *Server) stopPlane() error {
	stopped := make(chan error, 1)
	go func() {
		plane := &s.Environment.ControlPlane
		var errs []error
		for _, server := range []interface{ Stop() error }{plane.APIServer, plane.Etcd} {
			if err := server.Stop(); !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) { // it was just killed
				errs = append(errs, err)
			}
		}
		stopped <- errors.Join(errs...)
	}()
	limited, cancel := processes.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	select {
	case err := <-stopped:
		return err
	case <-limited.Done():
		s.supervision.cut()
		return errors.Join(fmt.Errorf("stop kube-apiserver and etcd: they did not end in %s, and were killed", stopLimit), <-stopped)
	}
}
