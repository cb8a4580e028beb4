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
	"sync"
	"sync/atomic"
	"time"

	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/redact"
)

// Options configure a Server. The zero value listens on a free port of the loopback
// interface.
type Options struct {
	// Address is the host:port to listen on. Empty means 127.0.0.1:0, a free port.
	Address string
	// AdvertiseHost is the host in the URLs that Register returns. Empty means the host of
	// Address, which then cannot be an unspecified address such as 0.0.0.0.
	AdvertiseHost string
}

// Limits of connections, besides their number. A client that is not an API server must not use up
// the memory or the connections of the Server.
const (
	// headerTimeout, readTimeout and idleTimeout limit the time for the header of a request,
	// for the whole request, and between two requests.
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	idleTimeout   = 3 * time.Minute
	maxHeader     = 64 << 10
)

// Server answers and records webhook calls. Start creates one. Its methods can be
// called by several goroutines at the same time.
//
// The path of each Hook begins with a secret of 130 bits, which only its ClientConfig
// has. Requests without it are counted, not recorded. The number of connections is limited. See Strangers.
type Server struct {
	host      string // in URLs
	secret    string // the first part of paths: lower case, as the path of a Service must be
	listener  *net.TCPAddr
	authority *authority
	http      *http.Server
	ended     context.Context //nolint:containedctx // done when Close begins
	end       context.CancelFunc
	closing   sync.Once
	closed    error

	listeners   sync.WaitGroup // goroutines that accept
	connections sync.WaitGroup // connections open, their handlers included
	proxies     proxies
	limit       *processes.Limit
	foreign     atomic.Int64

	mu      sync.RWMutex // guards the maps
	owners  map[string]*owner
	paths   map[string]*registration
	aliases map[Alias]*registration

	portsMu  sync.Mutex // guards the fields below
	shut     bool
	unwatch  func() bool // stops watching the context of Start
	names    []string    // more names for the certificates
	ports    map[Fault]opened
	releases []func() error
}

// opened is an open port and the CA bundle to trust there.
type opened struct {
	number   int
	caBundle []byte
}

// Start creates a certificate authority and a serving certificate, and listens. The
// Server ends with ctx or with Close. It is an error if it cannot listen on the
// address.
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
		return nil, fmt.Errorf("start hook server: address %q cannot be called; set AdvertiseHost", address)
	}
	authority, err := newAuthority("admissiontest hook CA")
	if err != nil {
		return nil, fmt.Errorf("start hook server: %w", err)
	}
	s := &Server{
		host: host, secret: redact.NewPathSecret(), authority: authority, limit: processes.NewLimit(processes.MostConnections),
		owners: map[string]*owner{}, paths: map[string]*registration{},
		aliases: map[Alias]*registration{}, ports: map[Fault]opened{}, proxies: proxies{byKey: map[string]*http.Transport{}},
	}
	s.ended, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.http = s.newHTTP()
	if err := s.listenFirst(ctx, address); err != nil {
		s.end()
		return nil, fmt.Errorf("start hook server: %w", err)
	}
	s.portsMu.Lock()
	s.unwatch = context.AfterFunc(ctx, func() { _ = s.Close() })
	s.portsMu.Unlock()
	return s, nil
}

func (s *Server) newHTTP() *http.Server {
	server := &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		Protocols:         &http.Protocols{},
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// Handshakes fail on purpose here. Do not log them.
		ErrorLog:    log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return s.ended },
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, protocolsKey{}, new([]string))
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
	listener, err := s.limit.Listen(ctx, address)
	if err != nil {
		return err
	}
	s.listener = listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // a Limit only has TCP
	s.serveTLS(listener, NoFault)
	s.ports[NoFault] = opened{number: s.listener.Port, caBundle: s.authority.pem}
	return nil
}

// leafFor returns the certificate to serve for a Fault. Unless the Fault is about the
// certificate, it is valid for every name by which this Server is called, and for the name in the TLS handshake.
func (s *Server) leafFor(fault Fault, called string) leaf {
	s.portsMu.Lock()
	defer s.portsMu.Unlock()
	served := leaf{
		hosts:     append([]string{"localhost", "127.0.0.1", "::1", s.host, s.listener.IP.String(), called}, s.names...),
		notBefore: time.Now().AddDate(0, 0, -1), notAfter: time.Now().AddDate(1, 0, 0),
	}
	switch fault {
	case TLSExpired:
		served.notAfter = time.Now().Add(-time.Hour)
	case TLSWrongName:
		served.hosts = []string{"elsewhere.invalid"}
	}
	return served
}

// serveTLS serves with a certificate for each connection.
func (s *Server) serveTLS(listener net.Listener, fault Fault) {
	secured := tls.NewListener(listener, &tls.Config{
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.authority.issue(s.leafFor(fault, hello.ServerName))
		},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if offered, ok := hello.Context().Value(protocolsKey{}).(*[]string); ok {
				*offered = hello.SupportedProtos
			}
			return nil, nil //nolint:nilnil // nil means this tls.Config
		},
		ClientAuth: tls.RequestClientCert, // recorded, not verified
		NextProtos: []string{"http/1.1"},
		MinVersion: tls.VersionTLS12,
	})
	s.listeners.Go(func() { _ = s.http.Serve(secured) }) // always http.ErrServerClosed
}

// Close ends the Server. It ends calls that hang or wait, closes the connections, and
// returns when the last handler has returned, Meanwhile functions included. (A
// Meanwhile function that calls Close waits forever.) Further calls do nothing and
// return the same error.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.portsMu.Lock()
		s.shut = true
		s.unwatch()
		s.portsMu.Unlock()
		s.end()
		err := s.http.Close()
		// A connection that was accepted while Close ran is known once the goroutine of its
		// listener has ended. The second Close closes it.
		s.listeners.Wait()
		err = errors.Join(err, s.http.Close())
		s.connections.Wait()
		s.proxies.close()
		for _, release := range s.releases {
			err = errors.Join(err, release())
		}
		if err != nil {
			s.closed = fmt.Errorf("close hook server: %w", err)
		}
	})
	return s.closed
}

// Strangers counts what clients did to a Server that are no API server.
type Strangers struct {
	// Requests had neither the secret nor the path of an Alias. The Server rejected them. (Late calls of
	// an Alias that was unregistered count too.)
	Requests int
	// Lost is how often connections had to wait because there were too many. If the number grew during a webhook
	// call, a failure of the call says nothing.
	Lost int
}

// Strangers returns what other clients did until now.
func (s *Server) Strangers() Strangers {
	return Strangers{Requests: int(s.foreign.Load()), Lost: s.limit.Full()}
}
