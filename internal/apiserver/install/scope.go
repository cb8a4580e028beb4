package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Note notes what a Request has changed: the configurations and policies of the scenario, and objects
// that it created outside of its namespaces. A raw body is not read: a scenario can hide a paramKind in it.
func (i *Installer) Note(scope *Scope, request client.Request, result framework.Result) {
	if request.DryRun || request.Subresource != "" || isReview(request) || !result.Allowed() {
		return
	}
	fields := result.Fields()
	o := client.Object{Resource: request.Resource, Namespace: request.Namespace}
	o.Name, _, _ = unstructured.NestedString(fields, "metadata", "name")
	switch request.Verb {
	case framework.VerbCreate, framework.VerbUpdate, framework.VerbApply, framework.VerbPatch:
		if IsAdmission(request.Kind) && request.HTTP.RawBody == nil { // the scenario runs alone: it is not narrowed
			scope.remember(request.Kind, o.Name, fields)
		}
		if result.Status.Code == http.StatusCreated {
			o.UID = (&unstructured.Unstructured{Object: fields}).GetUID()
			i.noteCreated(scope, o)
		}
	case framework.VerbDelete:
		scope.forget(request.Kind, request.Name)
	}
}

// isReview reports whether a request is for a kind of review, such as
// SubjectAccessReview. Reviews are not stored and do not allow metadata.
func isReview(request client.Request) bool {
	return request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review")
}

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

// opened returns a copy of a webhook configuration or policy that is not narrowed, but does
// not match the requests by which a run finds out what the API server acts on: the creation of
// ConfigMaps in namespaces of the run that no scenario uses, and updates of these namespaces. One whose
// rules do not match these remains as it is. A match condition does not change what a selector
// matches. If the scenario consists of dry runs, policies decide about these only: not about what Store writes to be the
// object of one.
func (i *Installer) opened(scope *Scope, kind schema.GroupVersionKind, manifest map[string]any) map[string]any {
	return withMatching(kind, manifest, func(m matching) {
		if slices.ContainsFunc(m.rules(), matchesProbe) {
			own := "^" + regexp.QuoteMeta(runid.Prefix(i.Run)) + "-(fence|reach|ready)$"
			m.addCondition("admissiontest.dev/probes", fmt.Sprintf(`!(has(request.namespace) && request.namespace.matches(%q))`, own))
		}
		if scope.DryRuns && strings.HasSuffix(kind.Kind, "Policy") {
			m.addCondition("admissiontest.dev/dry-run", "has(request.dryRun) && request.dryRun")
		}
	})
}

// matchesProbe reports whether a rule can match the creation of a ConfigMap or the update of a
// Namespace.
func matchesProbe(item any) bool {
	rule, _ := item.(map[string]any)
	has := func(field string, values ...string) bool {
		return slices.ContainsFunc(texts(rule[field]), func(text string) bool { return slices.Contains(values, text) })
	}
	creation := rule["scope"] != "Cluster" && has("operations", "*", "CREATE") && has("resources", "*", "*/*", "configmaps")
	update := rule["scope"] != "Namespaced" && has("operations", "*", "UPDATE") && has("resources", "*", "*/*", "namespaces")
	return (creation || update) && has("apiGroups", "*", "")
}

// nameOf returns the name on the API server of an object that a scenario calls by this name.
func (s *Scope) nameOf(kind schema.GroupVersionKind, name string) string {
	if IsAdmission(kind) && !s.Open {
		return s.prefix() + "-" + name
	}
	return name
}

// prefix is how the names begin of what decides about requests. A fence comes after all scenarios: until the removal of a
// fence arrives, it would change the indexes of webhooks behind it in audit annotations.
func (s *Scope) prefix() string {
	if s.Probes {
		return "zz-" + s.ID
	}
	return s.ID
}

// note notes an object for Uninstall.
func (s *Scope) note(o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.installed = append(s.installed, o)
}

// noteCreated notes an object that the scenario has created and that the next scenario would meet. Uninstall deletes
// what decides about requests, and objects in namespaces of others. RemoveStored deletes cluster-scoped objects without
// the ID of the run in their names; CustomResourceDefinitions only of a scenario that runs alone, because others share
// them.
func (i *Installer) noteCreated(s *Scope, o client.Object) {
	if o.Resource.Group == AdmissionGroup || o.Namespace != "" && !runid.Has(o.Namespace, s.ID) && !s.hasNamespace(o.Namespace) {
		s.note(o)
	}
	if o.Namespace != "" || runid.Has(o.Name, runid.Prefix(i.Run)) || !s.Open && o.Resource.Resource == "customresourcedefinitions" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = append(s.stored, o)
}

