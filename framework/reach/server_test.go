package reach_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

// What TestAgainstServer compares. ADMISSIONTEST_REACH_SEED and ADMISSIONTEST_REACH_REQUESTS change
// the seed and the number of requests.
const (
	defaultSeed     = 2
	defaultRequests = 400
	wantPairs       = 5000
	// wantOfEach is how often each effect and each reason must occur.
	wantOfEach = 10
)

func fromEnv(t *testing.T, name string, value int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		var err error
		if value, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	return value
}

// TestAgainstServer compares Explain with a real kube-apiserver, for random configurations and
// requests. All configurations are installed at the same time. Webhooks are Hooks, which record
// their calls. Validating policies warn, mutating policies annotate.
func TestAgainstServer(t *testing.T) {
	seed, requests := fromEnv(t, "ADMISSIONTEST_REACH_SEED", defaultSeed), fromEnv(t, "ADMISSIONTEST_REACH_REQUESTS", defaultRequests)
	t.Logf("seed %d, %d requests", seed, requests)
	g := generator{rand.New(rand.NewPCG(uint64(seed), 0))} //nolint:gosec // no secret
	w := newWorld(t)
	w.store(g)
	manifests := w.installRandom(g)
	admission, err := reach.New(manifests)
	if err != nil {
		t.Fatal(err)
	}
	type sent struct {
		sort    sort
		request reach.Request
		result  framework.Result
	}
	all := make([]sent, requests)
	for i := range all {
		all[i].sort, all[i].request = g.request(i, w.stored)
	}
	recording := w.hooks.Record("reach")
	var group errgroup.Group
	group.SetLimit(4)
	for i := range all {
		group.Go(func() (err error) {
			all[i].result, err = w.target.Do(t.Context(), clientRequest(all[i].sort, all[i].request))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	called := map[string]map[string]bool{}
	for _, call := range recording.Calls() {
		user, _, _ := unstructured.NestedString(call.Request(), "userInfo", "username")
		if called[user] == nil {
			called[user] = map[string]bool{}
		}
		called[user][call.Webhook] = true
	}
	c := &comparison{t: t, seen: map[string]int{}}
	for _, s := range all {
		if s.request.Operation == "CREATE" && s.request.Name == "" {
			generated := unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.request.Object)}
			generated.SetName("new-generated")
			s.request.Object = generated.Object
		}
		s.request.WebhooksForReviews = !w.target.Info().FeatureGates["ExcludeAdmissionWebhookVirtualResources"]
		findings, err := admission.Explain(t.Context(), s.request, w)
		if err != nil {
			t.Fatal(err)
		}
		c.compare(s.sort, s.request, findings, s.result, called[s.request.User.Name])
	}
	t.Logf("%d pairs: %v", c.pairs, c.seen)
	if c.pairs < wantPairs {
		t.Errorf("compared %d pairs, want %d", c.pairs, wantPairs)
	}
	for _, key := range every() {
		if c.seen[key] < wantOfEach {
			t.Errorf("%s occurred %d times, want %d", key, c.seen[key], wantOfEach)
		}
	}
}

// every returns the effects and reasons that must occur.
func every() []string {
	all := []string{string(reach.EffectCalled), string(reach.EffectInvalid), string(reach.EffectMutates), string(reach.EffectRefused)}
	for _, reason := range []reach.Reason{
		reach.ReasonNoBinding, reach.ReasonNoPolicy, reach.ReasonExempt, reach.ReasonGroup, reach.ReasonResource, reach.ReasonSubresource,
		reach.ReasonVersion, reach.ReasonOperation, reach.ReasonScope, reach.ReasonResourceName, reach.ReasonMatchPolicy, reach.ReasonExcluded,
		reach.ReasonNamespaceSelector, reach.ReasonObjectSelector, reach.ReasonBindingMatch, reach.ReasonNoParams, reach.ReasonMatchCondition,
		reach.ReasonErrorIgnored, reach.ReasonValid,
	} {
		all = append(all, string(reason))
	}
	return all
}

// comparison compares Findings with what was observed.
type comparison struct {
	t     *testing.T
	pairs int
	seen  map[string]int
}

// refusal returns the message of a refusal by admission, or "".
func refusal(result framework.Result) string {
	message := result.Status.Message
	for _, part := range []string{"denied request", "denied the request", "resulted in error"} {
		if strings.Contains(message, part) {
			return message
		}
	}
	return ""
}

func (c *comparison) compare(s sort, request reach.Request, findings []reach.Finding, result framework.Result, called map[string]bool) {
	c.t.Helper()
	what := fmt.Sprintf("%s %s %s %s/%s by %s (%d %s)", s.operation, request.Resource.GroupVersion(), s.path(), request.Namespace, request.Name, request.User.Name, result.Status.Code, result.Status.Message)
	message := refusal(result)
	if message == "" && !result.Allowed() && s.operation != "CONNECT" {
		c.t.Fatalf("%s: got no decision of admission", what)
	}
	if len(strings.Join(result.Warnings, "")) > 4000 {
		c.t.Fatalf("%s: kube-apiserver leaves out warnings: install fewer policies", what)
	}
	annotations := (&unstructured.Unstructured{Object: result.Fields()}).GetAnnotations()
	named := false
	for _, f := range findings {
		refuses := f.Effect == reach.EffectRefused || f.Effect == reach.EffectInvalid && strings.HasPrefix(f.Name, "r")
		switch {
		case f.Effect == reach.EffectUnknown:
			c.t.Errorf("%s: %s", what, f)
		case refuses && message == "":
			c.t.Errorf("%s: got no refusal, want one: %s", what, f)
		case refuses:
			if strings.Contains(message, "'"+f.Name+"'") || f.Webhook != "" && strings.Contains(message, "resulted in error") {
				named = true
				c.count(f)
			}
		case message != "":
			// The request did not reach all of them.
		case f.Webhook != "":
			if got, want := called[f.Webhook], f.Effect == reach.EffectCalled; got != want {
				c.t.Errorf("%s: called is %t: %s", what, got, f)
			}
			c.count(f)
		case f.Kind == "MutatingAdmissionPolicy":
			c.compareMutating(what, s, f, annotations)
		default:
			c.compareValidating(what, f, result.Warnings)
		}
	}
	if message != "" && !named {
		c.t.Errorf("%s: no finding refuses", what)
	}
}

// compareMutating looks for the annotation of a policy. Subresources and deletes do not return it.
func (c *comparison) compareMutating(what string, s sort, f reach.Finding, annotations map[string]string) {
	if s.subresource != "" || s.operation == "DELETE" {
		return
	}
	if _, got := annotations[f.Name]; got != (f.Effect == reach.EffectMutates) {
		c.t.Errorf("%s: annotated is %t: %s", what, got, f)
	}
	c.count(f)
}

// compareValidating looks for the warnings of a policy and a binding.
func (c *comparison) compareValidating(what string, f reach.Finding, warnings []string) {
	var got []int
	for i := range 2 {
		for _, warning := range warnings {
			if warning == fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': m%d", f.Name, f.Binding, i) {
				got = append(got, i)
			}
		}
	}
	if !slices.Equal(got, f.Validations) {
		c.t.Errorf("%s: warnings of validations %v, want %v: %s", what, got, f.Validations, f)
	}
	c.count(f)
}

