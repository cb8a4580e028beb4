package removal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/install"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// world is the API server of the tests, and objects on it.
type world struct {
	*testing.T
	client  *client.Client
	remover *Remover
}

func newWorld(t *testing.T) world {
	t.Helper()
	c, err := client.New(testserver.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return world{T: t, client: c, remover: &Remover{Client: c, Progress: func(line string) { t.Log(line) }}}
}

// create creates an object, in the namespace of its metadata.
func (w world) create(manifest map[string]any) client.Object {
	w.Helper()
	o := w.object(manifest)
	if _, err := w.client.Create(w.Context(), o, manifest); err != nil {
		w.Fatal(err)
	}
	return o
}

func (w world) object(manifest map[string]any) client.Object {
	w.Helper()
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	res, err := w.client.Resources.Of(schema.FromAPIVersionAndKind(apiVersion, kind))
	if err != nil {
		w.Fatal(err)
	}
	metadata := manifest["metadata"].(map[string]any)
	o := client.Object{Resource: res}
	o.Name, _ = metadata["name"].(string)
	o.Namespace, _ = metadata["namespace"].(string)
	return o
}

func (w world) exists(o client.Object) bool {
	w.Helper()
	_, err := w.client.Get(context.WithoutCancel(w.Context()), o)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

func object(apiVersion, kind string, metadata map[string]any, fields map[string]any) map[string]any {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range fields {
		out[key] = value
	}
	return out
}

func labels(run, id string) map[string]any {
	return map[string]any{install.RunLabel: run, install.ScenarioLabel: id}
}

func held(namespace string) map[string]any {
	return object("v1", "ConfigMap", map[string]any{"name": "held", "namespace": namespace, "finalizers": []any{"example.com/held"}}, nil)
}

func namespace(run, name string) map[string]any {
	return object("v1", "Namespace", map[string]any{"name": name, "labels": labels(run, name)}, nil)
}

// definition returns a CustomResourceDefinition with two versions. Nothing converts
// between them: its webhook does not exist.
func definition(run, group string) map[string]any {
	anything := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": anything}
	}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", map[string]any{"name": "gadgets." + group, "labels": labels(run, "at-"+run+"-001")}, map[string]any{"spec": map[string]any{
		"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "gadgets", "kind": "Gadget"},
		"versions": []any{version("v1", true), version("v2", false)},
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1"},
		}},
	}})
}

// define creates a definition and waits until it is served.
func (w world) define(manifest map[string]any) client.Object {
	w.Helper()
	o := w.create(manifest)
	for _, res := range w.client.Resources.AddCRD(manifest) {
		err := client.Poll(w.Context(), client.Later, 30*time.Second, func() (bool, error) {
			got, err := w.client.Send(w.Context(), client.HTTPRequest{Method: "GET", Path: client.URLPath(res.GroupVersionResource, "", "", "")})
			return got.Allowed(), err
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	return o
}

// everything creates what scenarios of a run can leave, and returns it.
func everything(w world, run string) []client.Object {
	w.Helper()
	id, second := "at-"+run+"-001", "at-"+run+"-002"
	group := run + ".example.com"
	all := []client.Object{
		w.create(namespace(run, id)), w.create(namespace(run, second)),
		w.create(held(id)), w.create(held(second)),
		w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": id + "-a", "labels": labels(run, id), "finalizers": []any{"example.com/held"}}, map[string]any{"value": int64(1)})),
		w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": id + "-b", "labels": labels(run, id)}, map[string]any{"value": int64(2)})),
		w.define(definition(run, group)),
		w.create(object(group+"/v1", "Gadget", map[string]any{"name": "held", "namespace": id, "finalizers": []any{"example.com/held"}}, nil)),
	}
	// The policy comes last: it refuses the removal of the rest for as long as it is
	// effective.
	policy := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", map[string]any{"name": id + "-p", "labels": labels(run, id)}, map[string]any{"spec": map[string]any{
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{install.ScenarioLabel: id}},
			"resourceRules":     []any{map[string]any{"operations": []any{"DELETE", "UPDATE"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}, "scope": "Namespaced"}},
		},
		"validations": []any{map[string]any{"expression": "false"}},
	}})
	binding := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", map[string]any{"name": id + "-p", "labels": labels(run, id)}, map[string]any{"spec": map[string]any{
		"policyName": id + "-p", "validationActions": []any{"Deny"},
	}})
	all = append(all, w.create(policy), w.create(binding))
	err := client.Poll(w.Context(), client.Later, 30*time.Second, func() (bool, error) {
		got, err := w.client.Send(w.Context(), client.HTTPRequest{Method: "DELETE", Path: "/api/v1/namespaces/" + id + "/configmaps/held", Query: map[string][]string{"dryRun": {"All"}}})
		return !got.Allowed(), err
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// Everything that scenarios created is gone when RemoveScenarios returns, and nothing
// else is.
func TestRemoveScenarios(t *testing.T) {
	w := newWorld(t)
	all := everything(w, "mine")
	others := []client.Object{
		w.create(namespace("other", "at-other-001")),
		w.create(held("at-other-001")),
		w.create(object("v1", "Namespace", map[string]any{"name": "relay-mine", "labels": map[string]any{install.RunLabel: "mine"}}, nil)),
		w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-mine-001-not-labelled"}, map[string]any{"value": int64(3)})),
	}
	if err := w.remover.RemoveScenarios(t.Context(), "mine", nil); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if w.exists(o) {
			t.Errorf("%s is still there", o)
		}
	}
	for _, o := range others {
		if !w.exists(o) {
			t.Errorf("%s of another client was removed", o)
		}
	}
	if left, err := w.remover.Left(t.Context(), "mine"); err != nil || !slices.Equal(left, []string{"namespaces/relay-mine"}) {
		t.Errorf("left: %v, %v", left, err)
	}
	for _, run := range []string{"mine", "other"} {
		if _, err := w.remover.Cleanup(t.Context(), run); err != nil {
			t.Error(err)
		}
	}
}

// Cleanup finds what a killed run left, objects in namespaces that are gone included.
func TestCleanup(t *testing.T) {
	w := newWorld(t)
	all := everything(w, "killed")
	orphan, foreign := w.orphan("killed", "at-killed-009"), w.orphan("foreign", "tenant-009")
	found, err := w.remover.Cleanup(t.Context(), "killed")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"customresourcedefinitions.apiextensions.k8s.io/gadgets.killed.example.com", "namespaces/at-killed-001", "namespaces/at-killed-002", "namespaces/at-killed-009",
		"priorityclasses.scheduling.k8s.io/at-killed-001-a", "priorityclasses.scheduling.k8s.io/at-killed-001-b",
		"validatingadmissionpolicies.admissionregistration.k8s.io/at-killed-001-p", "validatingadmissionpolicybindings.admissionregistration.k8s.io/at-killed-001-p",
	}
	slices.Sort(found)
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	for _, o := range append(all, orphan) {
		if w.exists(o) {
			t.Errorf("%s is still there", o)
		}
	}
	if !w.exists(foreign) {
		t.Errorf("%s of another client was removed", foreign)
	}
	if again, err := w.remover.Cleanup(t.Context(), ""); err != nil || len(again) != 0 {
		t.Errorf("second cleanup found %v, %v; want nothing", again, err)
	}
}