// noteNamespace notes a Namespace of the scenario.
func (s *Scope) noteNamespace(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaces = append(s.namespaces, name)
}

func (s *Scope) hasNamespace(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.namespaces, name)
}

// RemoveStored deletes all cluster-scoped objects of a scenario without the ID of the run in their names, and waits until they
// are gone.
func (i *Installer) RemoveStored(ctx context.Context, scope *Scope) error {
	scope.mu.Lock()
	remove := scope.stored
	scope.stored = nil
	scope.mu.Unlock()
	var errs []error
	for _, o := range slices.Backward(remove) {
		errs = append(errs, i.remove(ctx, o))
	}
	return errors.Join(errs...)
}

// goneLimit limits the wait for an object that was deleted.
const goneLimit = 30 * time.Second

// remove deletes an object of the run at once, whatever its finalizers, and waits until it is gone.
func (i *Installer) remove(ctx context.Context, o client.Object) error {
	if err := client.WhileRefused(ctx, func() error { return i.Client.Delete(ctx, o) }); err != nil {
		return err
	}
	return client.Poll(ctx, client.Later, goneLimit, func() (bool, error) {
		current, err := i.Client.Get(ctx, o)
		if apierrors.IsNotFound(err) || err == nil && current.GetUID() != o.UID {
			return true, nil
		}
		if err == nil && len(current.GetFinalizers()) > 0 {
			err = i.Client.RemoveFinalizers(ctx, o)
		}
		if err == nil && o.Resource.GroupVersionResource == client.Namespaces() {
			_, err = i.Client.Update(ctx, o, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.Name, "uid": string(o.UID)}}, "finalize")
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
			err = nil
		}
		return false, err
	})
}

// Param is a kind of parameters in one namespace. The plugin for each kind of policy reads them from its own cache.
type Param struct {
	// Policy is KindValidatingPolicy or KindMutatingPolicy, Kind is the paramKind.
	Policy   string
	Kind     schema.GroupVersionKind
	Resource client.Resource
	// Namespace is empty if objects of the kind are in no namespace.
	Namespace string
}

// ReaderPrefix begins the names, after the ID of their scope, of the policies and bindings by which
// package fence reads parameters. They exist until the run ends, and decide about no other request.
const ReaderPrefix = "params-"

// Params returns what the policies of a scenario, and those that were installed for the run, can read as
// parameters: their kinds, in the namespaces of the scenario and of its requests, and in each that a binding names. A kind
// that the API server does not serve or list is left out.
func (i *Installer) Params(scope *Scope) []Param {
	i.mu.Lock()
	scopes := []*Scope{scope, i.project}
	i.mu.Unlock()
	namespaces := scope.allNamespaces()
	var policies []given
	for _, one := range scopes {
		if one != nil {
			one.mu.Lock()
			policies = append(policies, one.given...)
			one.mu.Unlock()
		}
	}
	for _, binding := range policies {
		name, _ := cloneMap(cloneMap(binding.manifest["spec"])["paramRef"])["namespace"].(string)
		namespaces = append(namespaces, name)
	}
	namespaces = slices.DeleteFunc(namespaces, func(name string) bool {
		return name == "" || strings.Contains(name, "$(") || i.Shared && !runid.Has(name, i.Run)
	})
	found := map[Param]bool{}
	for _, policy := range policies {
		kind := paramKind(policy.manifest)
		if kind.Empty() {
			continue
		}
		res, err := i.Client.Resources.Of(kind)
		if err != nil || !res.Deletable {
			continue
		}
		in := namespaces
		if !res.Namespaced {
			in = []string{""}
		}
		for _, namespace := range in {
			found[Param{policy.kind, kind, res, namespace}] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// paramKind returns the paramKind of a policy, or the zero value.
func paramKind(manifest map[string]any) schema.GroupVersionKind {
	kind := cloneMap(cloneMap(manifest["spec"])["paramKind"])
	apiVersion, _ := kind["apiVersion"].(string)
	name, _ := kind["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, name)
}