func (c *comparison) count(f reach.Finding) {
	c.pairs++
	if f.Effect == reach.EffectNone {
		c.seen[string(f.Reason)]++
		return
	}
	c.seen[string(f.Effect)]++
}

// world is an API server with stored objects. It is a reach.Cluster that asks the server.
type world struct {
	runtime.EquivalentResourceMapper
	t      *testing.T
	target *apiserver.Target
	hooks  *hook.Server

	mu    sync.Mutex
	known map[string]map[string]any
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config := testserver.Own(t) // the objects that it creates stay
	target, err := apiserver.New(t.Context(), apiserver.Options{Config: config, Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	hooks, err := hook.Start(context.Background(), hook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hooks.Close() })
	w := &world{t: t, target: target, hooks: hooks, known: map[string]map[string]any{}}
	sandbox, err := target.NewSandbox(t.Context(), apiserver.SandboxOptions{ID: "at-" + target.RunID() + "-reach"})
	if err != nil {
		t.Fatal(err)
	}
	definitions := []map[string]any{definition("widgets", "Widget", "Namespaced", "v1", "v2", "v3"), definition("gadgets", "Gadget", "Cluster", "v1")}
	for _, crd := range definitions {
		if err := sandbox.Install(t.Context(), crd, nil); err != nil {
			t.Fatal(err)
		}
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	w.EquivalentResourceMapper = reach.NewMapper(lists, definitions...)
	return w
}

func definition(plural, kind, scope string, versions ...string) map[string]any {
	var list []any
	for _, version := range versions {
		list = append(list, map[string]any{
			"name": version, "served": true, "storage": version == "v1", "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + crdGroup},
		"spec": map[string]any{"group": crdGroup, "scope": scope, "names": map[string]any{"plural": plural, "kind": kind}, "versions": list},
	}
}

// create creates an object.
func (w *world) create(object map[string]any) {
	w.t.Helper()
	of := unstructured.Unstructured{Object: object}
	result, err := w.target.Do(w.t.Context(), framework.Request{
		Verb: framework.VerbCreate, Kind: of.GroupVersionKind(), Namespace: of.GetNamespace(), Name: of.GetName(), Object: &of,
	})
	if err != nil || !result.Allowed() {
		w.t.Fatalf("create %s %s: %v %s", of.GetKind(), of.GetName(), err, result.Status.Message)
	}
}

// store creates the objects that requests change or delete, and that are params.
func (w *world) store(g generator) {
	object := func(apiVersion, kind, namespace, name string, more map[string]any) {
		of := unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"labels": g.labels()}}}
		of.SetNamespace(namespace)
		of.SetName(name)
		maps.Copy(of.Object, more)
		w.create(of.Object)
	}
	selector := map[string]any{"app": "x"}
	for i := range 4 {
		namespace := fmt.Sprint("ns-", i)
		object("v1", "Namespace", "", namespace, nil)
		for k := range 2 {
			object("v1", "ConfigMap", namespace, fmt.Sprint("old-", k), nil)
			object(crdGroup+"/v1", "Widget", namespace, fmt.Sprint("old-", k), nil)
		}
		object("v1", "Service", namespace, "old-0", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}})
		object("apps/v1", "Deployment", namespace, "old-0", map[string]any{"spec": map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": selector},
			"template": map[string]any{
				"metadata": map[string]any{"labels": selector}, "spec": map[string]any{"containers": []any{map[string]any{"name": "x", "image": "x"}}},
			},
		}})
	}
	for k := range 2 {
		object(crdGroup+"/v1", "Gadget", "", fmt.Sprint("old-", k), nil)
	}
}

