package hook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options say where a Server listens. The zero value is a free port of loopback.
type Options struct {
	// Address is the host:port to listen on. Empty means 127.0.0.1:0, a free port.
	Address string
	// AdvertiseHost is the host in the URLs that Register returns: how a caller
	// reaches this process. Empty means the host of Address, which must then be one
	// that can be called (0.0.0.0 cannot).
	AdvertiseHost string
	// Names are further names and addresses that the Server's certificates are valid
	// for: those by which callers reach it in other ways than the URLs. AddNames adds
	// to them.
	Names []string
}

// Server answers and records webhook calls. Use Start to make one. Its methods may
// be called by many goroutines at once.
type Server struct {
	host      string // in URLs
	listener  *net.TCPAddr
	authority *authority
	http      *http.Server
	ended     context.Context //nolint:containedctx // done when Close begins
	end       context.CancelFunc
	closing   sync.Once
	closed    error

	listeners   sync.WaitGroup // goroutines that accept
	connections sync.WaitGroup // connections open, their handlers included
	strays      atomic.Int64

	mu     sync.RWMutex // guards the maps
	owners map[string]*owner
	paths  map[string]*registration
	also   map[Address]*registration

	lazy     sync.Mutex // guards what follows
	shut     bool
	unwatch  func() bool // stops watching the context of Start
	names    []string    // further names of certificates
	places   map[Fault]place
	releases []func() error
}

// place is where a Hook is reached: a port and the CA bundle to trust there.
type place struct {
	port   int
	bundle []byte
	served *atomic.Pointer[tls.Certificate] // nil where nothing is served
}

// Start makes a certificate authority and a serving certificate and listens. The
// Server ends with ctx or with Close, whichever is first. It fails when the address
// cannot be listened on.
func Start(ctx context.Context, options Options) (*Server, error) {
	address := options.Address
	if address == "" {
		address = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("start hook server: address %q: %w; want host:port", address, err)
	}
	if options.AdvertiseHost != "" {
		host = options.AdvertiseHost
	} else if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return nil, fmt.Errorf("start hook server: address %q is not one that callers can reach; set AdvertiseHost", address)
	}
	authority, err := newAuthority("admissiontest hook CA")
	if err != nil {
		return nil, fmt.Errorf("start hook server: %w", err)
	}
	s := &Server{
		host: host, authority: authority,
		owners: map[string]*owner{}, paths: map[string]*registration{},
		also: map[Address]*registration{}, places: map[Fault]place{},
		names: slices.Clone(options.Names),
	}
	s.ended, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.http = s.newHTTP()
	if err := s.listenFirst(ctx, address); err != nil {
		s.end()
		return nil, fmt.Errorf("start hook server: %w", err)
	}
	s.lazy.Lock()
	s.unwatch = context.AfterFunc(ctx, func() { _ = s.Close() })
	s.lazy.Unlock()
	return s, nil
}

func (s *Server) newHTTP() *http.Server {
	server := &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		Protocols:         &http.Protocols{},
		ReadHeaderTimeout: time.Minute,
		// Handshakes fail on purpose here; a log of them would only alarm.
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return s.ended },
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, handshakeKey{}, &handshake{})
		},
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.connections.Add(1)
			case http.StateClosed, http.StateHijacked:
				s.connections.Done()
			}
		},
	}
	server.Protocols.SetHTTP1(true)
	return server
}

// listenFirst opens the listener that every Hook without a connection Fault uses.
func (s *Server) listenFirst(ctx context.Context, address string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	tcp, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return errors.Join(fmt.Errorf("listen on %s: got an address of type %T, want TCP", address, listener.Addr()), listener.Close())
	}
	s.listener = tcp
	certificate, err := s.authority.issue(s.leafOf(NoFault))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.places[NoFault] = place{port: tcp.Port, bundle: s.authority.pem, served: s.serveTLS(listener, certificate)}
	return nil
}

// leafOf is the certificate to serve where the Fault is: but for the Faults that
// say otherwise, one for every name that this Server is called by.
func (s *Server) leafOf(fault Fault) leaf {
	served := leaf{
		hosts:     append([]string{"localhost", "127.0.0.1", "::1", s.host, s.listener.IP.String()}, s.names...),
		notBefore: time.Now().AddDate(0, 0, -1), until: time.Now().AddDate(1, 0, 0),
	}
	switch fault {
	case TLSExpired:
		served.until = time.Now().Add(-time.Hour)
	case TLSWrongName:
		served.hosts = []string{"elsewhere.invalid"}
	}
	return served
}

// serveTLS serves with the certificate, or with the one that takes its place.
func (s *Server) serveTLS(listener net.Listener, certificate tls.Certificate) *atomic.Pointer[tls.Certificate] {
	served := &atomic.Pointer[tls.Certificate]{}
	served.Store(&certificate)
	secured := tls.NewListener(listener, &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return served.Load(), nil },
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if said, ok := hello.Context().Value(handshakeKey{}).(*handshake); ok {
				said.protocols = hello.SupportedProtos
			}
			return nil, nil //nolint:nilnil // this one
		},
		ClientAuth: tls.RequestClientCert, // recorded, not judged
		NextProtos: []string{"http/1.1"},
		MinVersion: tls.VersionTLS12,
	})
	s.listeners.Go(func() { _ = s.http.Serve(secured) }) // always http.ErrServerClosed
	return served
}

// Close ends the Server: what hangs, waits or is delayed is ended, connections are
// closed, and Close returns when the last handler has, Meanwhile functions included
// (one that calls Close itself waits for itself). Further calls do nothing and
// return the same error.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.lazy.Lock()
		s.shut = true
		s.unwatch()
		s.lazy.Unlock()
		s.end()
		err := s.http.Close()
		// A connection accepted while Close ran is known once its listener's
		// goroutine has ended; the second Close takes it.
		s.listeners.Wait()
		err = errors.Join(err, s.http.Close())
		s.connections.Wait()
		for _, release := range s.releases {
			err = errors.Join(err, release())
		}
		if err != nil {
			s.closed = fmt.Errorf("close hook server: %w", err)
		}
	})
	return s.closed
}

// CABundle is the PEM of the authority that signs the Server's certificates.
func (s *Server) CABundle() []byte { return append([]byte(nil), s.authority.pem...) }

// Host is the host in the URLs that Register returns.
func (s *Server) Host() string { return s.host }

// Port is the port at which every Hook without a Fault of the connection is reached.
func (s *Server) Port() int { return s.listener.Port }

// Strays counts the requests that came for a path that nothing is registered at.
func (s *Server) Strays() int { return int(s.strays.Load()) }
