package install

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// given is a webhook configuration, policy or binding as the scenario gives it. The names in it have no prefix.
type given struct {
	kind     string
	name     string
	manifest map[string]any
}

// remember notes a webhook configuration, policy or binding before it is narrowed.
func (s *Scope) remember(kind schema.GroupVersionKind, name string, manifest map[string]any) {
	s.forget(kind, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = append(s.given, given{kind.Kind, name, manifest})
}

// forget is for one that was deleted, also by its name on the API server.
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
		scope.mu.Lock()
		for _, g := range scope.given {
			all = append(all, g.manifest)
		}
		scope.mu.Unlock()
	}
	return all
}