// installRandom installs random configurations and waits until the API server acts on them. It
// returns all of them.
func (w *world) installRandom(g generator) []map[string]any {
	w.t.Helper()
	manifests := slices.Concat(refusers(), unbound(), always())
	for i := range 20 {
		manifests = append(manifests, g.webhook("ValidatingWebhookConfiguration", fmt.Sprint("v", i)), g.webhook("MutatingWebhookConfiguration", fmt.Sprint("w", i)))
		manifests = append(manifests, g.validatingPolicy(fmt.Sprint("p", i))...)
		if i < 10 {
			manifests = append(manifests, g.mutatingPolicy(fmt.Sprint("q", i))...)
		}
	}
	for _, param := range []string{"ConfigMap", "Gadget"} {
		manifests = append(manifests, warmUp(param)...)
	}
	for _, m := range manifests {
		installed := runtime.DeepCopyJSON(m)
		w.connect(installed)
		w.create(installed)
	}
	if err := w.target.WaitUntilEffective(w.t.Context(), manifests); err != nil {
		w.t.Fatal(err)
	}
	w.waitForParams()
	return manifests
}

// connect connects the webhooks of a configuration to Hooks.
func (w *world) connect(manifest map[string]any) {
	w.t.Helper()
	webhooks, _ := manifest["webhooks"].([]any)
	for _, item := range webhooks {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		phase := framework.Validating
		if manifest["kind"] == "MutatingWebhookConfiguration" {
			phase = framework.Mutating
		}
		registered, err := w.hooks.Register(hook.Hook{Owner: "reach", Configuration: strings.TrimSuffix(name, ".example.com"), Webhook: name, Phase: phase})
		if err != nil {
			w.t.Fatal(err)
		}
		fields["clientConfig"] = map[string]any{"url": registered.URL, "caBundle": base64.StdEncoding.EncodeToString(registered.CABundle)}
	}
}

