package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// world is the API server of the tests, and objects on it.
type world struct {
	*testing.T
	client  *client.Client
	remover *remover
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
	return world{T: t, client: c, remover: &remover{client: c, progress: func(line string) { t.Log(line) }}}
}

// create creates an object, in the namespace of its metadata.
func (w world) create(manifest map[string]any) client.Object { return w.createAs("", manifest) }

// createAs creates an object with a field manager.
func (w world) createAs(manager string, manifest map[string]any) client.Object {
	w.Helper()
	o := w.manifestOf(manifest)
	o.Manager = manager
	if _, err := w.client.Create(w.Context(), o, manifest); err != nil {
		w.Fatal(err)
	}
	return o
}

func (w world) manifestOf(manifest map[string]any) client.Object {
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

func manifestOf(apiVersion, kind string, metadata map[string]any, fields map[string]any) map[string]any {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range fields {
		out[key] = value
	}
	return out
}

func labelsOf(run, id string) map[string]any {
	return map[string]any{RunLabel: run, ScenarioLabel: id}
}

func held(namespace string) map[string]any {
	return manifestOf("v1", "ConfigMap", map[string]any{"name": "held", "namespace": namespace, "finalizers": []any{"example.com/held"}}, nil)
}

func namespace(run, name string) map[string]any {
	return manifestOf("v1", "Namespace", map[string]any{"name": name, "labels": labelsOf(run, name)}, nil)
}

// definition returns a CustomResourceDefinition with two versions. Nothing converts
// between them: its webhook does not exist.
func definition(run, group string) map[string]any {
	anything := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": anything}
	}
	return manifestOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", map[string]any{"name": "gadgets." + group, "labels": labelsOf(run, "at-"+run+"-001")}, map[string]any{"spec": map[string]any{
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
	run, _ := manifest["metadata"].(map[string]any)["labels"].(map[string]any)[RunLabel].(string)
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
		w.create(manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": id + "-a", "labels": labelsOf(run, id), "finalizers": []any{"example.com/held"}}, map[string]any{"value": int64(1)})),
		w.create(manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": id + "-b", "labels": labelsOf(run, id)}, map[string]any{"value": int64(2)})),
		w.define(definition(run, group)),
		w.create(manifestOf(group+"/v1", "Gadget", map[string]any{"name": "held", "namespace": id}, nil)),
	}
	// The policy comes last: it refuses the removal of the rest for as long as it is
	// effective.
	policy := manifestOf("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", map[string]any{"name": id + "-p", "labels": labelsOf(run, id)}, map[string]any{"spec": map[string]any{
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{ScenarioLabel: id}},
			"resourceRules":     []any{map[string]any{"operations": []any{"DELETE", "UPDATE"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}, "scope": "Namespaced"}},
		},
		"validations": []any{map[string]any{"expression": "false"}},
	}})
	binding := manifestOf("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", map[string]any{"name": id + "-p", "labels": labelsOf(run, id)}, map[string]any{"spec": map[string]any{
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

// Everything that scenarios created is gone, and nothing else is. Neither selectors nor deletecollection are needed.
func TestRemoval(t *testing.T) {
	for run, test := range map[string]struct {
		remove func(r *remover, run string) error
		poor   bool
	}{
		"mine":   {remove: func(r *remover, run string) error { return r.removeRun(t.Context(), run) }},
		"killed": {remove: func(r *remover, run string) error { return wantFound(t, r, run) }},
		"poor":   {remove: func(r *remover, run string) error { return wantFound(t, r, run) }, poor: true},
	} {
		t.Run(run, func(t *testing.T) {
			w := newWorld(t)
			gone := everything(w, run)
			sign := newSign(w.client, run)
			if err := sign.open(t.Context()); err != nil {
				t.Fatal(err)
			}
			gone = append(gone, w.kill(sign, run), w.create(manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-" + run + "-001-not-labelled"}, map[string]any{"value": int64(3)})))
			gone = append(gone, w.create(manifestOf("v1", "Namespace", map[string]any{"name": "relay-" + run, "labels": map[string]any{RunLabel: run, LastLabel: "relay"}}, nil)))
			others := []client.Object{
				w.create(namespace("other", "at-other"+run+"-001")), w.create(held("at-other" + run + "-001")),
				w.create(manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-" + run + "2-001-not-labelled"}, map[string]any{"value": int64(3)})),
			}
			r := w.remover
			if test.poor {
				r = w.through(func(next http.RoundTripper) http.RoundTripper { return poor{next} })
			}
			if err := test.remove(r, run); err != nil {
				t.Fatal(err)
			}
			w.want(others, gone)
		})
	}
}

// wantFound cleans up what a run left and fails if that is something else than everything.
func wantFound(t *testing.T, r *remover, run string) error {
	t.Helper()
	found, err := r.cleanup(t.Context(), CleanupOptions{Run: run})
	want := []string{
		"customresourcedefinitions.apiextensions.k8s.io/gadgets." + run + ".example.com", "namespaces/at-" + run + "-001", "namespaces/at-" + run + "-002", "namespaces/at-" + run + "-run", "namespaces/relay-" + run,
		"priorityclasses.scheduling.k8s.io/at-" + run + "-001-a", "priorityclasses.scheduling.k8s.io/at-" + run + "-001-b", "priorityclasses.scheduling.k8s.io/at-" + run + "-001-not-labelled",
		"validatingadmissionpolicies.admissionregistration.k8s.io/at-" + run + "-001-p", "validatingadmissionpolicybindings.admissionregistration.k8s.io/at-" + run + "-001-p",
	}
	if slices.Sort(found); !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if again, failed := r.cleanup(t.Context(), CleanupOptions{Run: run}); failed != nil || len(again) != 0 {
		t.Errorf("second cleanup found %v, %v; want nothing", again, failed)
	}
	return err
}

// want fails if some objects are gone, or others are not.
func (w world) want(there, gone []client.Object) {
	w.Helper()
	for _, o := range there {
		if !w.exists(o) {
			w.Errorf("%s is gone", o)
		}
	}
	for _, o := range gone {
		if w.exists(o) {
			w.Errorf("%s is still there", o)
		}
	}
}

// through returns a remover whose requests go through a RoundTripper.
func (w world) through(wrap func(http.RoundTripper) http.RoundTripper) *remover {
	w.Helper()
	config := testserver.Config(w.T)
	config.Wrap(wrap)
	c, err := client.New(config)
	if err == nil {
		err = c.Discover(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	w.T.Cleanup(c.Close)
	return &remover{client: c, progress: func(line string) { w.Log(line) }}
}

// What cannot be removed is named in the error.
func TestRemoveSaysWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	w.remover.goneLimit = 2 * time.Second
	definition := w.define(definition("stuck", "stuck.example.com"))
	// A custom resource of another client keeps the definition.
	foreign := w.create(manifestOf("stuck.example.com/v1", "Gadget", map[string]any{"name": "held", "namespace": "default", "finalizers": []any{"example.com/held"}}, nil))
	err := w.remover.removeRun(t.Context(), "stuck")
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
	if _, err := w.remover.cleanup(t.Context(), CleanupOptions{Run: "stuck"}); err != nil || w.exists(definition) {
		t.Errorf("cleanup: %v", err)
	}
}

// Every client can set the label of a run, on the objects of other clients too.
func TestLabelIsNoOwnership(t *testing.T) {
	w := newWorld(t)
	w.create(namespace("hostile", "at-hostile-00001"))
	foreign := []client.Object{
		w.create(namespace("hostile", "team-b")),
		w.create(manifestOf("v1", "ConfigMap", map[string]any{"name": "a", "namespace": "team-b"}, nil)),
		w.create(namespace("hostile", "at-hostile2-00001")),
		w.create(manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "team-b", "labels": labelsOf("hostile", "at-hostile-00001")}, map[string]any{"value": int64(3)})),
	}
	if err := w.remover.removeRun(t.Context(), "hostile"); err != nil {
		t.Fatal(err)
	}
	found, err := w.remover.cleanup(t.Context(), CleanupOptions{})
	if err != nil || len(found) != 0 {
		t.Errorf("cleanup found %v, %v; want nothing", found, err)
	}
	w.want(foreign, []client.Object{client.Namespace("at-hostile-00001")})
}

// An object that has the name of one that is gone belongs to the client that created it.
func TestDeleteChecksIdentity(t *testing.T) {
	w := newWorld(t)
	o := w.create(manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-identity-00001-a", "finalizers": []any{"example.com/held"}}, map[string]any{"value": int64(3)}))
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
func (w world) kill(sign *sign, run string) client.Object {
	w.Helper()
	sign.end()
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
	ours := w.createAs("at-rec-00001", manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "recorded"}, map[string]any{"value": int64(3)}))
	theirs := w.create(manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "taken"}, map[string]any{"value": int64(3)}))
	sign := newSign(w.client, "rec")
	if err := sign.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := w.remover.cleanup(t.Context(), CleanupOptions{}); err != nil || len(found) != 0 {
		t.Errorf("cleanup found %v, %v; want nothing of a run that is alive", found, err)
	}
	if _, err := w.remover.cleanup(t.Context(), CleanupOptions{Run: "rec"}); err == nil || !strings.Contains(err.Error(), "is alive") {
		t.Errorf("got %v, want an error: the run is alive", err)
	}
	stored := w.kill(sign, "rec")
	want := []string{"namespaces/at-rec-run", "priorityclasses.scheduling.k8s.io/recorded"}
	for _, dryRun := range []bool{true, false} {
		found, err := w.remover.cleanup(t.Context(), CleanupOptions{DryRun: dryRun})
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

// What cannot be deleted does not keep the rest.
func TestRemoveTheRest(t *testing.T) {
	w := newWorld(t)
	keeps := w.create(manifestOf("scheduling.k8s.io/v1", "PriorityClass", map[string]any{"name": "at-rest-00001-a"}, map[string]any{"value": int64(3)}))
	goes := []client.Object{
		w.create(manifestOf("rbac.authorization.k8s.io/v1", "ClusterRole", map[string]any{"name": "at-rest-00001-b"}, nil)),
		w.create(manifestOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", map[string]any{"name": "at-rest-00001-a", "labels": labelsOf("rest", "at-rest-00001")}, nil)),
	}
	r := w.through(func(next http.RoundTripper) http.RoundTripper {
		return refusing{next, "/apis/scheduling.k8s.io/v1/priorityclasses/" + keeps.Name}
	})
	if err := r.removeRun(t.Context(), "rest"); err == nil || !strings.Contains(err.Error(), keeps.Name) {
		t.Errorf("got %v, want an error that names %s", err, keeps.Name)
	}
	w.want(nil, goes)
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

// clientOf returns a client of a server.
func clientOf(t *testing.T, server *httptest.Server) *client.Client {
	t.Helper()
	c, err := client.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Stop does not wait for an API server that does not answer the renewal.
func TestStopDuringRenewal(t *testing.T) {
	renewing := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPut {
			renewing <- struct{}{}
			<-r.Context().Done()
		}
		_, _ = w.Write(body)
	}))
	defer server.Close()
	rec := newSign(clientOf(t, server), "x")
	if err := rec.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-renewing
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		rec.end()
	}()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	select {
	case <-stopped:
	case <-late.C:
		t.Error("the renewal was not stopped")
	}
}

// A run is alive if it renewed its sign recently, unless its process was on this machine
// and has ended.
func TestAlive(t *testing.T) {
	process := exec.CommandContext(t.Context(), "true")
	if err := process.Run(); err != nil {
		t.Skipf("no process to end: %v", err)
	}
	dead := fmt.Sprintf("%s, process %d", hostname(), process.Process.Pid)
	for name, test := range map[string]struct {
		holder string
		age    time.Duration
		want   bool
	}{
		"this process":                  {holder(), 0, true},
		"ended process":                 {dead, 0, false},
		"process of another machine":    {strings.Replace(dead, hostname(), "elsewhere", 1), 0, true},
		"not renewed":                   {holder(), 2 * aliveFor, false},
		"holder that another one wrote": {"somewhere", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			run := runState{id: "x", holder: test.holder, renewed: time.Now().Add(-test.age)}
			if got := run.alive(); got != test.want {
				t.Errorf("%s (%s): alive %t, want %t", name, run, got, test.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	stored := unstructured.Unstructured{Object: (&sign{run: "x"}).manifest()}
	if got, err := parseSign("x", stored); err != nil || got.holder != holder() || !got.alive() {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parseSign("x", unstructured.Unstructured{}); err == nil {
		t.Error("a ConfigMap without data is a sign")
	}
}

// Other clients can write a ConfigMap with the label of a run, and an API server can ignore selectors. A run has its
// sign in its own namespace.
func TestRunsIgnoresOthers(t *testing.T) {
	item := func(namespace, name, run string) map[string]any {
		manifest := (&sign{run: run}).manifest()
		manifest["metadata"] = map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{RunLabel: run}}
		return manifest
	}
	list := map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "items": []any{
		item(signNamespace("mine"), signName, "mine"), item("tenant", signName, "elsewhere"), item(signNamespace("other"), "another", "other"),
		item(signNamespace(""), signName, ""),
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	found, err := runs(t.Context(), clientOf(t, server))
	if found := slices.Sorted(maps.Keys(found)); err != nil || !slices.Equal(found, []string{"mine"}) {
		t.Errorf("runs %q, %v; want only mine", found, err)
	}
}
