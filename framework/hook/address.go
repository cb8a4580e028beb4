package hook

import "strings"

// Address is how an API server reaches the Hooks that have no Fault of the connection.
type Address struct {
	// Host is a name or an IP address.
	Host string
	// Port is a TCP port.
	Port int
	// CABundle is the certificate authority to trust, in PEM.
	CABundle []byte
}

// URLHost returns Host as it is written in a URL: an IPv6 address in brackets.
func (a Address) URLHost() string {
	if strings.Contains(a.Host, ":") {
		return "[" + a.Host + "]"
	}
	return a.Host
}

// Address returns the address in the URLs of Hooks without a Fault of the connection.
func (s *Server) Address() Address {
	return Address{Host: s.host, Port: s.listener.Port, CABundle: append([]byte(nil), s.authority.pem...)}
}
