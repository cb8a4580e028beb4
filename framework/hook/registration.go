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
)

// Hook is one webhook of one owner. Owner, Configuration and Webhook are required
// and have no slash in them.
type Hook struct {
	// Owner is whose Hook it is: the id of a scenario that runs.
	Owner string
	// Configuration is the name of the webhook configuration, Webhook that of the
	// webhook in it.
	Configuration, Webhook string
	// Phase is the kind of the configuration. Required.
	Phase framework.Phase
	// Script is what is answered. The zero value allows everything. It must not be
	// written to after it was handed over.
	Script Script
	// Also is where else the Hook answers, besides its Endpoint. The zero value is
	// nowhere.
	Also Address

	conversion *Conversion // of one made by RegisterConversion
}

// Endpoint is what a webhook's clientConfig needs to reach a Hook.
type Endpoint struct {
	// URL is https://HOST:PORT/OWNER/CONFIGURATION/WEBHOOK. Where a configuration of
	// the other phase has the same name and a webhook of the same name, the phase
	// follows.
	URL string
	// Path is the URL's, for a clientConfig that names a Service.
	Path string
	// Port is the URL's: the port of the place of the Hook's Fault of the connection,
	// see Server.Places.
	Port int
	// CABundle is PEM.
	CABundle []byte
}

// registration is a Hook in its place. Its script and next are guarded by owner.mu.
type registration struct {
	owner  *owner
	hook   Hook // its Script is the one it began with
	path   string
	script Script
	next   int // index of the next reply
}

// Register makes a Hook answer at the Endpoint returned. A Hook with the owner,
// configuration, webhook name and phase of an earlier one takes its place, at the
// same path and from its first reply; the calls recorded stay. An invalid Script is
// an error (see Script.Validate), as are names that are empty or have a slash.
//
// A caller that does not mind the certificate of a Fault of the connection reaches
// the Hook all the same: it is allowed, and the call is recorded.
func (s *Server) Register(h Hook) (Endpoint, error) {
	if err := h.check(); err != nil {
		return Endpoint{}, fmt.Errorf("register hook %s of configuration %s: %w", h.Webhook, h.Configuration, err)
	}
	reached, err := s.place(h.Script.connectionFault())
	if err != nil {
		return Endpoint{}, fmt.Errorf("register hook %s of configuration %s: %w", h.Webhook, h.Configuration, err)
	}
	if h.Also.ServerName != "" {
		if err := s.AddNames(h.Also.ServerName); err != nil {
			return Endpoint{}, fmt.Errorf("register hook %s of configuration %s: %w", h.Webhook, h.Configuration, err)
		}
	}
	path, err := s.enter(h)
	if err != nil {
		return Endpoint{}, fmt.Errorf("register hook %s of configuration %s: %w", h.Webhook, h.Configuration, err)
	}
	address := url.URL{Scheme: "https", Host: net.JoinHostPort(s.host, strconv.Itoa(reached.port)), Path: path}
	return Endpoint{URL: address.String(), Path: path, Port: reached.port, CABundle: slices.Clone(reached.bundle)}, nil
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
	if h.Also != (Address{}) && !strings.HasPrefix(h.Also.Path, "/") {
		problems = append(problems, fmt.Errorf("Also: got path %q, want one that begins with a slash", h.Also.Path)) //nolint:staticcheck // the name of the field
	}
	return errors.Join(append(problems, h.Script.Validate())...)
}

func (h Hook) sameAs(other Hook) bool {
	return h.Configuration == other.Configuration && h.Webhook == other.Webhook && h.Phase == other.Phase
}

// enter puts the Hook into its place and returns its path.
func (s *Server) enter(h Hook) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.owners[h.Owner]
	if of == nil {
		of = newOwner()
		s.owners[h.Owner] = of
	}
	if taken := s.also[h.Also]; taken != nil && taken.owner != of {
		return "", fmt.Errorf("%s is where the hook of another owner answers, %s; take another path", h.Also, taken.path)
	}
	script := Script{Replies: slices.Clone(h.Script.Replies)}
	of.mu.Lock()
	defer of.mu.Unlock()
	for i, earlier := range of.hooks {
		if earlier.hook.sameAs(h) {
			of.hooks[i] = &registration{owner: of, hook: h, path: earlier.path, script: script}
			s.paths[earlier.path] = of.hooks[i]
			s.answerAlso(of)
			return earlier.path, nil
		}
	}
	path := "/" + h.Owner + "/" + h.Configuration + "/" + h.Webhook
	if s.paths[path] != nil {
		path += "/" + string(h.Phase)
	}
	entered := &registration{owner: of, hook: h, path: path, script: script}
	of.hooks = append(of.hooks, entered)
	s.paths[path] = entered
	s.answerAlso(of)
	return path, nil
}

// SetScript gives every Hook of that owner and webhook name another Script, which
// begins with its first reply. Calls that have been received keep the reply they
// have. Nothing is changed when the owner or the webhook is unknown, when the
// Script is invalid, or when it has another Fault of the connection than the one
// before: those belong to the Endpoint, which the caller of the Hook already has.
func (s *Server) SetScript(ownerName, webhook string, script Script) error {
	if err := script.Validate(); err != nil {
		return fmt.Errorf("set script of webhook %s: %w", webhook, err)
	}
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
		if before, after := registered.script.connectionFault(), script.connectionFault(); before != after {
			return fmt.Errorf("fault %q is one of the connection and cannot be swapped in or out; register the hook with it from the start",
				max(before, after))
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("no such webhook is registered%s", orList(webhook, slices.Sorted(maps.Keys(names))))
	}
	for _, registered := range found {
		registered.script, registered.next = script, 0
	}
	return nil
}
