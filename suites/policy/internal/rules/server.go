package rules

import (
	"context"
	"errors"
	"fmt"

	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Server is an API server on which Subjects are observed, one after the other. It ends with Close.
type Server struct {
	target target.Target
	// shared has what several Subjects can be given: CustomResourceDefinitions and Namespaces. An API server needs up to
	// 30 s until policies know a new kind of params.
	shared target.Sandbox
	// sandboxes is how many Sandboxes there were.
	sandboxes int
	// removed are policies of the last Subject, which can still be effective.
	removed []map[string]any
}

// firstSandbox is Server.sandboxes during the first Subject: one is for what is shared, and one for the probes.
const firstSandbox = 3

// Start starts an API server.
func Start(ctx context.Context, provider target.Provider) (*Server, error) {
	return start(ctx, provider, target.StartOptions{})
}

func start(ctx context.Context, provider target.Provider, options target.StartOptions) (*Server, error) {
	started, err := provider.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &Server{target: started}
	if s.shared, err = s.sandbox(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func (s *Server) id() string { return runid.Scenario(s.target.RunID(), s.sandboxes) }

func (s *Server) sandbox(ctx context.Context) (target.Sandbox, error) {
	s.sandboxes++
	return s.target.NewSandbox(ctx, target.SandboxOptions{ID: s.id(), Open: true, Accounts: func(string) bool { return true }})
}

// Close ends the API server.
func (s *Server) Close(ctx context.Context) error {
	return s.target.Close(context.WithoutCancel(ctx))
}

// Observe sends all requests about a Subject, before and after its policies are installed. Then it removes the policies.
func (s *Server) Observe(ctx context.Context, subject Subject) (*Observations, error) {
	if len(s.removed) > 0 {
		if err := s.target.WaitUntilEffective(ctx, s.removed); err != nil {
			return nil, fmt.Errorf("remove the policies of the last Subject: %w", err)
		}
		s.removed = nil
	}
	b, err := s.bench(ctx, subject)
	if err != nil {
		return nil, err
	}
	observed, err := b.observe(ctx)
	ctx = context.WithoutCancel(ctx)
	return observed, errors.Join(err, b.probes.Uninstall(ctx), b.sandbox.Uninstall(ctx))
}

// bench returns a bench with Sandboxes of its own.
func (s *Server) bench(ctx context.Context, subject Subject) (*bench, error) {
	probes, err := s.sandbox(ctx)
	if err != nil {
		return nil, err
	}
	sandbox, err := s.sandbox(ctx)
	if err != nil {
		return nil, err
	}
	return &bench{subject: subject, on: s, server: s.target, sandbox: sandbox, probes: probes, namespace: s.id(), observed: &Observations{Server: s.target.Info(), Unsent: map[Group]string{}, Alone: map[string][]*Case{}, Lacks: map[Group]string{}}, copied: map[string]bool{}}, nil
}
