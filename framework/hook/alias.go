package hook

import (
	"maps"
	"net/http"

	"github.com/admissiontest/admissiontest/framework"
)

// Alias is a second way to call a Hook: for a clientConfig that a scenario writes
// itself.
//
// A client that knows an Alias can call the Hook. Its ServerName or Path must contain the Owner,
// which other clients cannot guess if it is the ID of a scenario.
//
// If several Hooks of one owner have the same Alias, the one registered last answers.
// Hooks of different owners cannot have the same Alias.
type Alias struct {
	// ServerName is the name in the TLS handshake (SNI). Empty for a call by IP address.
	ServerName string
	// Path is the path of the URL: "/".
	Path string
}

// String returns NAME/PATH.
func (a Alias) String() string { return a.ServerName + a.Path }

// setAliases updates the aliases of an owner's Hooks. The caller holds s.mu and
// owner.mu.
func (s *Server) setAliases(of *owner) {
	maps.DeleteFunc(s.aliases, func(_ Alias, registered *registration) bool { return registered.owner == of })
	for _, registered := range of.hooks {
		if registered.hook.Alias != (Alias{}) {
			s.aliases[registered.hook.Alias] = registered
		}
	}
}

// find returns the Hook that an HTTP request is for, or nil.
func (s *Server) find(r *http.Request) *registration {
	alias := Alias{Path: r.URL.Path}
	if r.TLS != nil {
		alias.ServerName = r.TLS.ServerName
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if registered := s.aliases[alias]; registered != nil {
		return registered
	}
	return s.paths[r.URL.Path]
}

// protocolsKey is the key, in the context of a connection, of the protocols that its client offered in the TLS
// handshake: a *[]string.
type protocolsKey struct{}

// setConnection sets the fields of a call that describe its connection.
func setConnection(r *http.Request, call *framework.Call) {
	call.Connection = r.RemoteAddr
	if offered, ok := r.Context().Value(protocolsKey{}).(*[]string); ok {
		call.Protocols = *offered
	}
	if r.TLS == nil {
		return
	}
	call.ServerName = r.TLS.ServerName
	if certificates := r.TLS.PeerCertificates; len(certificates) > 0 {
		call.ClientCertificate = certificates[0].Subject.String()
	}
}
