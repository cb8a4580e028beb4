package install

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// given is a webhook configuration, policy or binding as the scenario gives it. The names in it have no prefix.
type given struct {
	scope    string // the ID of the scope
	kind     string
	name     string
	manifest map[string]any
}

// remember notes a webhook configuration, policy or binding before it is narrowed.
func (s *Scope) remember(kind schema.GroupVersionKind, name string, manifest map[string]any) {
	name = strings.TrimPrefix(name, s.ID+"-")
	s.forget(kind, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = append(s.given, given{s.ID, kind.Kind, name, s.withoutPrefix(name, manifest)})
}

// withoutPrefix returns a manifest with a name and, if it is a binding, with the name of its policy, without
// the ID as prefix.
func (s *Scope) withoutPrefix(name string, manifest map[string]any) map[string]any {
	return withNames(manifest, name, func(policy string) string { return strings.TrimPrefix(policy, s.ID+"-") })
}

// forget is for one that was deleted.
func (s *Scope) forget(kind schema.GroupVersionKind, name string) {
	name = strings.TrimPrefix(name, s.ID+"-")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = slices.DeleteFunc(s.given, func(g given) bool { return g.kind == kind.Kind && g.name == name })
}

// Given returns the webhook configurations, policies and bindings of the scenario of an ID, and those
// of the run (InstallForRun), as their authors wrote them: with their names, and not narrowed.
func (i *Installer) Given(id string) []map[string]any {
	i.mu.Lock()
	scopes := slices.Clone(i.scopes)
	i.mu.Unlock()
	var all []map[string]any
	for _, scope := range scopes {
		if scope.ID != id && scope.ID != projectID(i.Run) {
			continue
		}
		all = append(all, scope.manifests()...)
	}
	return all
}

// manifests returns what Given returns of one scope.
func (s *Scope) manifests() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]map[string]any, 0, len(s.given))
	for _, g := range s.given {
		all = append(all, g.manifest)
	}
	return all
}

// patch applies the patch of a Request to a webhook configuration, policy or binding as the scenario
// gives it. If it cannot be applied there, nothing is known of what the author means: then it remains.
func (s *Scope) patch(kind schema.GroupVersionKind, name string, request framework.HTTP) {
	name = strings.TrimPrefix(name, s.ID+"-")
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, g := range s.given {
		if g.kind != kind.Kind || g.name != name {
			continue
		}
		if patched, err := client.Patched(g.manifest, request); err == nil {
			s.given[n].manifest = s.withoutPrefix(name, patched)
		}
	}
}
