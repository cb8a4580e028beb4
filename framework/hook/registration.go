package hook

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Hook is one webhook of one owner. Owner, Configuration and Webhook are required and
// contain no slash.
type Hook struct {
	// Owner groups Hooks: it is the ID of the scenario that they belong to.
	Owner string
	// Configuration is the name of the webhook configuration, Webhook the name of the
	// webhook in it.
	Configuration, Webhook string
	// Phase is the phase of the configuration. Required.
	Phase framework.Phase
	// Script is what the Hook answers. The zero value allows every request. Do not write
	// to it after Register.
	Script Script
	// Alias is a second way to call the Hook, without the secret. The zero value means that
	// there is none.
	Alias Alias
	// Upstream is the webhook under test to which the Hook forwards its calls. Nil means that the
	// Hook answers itself.
	Upstream *Upstream
	// Tokens are the tokens without which the Hook refuses a call. Nil means that it asks for none.
	Tokens *Tokens
	// Shared is true for a Hook that several owners use. A call belongs to the owner whose ID is in the
	// namespace of the request, in the name of its object or of its user. Without such an ID, it belongs
	// to Owner. All owners share the Script.
	Shared bool

	conversion *Conversion // of RegisterConversion
}

// ClientConfig is what the clientConfig of a webhook needs to call a Hook.
type ClientConfig struct {
	// URL is https://HOST:PORT/SECRET/OWNER/CONFIGURATION/WEBHOOK. The phase follows if a
	// configuration of the other phase has the same name and a webhook of the same name.
	URL string
	// Path is the path of the URL, for a clientConfig with a Service.
	Path string
	// Port is the port of the URL. It depends on the Hook's Fault of the connection: see
	// Server.Listeners.
	Port int
	// CABundle is the certificate authority to trust, in PEM.
	CABundle []byte
}

// registration is a registered Hook. Its script and next are guarded by owner.mu.
type registration struct {
	owner  *owner
	hook   Hook // its Script is the one that it was registered with
	path   string
	script Script
	next   int // index of the next reply
}

// Register adds a Hook and returns how to call it. It replaces an earlier Hook with
// the same owner, configuration, webhook name and phase: the path stays the same, and
// the Script begins with its first reply. The error names a field that is invalid; see
// Script.Validate for the fields of the Script.
//
// A client that ignores the certificate of a TLS Fault can still call the Hook: the
// call is allowed and recorded.
func (s *Server) Register(h Hook) (ClientConfig, error) {
	var opened opened
	var path string
	err := h.check()
	if err == nil {
		opened, err = s.port(h.Script.connectionFault())
	}
	if err == nil {
		path, err = s.add(h)
	}
	if err != nil {
		return ClientConfig{}, fmt.Errorf("register hook %s of configuration %s: %w", h.Webhook, h.Configuration, err)
	}
	return ClientConfig{URL: s.urlOf(opened.number, path), Path: path, Port: opened.number, CABundle: slices.Clone(opened.caBundle)}, nil
}

func (s *Server) urlOf(port int, path string) string {
	address := url.URL{Scheme: "https", Host: net.JoinHostPort(s.host, strconv.Itoa(port)), Path: path}
	return address.String()
}

func (h Hook) check() error {
	var problems []error
	for _, name := range []struct{ field, value string }{
		{"Owner", h.Owner}, {"Configuration", h.Configuration}, {"Webhook", h.Webhook},
	} {
		if name.value == "" || name.value == "." || name.value == ".." || strings.Contains(name.value, "/") {
			problems = append(problems, fmt.Errorf("%s: got %q, want a name without a slash", name.field, name.value))
		}
	}
	if h.Phase != framework.Mutating && h.Phase != framework.Validating {
		problems = append(problems, fmt.Errorf("Phase: got %q, want %q or %q", h.Phase, framework.Mutating, framework.Validating)) //nolint:staticcheck // the name of the field
	}
	if h.Alias != (Alias{}) && !strings.HasPrefix(h.Alias.Path, "/") {
		problems = append(problems, fmt.Errorf("Alias: got path %q, want one that begins with a slash", h.Alias.Path))
	}
	if h.Alias != (Alias{}) && !runid.Has(h.Alias.Path, h.Owner) && !runid.Has(h.Alias.ServerName, h.Owner) {
		problems = append(problems, fmt.Errorf("Alias: got %s, want the owner %s in the server name or in the path, so that other clients cannot guess it: write $(id) in the URL", h.Alias, h.Owner))
	}
	problems = append(problems, h.Upstream.check(), h.Tokens.check()) // Join leaves out what is nil
	return errors.Join(append(problems, h.Script.validate(h.Upstream))...)
}

func (h Hook) sameAs(other Hook) bool {
	return h.Configuration == other.Configuration && h.Webhook == other.Webhook && h.Phase == other.Phase
}

// add adds or replaces the Hook and returns its path.
func (s *Server) add(h Hook) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.ownerOrNew(h.Owner)
	if other := s.aliases[h.Alias]; other != nil && other.owner != of {
		return "", fmt.Errorf("alias %s belongs to a hook of another owner, %s; use another path", h.Alias, other.path)
	}
	script := Script{Replies: slices.Clone(h.Script.Replies)}
	of.mu.Lock()
	defer of.mu.Unlock()
	for i, earlier := range of.hooks {
		if earlier.hook.sameAs(h) {
			of.hooks[i] = &registration{owner: of, hook: h, path: earlier.path, script: script}
			s.paths[earlier.path] = of.hooks[i]
			s.setAliases(of)
			return earlier.path, nil
		}
	}
	path := "/" + s.secret + "/" + h.Owner + "/" + h.Configuration + "/" + h.Webhook
	if s.paths[path] != nil {
		path += "/" + string(h.Phase)
	}
	added := &registration{owner: of, hook: h, path: path, script: script}
	of.hooks = append(of.hooks, added)
	s.paths[path] = added
	s.setAliases(of)
	return path, nil
}

// SetScript replaces the Script of every Hook with that owner and webhook name. The
// new Script begins with its first reply; calls that were received before keep their
// reply. It is an error, and nothing changes, if the owner or the webhook is unknown,
// the Script is invalid, or its Fault of the connection differs from the earlier one:
// that Fault decides about the port, which is part of the ClientConfig.
func (s *Server) SetScript(ownerName, webhook string, script Script) error {
	of := s.owner(ownerName)
	if of == nil {
		return fmt.Errorf("set script of webhook %s: owner %q has no hooks; register one first", webhook, ownerName)
	}
	if err := of.setScript(webhook, Script{Replies: slices.Clone(script.Replies)}); err != nil {
		return fmt.Errorf("set script of webhook %s: %w", webhook, err)
	}
	return nil
}

func (o *owner) setScript(webhook string, script Script) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	names := map[string]bool{}
	var found []*registration
	for _, registered := range o.hooks {
		names[registered.hook.Webhook] = true
		if registered.hook.Webhook != webhook {
			continue
		}
		found = append(found, registered)
		if err := script.validate(registered.hook.Upstream); err != nil {
			return err
		}
		if before, after := registered.script.connectionFault(), script.connectionFault(); before != after {
			return fmt.Errorf("fault %q is a fault of the connection, which a new script cannot add or remove; register the hook with it",
				max(before, after))
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("no such webhook is registered%s", suggestion(webhook, slices.Sorted(maps.Keys(names))))
	}
	for _, registered := range found {
		registered.script, registered.next = script, 0
	}
	return nil
}

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