// warmUp returns a policy that warns about one request if the API server has read the params of a
// kind.
func warmUp(kind string) []map[string]any {
	apiVersion := "v1"
	if kind == "Gadget" {
		apiVersion = crdGroup + "/v1"
	}
	name := "t" + strings.ToLower(kind)
	return []map[string]any{
		manifest("ValidatingAdmissionPolicy", name, map[string]any{"spec": map[string]any{
			"failurePolicy": "Ignore", "paramKind": map[string]any{"apiVersion": apiVersion, "kind": kind},
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "resourceNames": []any{"warm-up"},
			}}},
			"validations": []any{map[string]any{"expression": "false", "message": "m0"}},
		}}),
		manifest("ValidatingAdmissionPolicyBinding", name+"b0", map[string]any{"spec": map[string]any{
			"policyName": name, "validationActions": []any{"Warn"}, "paramRef": map[string]any{"name": "old-0", "parameterNotFoundAction": "Deny"},
		}}),
	}
}

// waitForParams waits until the API server has read all params.
func (w *world) waitForParams() {
	w.t.Helper()
	request := framework.Request{
		Verb: framework.VerbCreate, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns-0", Name: "warm-up", DryRun: true,
		Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "warm-up"}}},
	}
	err := wait.PollUntilContextTimeout(w.t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		result, err := w.target.Do(ctx, request)
		all := strings.Join(result.Warnings, "\n")
		return strings.Contains(all, "'tconfigmap'") && strings.Contains(all, "'tgadget'"), err
	})
	if err != nil {
		w.t.Fatalf("wait until the API server has read the params: %v", err)
	}
}

// get returns a stored object, or nil.
func (w *world) get(kind schema.GroupVersionKind, namespace, name string) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(kind, namespace, "/", name)
	if known, ok := w.known[key]; ok {
		return known, nil
	}
	result, err := w.target.Do(w.t.Context(), framework.Request{Verb: framework.VerbGet, Kind: kind, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	if result.Allowed() {
		w.known[key] = result.Fields()
	}
	return w.known[key], nil
}

func (w *world) stored(kind schema.GroupVersionKind, namespace, name string) map[string]any {
	object, err := w.get(kind, namespace, name)
	if err != nil || object == nil {
		w.t.Fatalf("read %s %s/%s: %v", kind.Kind, namespace, name, err)
	}
	return object
}

// Namespace implements reach.Cluster.
func (w *world) Namespace(_ context.Context, name string) (map[string]any, error) {
	return w.get(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "", name)
}

// Params implements reach.Cluster: those are the objects of store.
func (w *world) Params(_ context.Context, kind schema.GroupVersionKind) (reach.Params, error) {
	params := reach.Params{Served: true, Namespaced: kind.Kind == "ConfigMap"}
	for k := range 2 {
		name := fmt.Sprint("old-", k)
		if !params.Namespaced {
			params.Objects = append(params.Objects, w.stored(kind, "", name))
			continue
		}
		for i := range 4 {
			params.Objects = append(params.Objects, w.stored(kind, fmt.Sprint("ns-", i), name))
		}
	}
	return params, nil
}

// Convert implements reach.Cluster: versions differ in nothing that expressions of this test read.
func (w *world) Convert(_ context.Context, object map[string]any, kind schema.GroupVersionKind) (map[string]any, error) {
	out := maps.Clone(object)
	out["apiVersion"] = kind.GroupVersion().String()
	return out, nil
}

// clientRequest returns the request of a client.
func clientRequest(s sort, r reach.Request) framework.Request {
	user := r.User
	out := framework.Request{Kind: s.kind, Namespace: r.Namespace, Name: r.Name, Subresource: r.Subresource, DryRun: r.DryRun, User: &user}
	switch r.Operation {
	case "CREATE":
		out.Verb = framework.VerbCreate
	case "UPDATE":
		out.Verb = framework.VerbUpdate
	case "DELETE":
		out.Verb = framework.VerbDelete
	case "CONNECT":
		out.Verb, out.HTTP.Method = framework.VerbConnect, "GET"
		return out
	}
	if r.Object != nil {
		out.Object = &unstructured.Unstructured{Object: r.Object}
	}
	return out
}
