package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/object"
)

// WaitForParams returns when the policies of the API server know each paramKind of the Sandbox's policies, and
// see each parameter that the Sandbox installed or wrote as it is now. Without it, a policy can decide by an
// old parameter, or by none: kube-apiserver reads parameters late, and some no more (see docs/findings.md).
//
// The error is a framework.ErrTimeout if the API server's policies do not see a parameter.
func (s *Sandbox) WaitForParams(ctx context.Context) error {
	if err := s.watchParams(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	pending := map[install.Param]int{}
	var list []install.Param
	for p, writes := range s.params {
		if writes > 0 {
			pending[p] = writes
			list = append(list, p)
		}
	}
	s.mu.Unlock()
	if err := s.target.fences.WaitForParams(ctx, list); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, writes := range pending {
		if s.params[p] == writes {
			s.params[p] = 0
		}
	}
	return nil
}

// watchParams prepares WaitForParams for the parameters that are new.
func (s *Sandbox) watchParams(ctx context.Context) error {
	for _, p := range s.target.installer.Params(s.scope) {
		s.mu.Lock()
		_, known := s.params[p]
		s.mu.Unlock()
		if known {
			continue
		}
		if err := s.target.fences.Watch(ctx, p); err != nil {
			return err
		}
		s.mu.Lock()
		s.params[p]++
		s.mu.Unlock()
	}
	return nil
}

// paramsChanged notes a write to the parameters of a kind.
func (s *Sandbox) paramsChanged(kind schema.GroupKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.params {
		if p.Kind.GroupKind() == kind {
			s.params[p]++
		}
	}
}

// noteInstalled notes an object that Install wrote.
func (s *Sandbox) noteInstalled(manifest map[string]any) {
	if kind, err := object.Kind(manifest); err == nil {
		s.paramsChanged(kind.GroupKind())
	}
}

// noteSent notes the parameters that a Request has changed.
func (s *Sandbox) noteSent(request framework.Request, result framework.Result) {
	switch request.Verb {
	case framework.VerbGet, framework.VerbList, framework.VerbConnect:
		return
	}
	if !request.DryRun && result.Allowed() {
		s.paramsChanged(request.Kind.GroupKind())
	}
}
