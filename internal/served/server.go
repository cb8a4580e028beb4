package served

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
	"github.com/admissiontest/admissiontest/internal/port"
	"github.com/admissiontest/admissiontest/internal/target"
)

// restoreLimit limits the time between two runs.
const restoreLimit = time.Minute

var (
	// ErrInUse means: another run uses the server.
	ErrInUse = errors.New("another run uses the server")
	// errEnding means: the server ends.
	errEnding = errors.New("the server ends")
)

// Options configure a Server. Assets and Profile are required.
type Options struct {
	// Assets are the programs.
	Assets assets.Assets
	// Profile returns the profile of the API server. It calls Hooks by name at a port.
	Profile func(hookPort int) envtest.Profile
}

// Server is an API server that one Session at a time uses. Its methods can be called by several
// goroutines at the same time.
type Server struct {
	api         *envtest.Server
	binaries    assets.Assets
	hookPort    int
	releasePort func() error
	// changed receives a value when a Session begins or ends, or the server fails.
	changed chan struct{}

	mu       sync.Mutex
	user     user
	used     bool
	left     chan struct{} // closed when the Session ends
	ending   bool
	broken   error         // why the server cannot be used again
	restored chan struct{} // closed when what the last Session changed is undone, or broken is set
}

// user is the process of a Session.
type user struct {
	// deliver receives its audit events. Nil if there is no Session.
	deliver func(eventList []byte)
	// alive is false if the process was killed, and the Session ends soon.
	alive func() bool
}

// Session is the use of an API server by one run.
type Session struct {
	// Config reaches the API server, KubeConfig is the same as the content of a kubeconfig file.
	Config     *rest.Config
	KubeConfig []byte
	// HookPort is the port of the loopback address at which the API server presents credentials to
	// Hooks. It is reserved: package port listens on it.
	HookPort int
	// ObservesPlugins is true if the API server records the calls of its admission plugins.
	ObservesPlugins bool
	// Plugins are the names of the admission plugins that were compiled into the API server in
	// addition to its own.
	Plugins []string
	// Audit has the audit events of the Session.
	Audit *envtest.Audit

	server target.Ending
	end    func()
}

// Ended returns a channel that is closed when the API server ends, or the Session.
func (s *Session) Ended() <-chan struct{} { return s.server.Ended() }

// Err returns why the API server ended by itself, or nil.
func (s *Session) Err() error { return s.server.Err() }

// Close ends the Session. It does not wait until everything that was written is undone.
func (s *Session) Close() { s.end() }

// Start starts an API server. It records the calls of its admission plugins if it can.
func Start(ctx context.Context, options Options) (*Server, error) {
	number, release, err := port.Reserve()
	if err != nil {
		return nil, err
	}
	api, err := envtest.Start(ctx, envtest.Options{
		Assets: options.Assets, Profile: options.Profile(number), ObservePlugins: options.Assets.ObservesPlugins,
	})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	s := &Server{
		api: api, binaries: options.Assets, hookPort: number, releasePort: release,
		changed: make(chan struct{}, 1), restored: make(chan struct{}),
	}
	close(s.restored)
	api.Audit.Forward(s.forward)
	return s, nil
}

// forward passes audit events to the Session. Those of other clients are dropped.
func (s *Server) forward(eventList []byte) {
	s.mu.Lock()
	deliver := s.user.deliver
	s.mu.Unlock()
	if deliver != nil {
		deliver(eventList)
	}
}

// Use begins a Session, after what the last one left is removed. The error is an ErrInUse if there is
// a Session.
func (s *Server) Use(ctx context.Context) (*Session, error) {
	audit := &envtest.Audit{}
	session, err := s.use(ctx, user{
		deliver: func(eventList []byte) { _ = audit.Add(eventList) }, // the API server wrote it
		alive:   func() bool { return true },
	})
	if err != nil {
		return nil, err
	}
	session.Audit = audit
	return session, nil
}

// use begins a Session of a process.
func (s *Server) use(ctx context.Context, by user) (*Session, error) {
	restored, err := s.enter(ctx, by)
	if err != nil {
		return nil, err
	}
	s.notify()
	before, err := s.ready(ctx, restored)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used, s.user = false, user{}
		close(s.left)
		return nil, err
	}
	return &Session{
		Config: s.api.Config, KubeConfig: s.api.KubeConfig, HookPort: s.hookPort,
		ObservesPlugins: s.binaries.ObservesPlugins, Plugins: s.binaries.Plugins, server: s.api,
		end: sync.OnceFunc(func() { s.leave(before) }),
	}, nil
}

