package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
)

// Place is one port of a Server.
type Place struct {
	// Fault is the Fault of the connection that callers meet there, or NoFault.
	Fault Fault
	// Port is the port, as in Endpoint.Port.
	Port int
	// Address is the host:port at which this process itself reaches it.
	Address string
}

// Places opens a port for NoFault and for each Fault of the connection, those that
// no Hook has used yet included, and returns them in the order of Faults, NoFault
// first. They stay the same until Close. Where the system has no port to offer
// that refuses connections, Refused is left out.
func (s *Server) Places() ([]Place, error) {
	host := s.listener.IP
	if host.IsUnspecified() {
		host = net.IPv4(127, 0, 0, 1)
		if s.listener.IP.To4() == nil {
			host = net.IPv6loopback
		}
	}
	var all []Place
	for _, fault := range append([]Fault{NoFault}, Faults()...) {
		if fault != NoFault && !fault.OfConnection() {
			continue
		}
		found, err := s.place(fault)
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			return nil, err
		}
		address := net.TCPAddr{IP: host, Port: found.port, Zone: s.listener.Zone}
		all = append(all, Place{Fault: fault, Port: found.port, Address: address.String()})
	}
	return all, nil
}

// AddNames makes the Server's certificates valid for further names and addresses,
// as Options.Names does: connections that begin when it has returned see them. The
// Faults of TLS stay what they are.
func (s *Server) AddNames(names ...string) error {
	s.lazy.Lock()
	defer s.lazy.Unlock()
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(s.names, name) })
	if len(names) == 0 {
		return nil
	}
	s.names = append(s.names, names...)
	for fault, opened := range s.places {
		if opened.served == nil {
			continue
		}
		certificate, err := s.authority.issue(s.leafOf(fault))
		if err != nil {
			return fmt.Errorf("add names %v: %w", names, err)
		}
		opened.served.Store(&certificate)
	}
	return nil
}

// place finds where a Hook with the Fault is reached, and opens it the first time.
func (s *Server) place(fault Fault) (place, error) {
	s.lazy.Lock()
	defer s.lazy.Unlock()
	if s.shut {
		return place{}, errors.New("the hook server is closed")
	}
	if !fault.OfConnection() {
		fault = NoFault
	}
	if found, ok := s.places[fault]; ok {
		return found, nil
	}
	opened, err := s.open(fault)
	if err != nil {
		return place{}, fmt.Errorf("open a place for fault %q: %w", fault, err)
	}
	s.places[fault] = opened
	return opened, nil
}

func (s *Server) open(fault Fault) (place, error) {
	opened := place{bundle: s.authority.pem}
	switch fault {
	case Refused:
		port, release, err := holdPort(s.listener.IP)
		if err != nil {
			return place{}, err
		}
		s.releases = append(s.releases, release)
		opened.port = port
		return opened, nil
	case TLSWrongCA:
		other, err := newAuthority("admissiontest other CA")
		if err != nil {
			return place{}, err
		}
		opened.bundle = other.pem
	}
	certificate, err := s.authority.issue(s.leafOf(fault))
	if err != nil {
		return place{}, err
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: s.listener.IP, Zone: s.listener.Zone})
	if err != nil {
		return place{}, fmt.Errorf("listen: %w", err)
	}
	opened.port = listener.Addr().(*net.TCPAddr).Port
	if fault == TLSHang {
		s.listeners.Go(func() { s.hang(listener) })
		return opened, nil
	}
	opened.served = s.serveTLS(listener, certificate)
	return opened, nil
}

// hang accepts connections and reads what comes, without an answer, until the
// Server is closed.
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
			_, _ = io.Copy(io.Discard, connection) // it ends when the caller gives up
			_ = connection.Close()
		})
	}
}
