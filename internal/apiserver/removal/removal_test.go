package removal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
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
func (w world) create(manifest map[string]any) client.Object { return w.createAs("", manifest) }

// createAs creates an object with a field manager.
func (w world) createAs(manager string, manifest map[string]any) client.Object {
	w.Helper()
	o := w.object(manifest)
	o.Manager = manager
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

func labelsOf(run, id string) map[string]any {
	return map[string]any{install.RunLabel: run, install.ScenarioLabel: id}
}

func held(namespace string) map[string]any {
	return object("v1", "ConfigMap", map[string]any{"name": "held", "namespace": namespace, "finalizers": []any{"example.com/held"}}, nil)
}

func namespace(run, name string) map[string]any {
	return object("v1", "Namespace", map[string]any{"name": name, "labels": labelsOf(run, name)}, nil)
}

// definition returns a CustomResourceDefinition with two versions. Nothing converts
// between them: its webhook does not exist.
func definition(run, group string) map[string]any {
	anything := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": anything}
	}
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", map[string]any{"name": "gadgets." + group, "labels": labelsOf(run, "at-"+run+"-001")}, map[string]any{"spec": map[string]any{
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
	run, _ := manifest["metadata"].(map[string]any)["labels"].(map[string]any)[install.RunLabel].(string)
	o := w.createAs("at-"+run+"-00001", manifest)
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
		w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": id + "-a", "labels": labelsOf(run, id), "finalizers": []any{"example.com/held"}}, map[string]any{"value": int64(1)})),
		w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": id + "-b", "labels": labelsOf(run, id)}, map[string]any{"value": int64(2)})),
		w.define(definition(run, group)),
		w.create(object(group+"/v1", "Gadget", map[string]any{"name": "held", "namespace": id, "finalizers": []any{"example.com/held"}}, nil)),
	}
	// The policy comes last: it refuses the removal of the rest for as long as it is
	// effective.
	policy := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", map[string]any{"name": id + "-p", "labels": labelsOf(run, id)}, map[string]any{"spec": map[string]any{
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{install.ScenarioLabel: id}},
			"resourceRules":     []any{map[string]any{"operations": []any{"DELETE", "UPDATE"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}, "scope": "Namespaced"}},
		},
		"validations": []any{map[string]any{"expression": "false"}},
	}})
	binding := object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", map[string]any{"name": id + "-p", "labels": labelsOf(run, id)}, map[string]any{"spec": map[string]any{
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
	all = append(all, w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-mine-001-not-labelled"}, map[string]any{"value": int64(3)})))
	others := []client.Object{
		w.create(namespace("other", "at-other-001")),
		w.create(held("at-other-001")),
		w.create(object("v1", "Namespace", map[string]any{"name": "relay-mine", "labels": map[string]any{install.RunLabel: "mine"}}, nil)),
		w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-mine2-001-not-labelled"}, map[string]any{"value": int64(3)})),
	}
	if err := w.remover.RemoveScenarios(t.Context(), "mine"); err != nil {
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
	if left, err := w.remover.left(t.Context(), selection{labels: Selector("mine")}); err != nil || !slices.Equal(left, []string{"namespaces/relay-mine"}) {
		t.Errorf("left: %v, %v", left, err)
	}
	for _, run := range []string{"mine", "other"} {
		if _, err := w.remover.Cleanup(t.Context(), CleanupOptions{Run: run}); err != nil {
			t.Error(err)
		}
	}
}

// Cleanup finds what a killed run left, objects in namespaces that are gone included.
func TestCleanup(t *testing.T) {
	w := newWorld(t)
	all := everything(w, "killed")
	orphan, foreign := w.orphan("killed", "at-killed-009"), w.orphan("foreign", "tenant-009")
	found, err := w.remover.Cleanup(t.Context(), CleanupOptions{Run: "killed"})
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
	if again, err := w.remover.Cleanup(t.Context(), CleanupOptions{}); err != nil || len(again) != 0 {
		t.Errorf("second cleanup found %v, %v; want nothing", again, err)
	}
}

// orphan creates an object in a namespace, and removes only the namespace.
func (w world) orphan(run, name string) client.Object {
	w.Helper()
	w.create(namespace(run, name))
	o := w.create(held(name))
	if err := errors.Join(w.client.Delete(w.Context(), client.Namespace(name)), w.remover.finalize(w.Context(), client.Namespace(name))); err != nil {
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
	err := w.remover.RemoveScenarios(t.Context(), "stuck")
	if !errors.Is(err, framework.ErrTimeout) || !strings.Contains(err.Error(), "these objects still exist: customresourcedefinitions.apiextensions.k8s.io gadgets.stuck.example.com:") {
		t.Errorf("got %v, want an ErrTimeout that names the definition", err)
	}
	if !w.exists(foreign) {
		t.Error("the custom resource of another client was removed")
	}
	if err := w.client.RemoveFinalizers(t.Context(), foreign); err != nil {
		t.Error(err)
	}
	w.remover.goneLimit = 0
	if _, err := w.remover.Cleanup(t.Context(), CleanupOptions{Run: "stuck"}); err != nil || w.exists(definition) {
		t.Errorf("cleanup: %v", err)
	}
}

// A definition whose controllers have forgotten it is gone: they return to it at its next change.
func TestForgottenDefinition(t *testing.T) {
	w := newWorld(t)
	w.remover.goneLimit = 5 * time.Second
	manifest := definition("forgotten", "forgotten.example.com")
	manifest["metadata"].(map[string]any)["finalizers"] = []any{"example.com/forgotten"}
	o := w.define(manifest)
	controller := make(chan error, 1)
	go func() { // which notes the definition when the API server has removed its own finalizer, and acts at the next change
		var noted string
		controller <- client.Poll(t.Context(), client.Later, time.Minute, func() (bool, error) {
			got, err := w.client.Get(t.Context(), o)
			switch {
			case err != nil:
				return false, err
			case len(got.GetFinalizers()) > 1 || got.GetDeletionTimestamp() == nil:
				return false, nil
			case noted == "":
				noted = got.GetResourceVersion()
			}
			return noted != got.GetResourceVersion(), nil
		})
		controller <- w.client.RemoveFinalizers(t.Context(), o)
	}()
	if err := w.remover.RemoveScenarios(t.Context(), "forgotten"); err != nil {
		t.Errorf("got %v, want the definition gone", err)
	}
	if err := errors.Join(<-controller, <-controller); err != nil || w.exists(o) {
		t.Errorf("the definition is left: %v", err)
	}
}

// While the cluster is at work the wait does not end, even if nothing of the run is removed. Then it ends.
func TestWaitWhileTheClusterWorks(t *testing.T) {
	r := &Remover{goneLimit: 100 * time.Millisecond}
	find := func() ([]client.Object, error) { return []client.Object{client.Namespace("at-a-001")}, nil }
	began := time.Now()
	busy := 4 * r.goneLimit
	err := r.waitUntilGone(t.Context(), find, func([]client.Object) (bool, error) { return time.Since(began) < busy, nil })
	if !errors.Is(err, framework.ErrTimeout) || time.Since(began) < busy {
		t.Errorf("got %v after %s; want an ErrTimeout after %s", err, time.Since(began), busy)
	}
}

// The namespace controller is at work when a namespace that was deleted is gone.
func TestSomeGone(t *testing.T) {
	namespace := func(uid types.UID, deleted bool) metav1.PartialObjectMetadata {
		one := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		if deleted {
			one.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		return one
	}
	var queue deleted
	for n, step := range []struct {
		all  []metav1.PartialObjectMetadata
		want bool
	}{
		{[]metav1.PartialObjectMetadata{namespace("a", true), namespace("b", true), namespace("c", false)}, false},
		{[]metav1.PartialObjectMetadata{namespace("a", true), namespace("b", true)}, false}, // c was not deleted when it was last seen
		{[]metav1.PartialObjectMetadata{namespace("a", true), namespace("d", true)}, true},
		{[]metav1.PartialObjectMetadata{namespace("a", true), namespace("d", true)}, false},
	} {
		if got := queue.someGone(step.all); got != step.want {
			t.Errorf("step %d: got %t, want %t", n, got, step.want)
		}
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
	if err := w.remover.RemoveScenarios(t.Context(), "many"); err != nil {
		t.Fatal(err)
	}
	if left, err := w.remover.left(t.Context(), selection{labels: Selector("many")}); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestSelector(t *testing.T) {
	if got := Selector("a") + " " + Selector(""); got != install.RunLabel+"=a "+install.RunLabel {
		t.Errorf("got %q", got)
	}
}

// Every client can set the label of a run, on the objects of other clients too.
func TestLabelIsNoOwnership(t *testing.T) {
	w := newWorld(t)
	w.create(namespace("hostile", "at-hostile-00001"))
	foreign := []client.Object{
		w.create(namespace("hostile", "team-b")),
		w.create(object("v1", "ConfigMap", map[string]any{"name": "a", "namespace": "team-b"}, nil)),
		w.create(namespace("hostile", "at-hostile2-00001")),
		w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "team-b", "labels": labelsOf("hostile", "at-hostile-00001")}, map[string]any{"value": int64(3)})),
	}
	var said []string
	w.remover.Progress = func(line string) { said = append(said, line) }
	if err := w.remover.RemoveScenarios(t.Context(), "hostile"); err != nil {
		t.Fatal(err)
	}
	found, err := w.remover.Cleanup(t.Context(), CleanupOptions{})
	if err != nil || len(found) != 0 {
		t.Errorf("cleanup found %v, %v; want nothing", found, err)
	}
	for _, o := range foreign {
		if !w.exists(o) {
			t.Errorf("%s of another client was removed", o)
		}
	}
	if w.exists(client.Namespace("at-hostile-00001")) {
		t.Error("the namespace of the run is still there")
	}
	if text := strings.Join(said, "\n"); strings.Count(text, "not removed: namespaces team-b has the label of run hostile") != 1 {
		t.Errorf("want one message about team-b in:\n%s", text)
	}
}

// An object that has the name of one that is gone belongs to the client that created it.
func TestDeleteChecksIdentity(t *testing.T) {
	w := newWorld(t)
	o := w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-identity-00001-a", "finalizers": []any{"example.com/held"}}, map[string]any{"value": int64(3)}))
	other := o
	other.UID = "11111111-2222-3333-4444-555555555555"
	if err := errors.Join(w.client.Delete(t.Context(), other), w.client.RemoveFinalizers(t.Context(), other)); err != nil {
		t.Fatal(err)
	}
	current, err := w.client.Get(t.Context(), o)
	if err != nil || current.GetDeletionTimestamp() != nil || len(current.GetFinalizers()) != 1 {
		t.Errorf("the other object was deleted: %v, %v", current, err)
	}
}

// kill makes the sign of a run old, as after a SIGKILL long ago, and returns the object.
func (w world) kill(sign *Sign, run string) client.Object {
	w.Helper()
	sign.Stop()
	current, err := w.client.Get(w.Context(), signObject(run))
	if err != nil {
		w.Fatal(err)
	}
	current.Object["data"].(map[string]any)["renewed"] = "2020-01-01T00:00:00.000000Z"
	if _, err := w.client.Update(w.Context(), signObject(run), current.Object); err != nil {
		w.Fatal(err)
	}
	return signObject(run)
}

// A cluster-scoped object whose field manager is a run belongs to it, whatever its name. A run that is alive is left.
func TestCleanupByFieldManager(t *testing.T) {
	w := newWorld(t)
	ours := w.createAs("at-rec-00001", object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "recorded"}, map[string]any{"value": int64(3)}))
	theirs := w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "taken"}, map[string]any{"value": int64(3)}))
	sign := NewSign(w.client, "rec")
	if err := sign.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := w.remover.Cleanup(t.Context(), CleanupOptions{}); err != nil || len(found) != 0 {
		t.Errorf("cleanup found %v, %v; want nothing of a run that is alive", found, err)
	}
	if _, err := w.remover.Cleanup(t.Context(), CleanupOptions{Run: "rec"}); err == nil || !strings.Contains(err.Error(), "is alive") {
		t.Errorf("got %v, want an error: the run is alive", err)
	}
	stored := w.kill(sign, "rec")
	want := []string{"namespaces/at-rec-run", "priorityclasses.scheduling.k8s.io/recorded"}
	for _, dryRun := range []bool{true, false} {
		found, err := w.remover.Cleanup(t.Context(), CleanupOptions{DryRun: dryRun})
		slices.Sort(found)
		if err != nil || !slices.Equal(found, want) {
			t.Errorf("found %v, %v; want %v", found, err, want)
		}
		for _, o := range []client.Object{ours, stored} {
			if w.exists(o) != dryRun {
				t.Errorf("after a cleanup with DryRun %t: %s exists: %t", dryRun, o, !dryRun)
			}
		}
	}
	if !w.exists(theirs) {
		t.Errorf("%s of another client was removed", theirs)
	}
}

