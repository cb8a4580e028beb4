package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// Listener is one port of a Server.
type Listener struct {
	// Fault is the Fault of the connection at this port, or NoFault.
	Fault Fault
	// Port is the port, as in ClientConfig.Port.
	Port int
	// Address is the host:port at which this process itself reaches the port.
	Address string
}

// Listeners opens a port for NoFault and for each Fault of the connection, whether a
// Hook uses it or not, and returns them in the order of Faults, NoFault first. They
// stay the same until Close.
func (s *Server) Listeners() ([]Listener, error) {
	host := s.listener.IP
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
		if s.listener.IP.To4() == nil {
			host = net.IPv6loopback
		}
	}
	var all []Listener
	for _, fault := range append([]Fault{NoFault}, Faults()...) {
		if fault != NoFault && !fault.OfConnection() {
			continue
		}
		found, err := s.port(fault)
		if err != nil {
			return nil, err
		}
		address := net.TCPAddr{IP: host, Port: found.number, Zone: s.listener.Zone}
		all = append(all, Listener{Fault: fault, Port: found.number, Address: address.String()})
	}
	return all, nil
}

// AddNames makes the certificates of the Server valid for more names and IP addresses, for connections that begin after it
// returned. They are valid for the name in the TLS handshake in any case. The TLS Faults do not change.
func (s *Server) AddNames(names ...string) {
	s.portsMu.Lock()
	defer s.portsMu.Unlock()
	s.names = append(s.names, names...)
}

// port returns the port for a Fault, and opens it the first time.
func (s *Server) port(fault Fault) (opened, error) {
	s.portsMu.Lock()
	defer s.portsMu.Unlock()
	if s.shut {
		return opened{}, errors.New("the hook server is closed")
	}
	if !fault.OfConnection() {
		fault = NoFault
	}
	if found, ok := s.ports[fault]; ok {
		return found, nil
	}
	made, err := s.open(fault)
	if err != nil {
		return opened{}, fmt.Errorf("open a port for fault %q: %w", fault, err)
	}
	s.ports[fault] = made
	return made, nil
}

func (s *Server) open(fault Fault) (opened, error) {
	made := opened{caBundle: s.authority.pem}
	switch fault {
	case Refused:
		number, release, err := processes.ReservePort(s.listener.IP)
		if err != nil {
			return opened{}, err
		}
		s.releases = append(s.releases, release)
		made.number = number
		return made, nil
	case TLSWrongCA:
		other, err := newAuthority("admissiontest other CA")
		if err != nil {
			return opened{}, err
		}
		made.caBundle = other.pem
	}
	at := net.TCPAddr{IP: s.listener.IP, Zone: s.listener.Zone}
	listener, err := s.limit.Listen(s.ended, at.String())
	if err != nil {
		return opened{}, err
	}
	made.number = listener.Addr().(*net.TCPAddr).Port
	if fault == TLSHang {
		s.listeners.Go(func() { s.hang(listener) })
		return made, nil
	}
	s.serveTLS(listener, fault)
	return made, nil
}

// hang accepts connections and reads from them, without an answer, until the Server
// is closed.
func (s *Server) hang(listener net.Listener) {
	defer context.AfterFunc(s.ended, func() { _ = listener.Close() })()
	for {
		connection, err := listener.Accept()
		if err != nil {
			_ = listener.Close()
			return
		}
		s.listeners.Go(func() {
			defer context.AfterFunc(s.ended, func() { _ = connection.Close() })()
			_, _ = io.Copy(io.Discard, connection) // it returns when the client disconnects
			_ = connection.Close()
		})
	}
}
