package hook

import (
	"maps"
	"net/http"

	"github.com/admissiontest/admissiontest/framework"
)

// Address is where a caller of its own making reaches a Hook: a name by which it
// calls the Server, for which the certificates become valid, and a path.
//
// Of several Hooks of one owner with the same Address the last one answers. No two
// owners have the same.
type Address struct {
	// ServerName is the name in TLS (SNI). Empty is none: callers by address.
	ServerName string
	// Path is that of the URL, "/" for instance.
	Path string
}

// String is NAME/PATH.
func (a Address) String() string { return a.ServerName + a.Path }

// answerAlso notes where else the Hooks of an owner answer. The caller has the locks
// of both.
func (s *Server) answerAlso(of *owner) {
	maps.DeleteFunc(s.also, func(_ Address, registered *registration) bool { return registered.owner == of })
	for _, registered := range of.hooks {
		if registered.hook.Also != (Address{}) {
			s.also[registered.hook.Also] = registered
		}
	}
}

// addressed returns the Hook that an HTTP request is for, or nil.
func (s *Server) addressed(r *http.Request) *registration {
	at := Address{Path: r.URL.Path}
	if r.TLS != nil {
		at.ServerName = r.TLS.ServerName
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if registered := s.also[at]; registered != nil {
		return registered
	}
	return s.paths[r.URL.Path]
}

// handshake is what a caller said when it connected, kept in the context of the
// connection.
type handshake struct{ protocols []string }

type handshakeKey struct{}

// describeConnection notes by which connection a call came.
func describeConnection(r *http.Request, call *framework.Call) {
	call.Connection = r.RemoteAddr
	if said, ok := r.Context().Value(handshakeKey{}).(*handshake); ok {
		call.Protocols = said.protocols
	}
	if r.TLS == nil {
		return
	}
	call.ServerName = r.TLS.ServerName
	if presented := r.TLS.PeerCertificates; len(presented) > 0 {
		call.ClientCertificate = presented[0].Subject.String()
	}
}
