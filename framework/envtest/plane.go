package envtest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/processes"
)

const (
	// startLimit is the limit for the start of the servers.
	startLimit = 3 * time.Minute
	// readyPoll is the time between two questions whether kube-apiserver is ready.
	readyPoll = 25 * time.Millisecond
	// requestLimit is the limit of one such question.
	requestLimit = 5 * time.Second
	// stopLimit is the limit for the servers to end after SIGTERM.
	stopLimit = 20 * time.Second
	// unlimited is for controller-runtime: see startPlane.
	unlimited = time.Duration(math.MaxInt64)
)

// nobody is an address of this machine at which nothing listens.
const nobody, noPort = "127.0.0.1", "0"

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
	etcd.DataDir, etcd.URL = filepath.Join(s.supervision.folder, "etcd-data"), &url.URL{Scheme: "http", Host: nobody + ":" + noPort}
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

// startPlane starts the servers and waits until kube-apiserver is ready. It waits for etcd itself.
//
// Start of controller-runtime asks whether a server is ready without credentials, which kube-apiserver can refuse, and
// by TCP, where etcd does not listen. So it asks where nothing answers, and returns when the server has ended.
func (s *Server) startPlane(ctx context.Context) error {
	plane := &s.Environment.ControlPlane
	plane.APIServer.EtcdURL = plane.Etcd.URL
	plane.APIServer.Address, plane.APIServer.Port = nobody, noPort
	s.begun = true
	go s.run(s.etcd, plane.Etcd.Start)
	go s.run(s.apiServer, plane.APIServer.Start)
	limited, cancel := processes.WithTimeout(ctx, startLimit)
	defer cancel()
	for _, p := range []*process{s.etcd, s.apiServer} {
		select {
		case <-p.started:
		case <-s.ended:
			return s.endedErr
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	plane.APIServer.Port, plane.Etcd.URL = strconv.Itoa(s.port), &url.URL{Scheme: "unix", Path: s.socket()} // users get them
	if err := s.connect(); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return fmt.Errorf("make a client of kube-apiserver: %w", err)
	}
	defer client.CloseIdleConnections()
	var problem error
	err = wait.PollUntilContextCancel(limited, readyPoll, true, func(ctx context.Context) (bool, error) {
		problem = s.ready(ctx, client)
		return problem == nil, s.Err()
	})
	switch {
	case err == nil:
		s.wasReady.Store(true)
		return nil
	case s.Err() != nil:
		return s.Err()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s is not ready after %s: %w; it printed: %s", APIServer, startLimit, problem, s.apiServer.stderr.last())
}

// run starts a server and returns when it has ended.
func (s *Server) run(p *process, start func() error) {
	err := start()
	s.end.Do(func() {
		select {
		case <-p.started:
			err = p.whyEnded(s.wasReady.Load())
		default: // the error of start says why not
		}
		if !s.stopping.Load() {
			s.endedErr = err
		}
		close(s.ended)
	})
	close(p.ended)
}

// ready returns nil if kube-apiserver is healthy and has the namespace default.
func (s *Server) ready(ctx context.Context, client *http.Client) error {
	for _, path := range []string{"/healthz", "/api/v1/namespaces/default"} {
		if err := getOK(ctx, client, s.address()+path); err != nil {
			return err
		}
	}
	return nil
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

// stopPlane ends the servers, and waits for their end. With GOCOVERDIR set they get SIGTERM first.
func (s *Server) stopPlane(coverage bool) error {
	ends := func(ctx context.Context) bool {
		for _, p := range []*process{s.apiServer, s.etcd} {
			select {
			case <-p.ended:
			case <-ctx.Done():
				return false
			}
		}
		return true
	}
	limited, cancel := processes.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	late := false
	if coverage {
		s.supervision.terminate()
		late = !ends(limited)
	}
	s.supervision.cut()
	ends(context.Background())
	if late {
		return fmt.Errorf("stop kube-apiserver and etcd: they did not end in %s, and were killed", stopLimit)
	}
	return nil
}