// enter makes a process the user of the server. It returns a channel that is closed when what the last
// Session changed is undone.
func (s *Server) enter(ctx context.Context, by user) (<-chan struct{}, error) {
	for {
		s.mu.Lock()
		other, left := s.user, s.left
		switch {
		case s.ending:
			s.mu.Unlock()
			return nil, errEnding
		case !s.used:
			s.used, s.user, s.left = true, by, make(chan struct{})
			restored := s.restored
			s.mu.Unlock()
			return restored, nil
		}
		s.mu.Unlock()
		if other.alive() {
			return nil, ErrInUse
		}
		select {
		case <-left:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ready waits until what the last Session left is removed, and returns what is stored.
func (s *Server) ready(ctx context.Context, restored <-chan struct{}) (*envtest.State, error) {
	select {
	case <-restored:
	case <-s.api.Ended():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := cmp.Or(s.api.Err(), s.failed()); err != nil {
		return nil, err
	}
	return s.api.State(ctx)
}

// failed returns why the server cannot be used again, or nil.
func (s *Server) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// leave ends a Session. What it changed is undone in the background.
func (s *Server) leave(before *envtest.State) {
	restored := make(chan struct{})
	s.mu.Lock()
	s.used, s.user, s.restored = false, user{}, restored
	close(s.left)
	s.mu.Unlock()
	s.notify()
	go func() {
		defer close(restored)
		ctx, cancel := context.WithTimeout(context.Background(), restoreLimit)
		defer cancel()
		err := target.WhileRuns(ctx, s.api, func(ctx context.Context) error { return s.restore(ctx, before) })
		if err != nil {
			s.mu.Lock()
			s.broken = fmt.Errorf("undo what a run changed: %w", err)
			s.mu.Unlock()
			s.notify()
		}
	}()
}

// restore undoes what a Session changed, and waits until the API server acts on that.
func (s *Server) restore(ctx context.Context, before *envtest.State) error {
	if err := s.keepParams(ctx, before); err != nil {
		return err
	}
	changed, err := s.api.Restore(ctx, before)
	if err != nil {
		return err
	}
	written := admission(changed, before)
	if len(written) == 0 {
		return nil
	}
	err = s.effective(ctx, written)
	_, left := s.api.Restore(ctx, before) // the sentinels
	return errors.Join(err, left)
}

// admission returns a manifest of each kind that decides about requests and was changed, for
// WaitUntilEffective. Namespaces are included, because selectors match their labels. Namespaces that
// a Session created no longer exist.
func admission(changed []string, before *envtest.State) []map[string]any {
	kinds := map[string]string{
		"validatingwebhookconfigurations": "ValidatingWebhookConfiguration", "mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
		"validatingadmissionpolicies": "ValidatingAdmissionPolicy", "validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding",
		"mutatingadmissionpolicies": "MutatingAdmissionPolicy", "mutatingadmissionpolicybindings": "MutatingAdmissionPolicyBinding",
	}
	var manifests []map[string]any
	for _, key := range changed {
		resource, _, _ := strings.Cut(strings.TrimPrefix(key, "/registry/"), "/")
		if kind := kinds[resource]; kind != "" {
			manifests = append(manifests, map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind})
		}
		if resource == "namespaces" && before.Has(key) {
			manifests = append(manifests, map[string]any{"apiVersion": "v1", "kind": "Namespace"})
		}
	}
	return manifests
}

// notify reports to idle that a Session began or ended, or that the server failed.
func (s *Server) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// state returns one of the State constants.
func (s *Server) state() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ending:
		return StateEnding
	case s.used:
		return StateInUse
	}
	return StateFree
}

// idle returns when there was no Session for some time; then there will be none. The error says why
// there can be none before that.
func (s *Server) idle(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.api.Ended():
			return s.api.Err()
		case <-s.changed:
			if err := s.failed(); err != nil {
				return err
			}
			timer.Reset(limit)
		case <-timer.C:
			s.mu.Lock()
			s.ending = !s.used
			ending := s.ending
			s.mu.Unlock()
			if ending {
				return nil
			}
			timer.Reset(limit)
		}
	}
}

// Stop ends the Server, and its Session.
func (s *Server) Stop() error {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	return errors.Join(s.api.Stop(), s.releasePort())
}

// clientConfig returns the Config of a kubeconfig, with the limits that the one of package envtest
// has.
func clientConfig(kubeconfig []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of a served API server: %w", err)
	}
	config.QPS, config.Burst = envtest.ClientQPS, envtest.ClientBurst
	return config, nil
}
