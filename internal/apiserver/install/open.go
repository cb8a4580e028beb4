package install

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

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
		return s.ID + "-" + name
	}
	return name
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