// poor is an API server that ignores selectors and deletes no collections.
type poor struct{ next http.RoundTripper }

func (p poor) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	query := request.URL.Query()
	query.Del("labelSelector")
	request.URL.RawQuery = query.Encode()
	code := 0
	switch path := request.URL.Path; {
	case request.Method == http.MethodDelete && (strings.HasSuffix(path, "/configmaps") || strings.HasSuffix(path, "/gadgets")):
		code = http.StatusMethodNotAllowed
	}
	if code > 0 {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: http.NoBody, Request: request}, nil
	}
	return p.next.RoundTrip(request)
}

// Cleanup needs no selectors and no deletecollection.
func TestCleanupOnPoorServer(t *testing.T) {
	w := newWorld(t)
	all := everything(w, "poor")
	tenants := []client.Object{
		w.create(object("v1", "Namespace", map[string]any{"name": "tenant-of-poor"}, nil)),
		w.create(object("v1", "ConfigMap", map[string]any{"name": "theirs", "namespace": "tenant-of-poor"}, nil)),
	}
	sign := NewSign(w.client, "poor")
	if err := sign.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored := w.kill(sign, "poor")
	config := testserver.Config(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return poor{next} })
	c, err := client.New(config)
	if err == nil {
		err = c.Discover(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := (&Remover{Client: c, Progress: func(line string) { t.Log(line) }}).Cleanup(t.Context(), CleanupOptions{}); err != nil {
		t.Error(err)
	}
	for _, o := range append(all, stored) {
		if w.exists(o) {
			t.Errorf("%s is still there", o)
		}
	}
	for _, o := range tenants {
		if !w.exists(o) {
			t.Errorf("%s of another client was removed", o)
		}
	}
}

// What cannot be deleted does not keep the rest.
func TestRemoveTheRest(t *testing.T) {
	w := newWorld(t)
	keeps := w.create(object("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-rest-00001-a"}, map[string]any{"value": int64(3)}))
	goes := []client.Object{
		w.create(object("rbac.authorization.k8s.io/v1", "ClusterRole", map[string]any{"name": "at-rest-00001-b"}, nil)),
		w.create(object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", map[string]any{"name": "at-rest-00001-a", "labels": labelsOf("rest", "at-rest-00001")}, nil)),
	}
	config := testserver.Config(t)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return refusing{next, "/apis/scheduling.k8s.io/v1/priorityclasses/" + keeps.Name}
	})
	c, err := client.New(config)
	if err == nil {
		err = c.Discover(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := (&Remover{Client: c, Progress: func(line string) { t.Log(line) }}).RemoveScenarios(t.Context(), "rest"); err == nil || !strings.Contains(err.Error(), keeps.Name) {
		t.Errorf("got %v, want an error that names %s", err, keeps.Name)
	}
	for _, o := range goes {
		if w.exists(o) {
			t.Errorf("%s is still there", o)
		}
	}
	if err := w.client.Delete(t.Context(), keeps); err != nil {
		t.Error(err)
	}
}

// refusing refuses to delete the object at a path.
type refusing struct {
	next http.RoundTripper
	path string
}

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodDelete && request.URL.Path == r.path {
		return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Body: http.NoBody, Request: request}, nil
	}
	return r.next.RoundTrip(request)
}