// orphan creates an object in a namespace, and removes only the namespace.
func (w world) orphan(run, name string) client.Object {
	w.Helper()
	w.create(namespace(run, name))
	o := w.create(held(name))
	if err := errors.Join(w.client.Delete(w.Context(), client.Namespace(name)), w.remover.finalize(w.Context(), name)); err != nil {
		w.Fatal(err)
	}
	if w.exists(client.Namespace(name)) || !w.exists(o) {
		w.Fatalf("want an object %s without its namespace", o)
	}
	return o
}

// What cannot be removed is named in the error.
func TestRemoveSaysWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	w.remover.goneLimit = 2 * time.Second
	definition := w.define(definition("stuck", "stuck.example.com"))
	// A custom resource of another client keeps the definition.
	foreign := w.create(object("stuck.example.com/v1", "Gadget", map[string]any{"name": "held", "namespace": "default", "finalizers": []any{"example.com/held"}}, nil))
	err := w.remover.RemoveScenarios(t.Context(), "stuck", nil)
	if !errors.Is(err, framework.ErrTimeout) || !strings.Contains(err.Error(), "still there: customresourcedefinitions.apiextensions.k8s.io gadgets.stuck.example.com:") {
		t.Errorf("got %v, want an ErrTimeout that names the definition", err)
	}
	if !w.exists(foreign) {
		t.Error("the custom resource of another client was removed")
	}
	if err := w.client.RemoveFinalizers(t.Context(), foreign); err != nil {
		t.Error(err)
	}
	w.remover.goneLimit = 0
	if _, err := w.remover.Cleanup(t.Context(), "stuck"); err != nil || w.exists(definition) {
		t.Errorf("cleanup: %v", err)
	}
}

// The removal of hundreds of namespaces lists each resource a few times, not each
// namespace.
func TestRemoveManyNamespaces(t *testing.T) {
	w := newWorld(t)
	for n := range 100 {
		name := fmt.Sprintf("at-many-%03d", n)
		w.create(namespace("many", name))
		w.create(held(name))
	}
	if err := w.remover.RemoveScenarios(t.Context(), "many", nil); err != nil {
		t.Fatal(err)
	}
	if left, err := w.remover.Left(t.Context(), "many"); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestSelector(t *testing.T) {
	if got := Selector("a") + " " + Selector(""); got != install.RunLabel+"=a "+install.RunLabel {
		t.Errorf("got %q", got)
	}
}
