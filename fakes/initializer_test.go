package fakes_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/fakes/effectiveversion"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinitializer "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
)

// everything has the setters of what an API server injects, in all supported minors. Package
// testdata/since36 tests what 0.34 does not have.
type everything struct {
	*admission.Handler

	calls      []string
	id         string
	drained    <-chan struct{}
	version    compatibility.EffectiveVersion
	gates      featuregate.FeatureGate
	authorizer authorizer.Authorizer
	quota      quota.Configuration
	excluded   []schema.GroupResource
	resolver   webhook.ServiceResolver
	wrapper    webhook.AuthenticationInfoResolverWrapper
}

func (e *everything) note(method string) { e.calls = append(e.calls, method) }

// set notes a call, and keeps its argument.
func set[T any](e *everything, method string, field *T, value T) {
	e.note(method)
	*field = value
}

func (e *everything) ValidateInitialization() error { return nil }

func (e *everything) SetAPIServerID(v string) { set(e, "SetAPIServerID", &e.id, v) }

func (e *everything) SetDrainedNotification(v <-chan struct{}) {
	set(e, "SetDrainedNotification", &e.drained, v)
}

func (e *everything) InspectEffectiveVersion(v compatibility.EffectiveVersion) {
	set(e, "InspectEffectiveVersion", &e.version, v)
}

func (e *everything) InspectFeatureGates(v featuregate.FeatureGate) {
	set(e, "InspectFeatureGates", &e.gates, v)
}

func (e *everything) SetExternalKubeClientSet(kubernetes.Interface) {
	e.note("SetExternalKubeClientSet")
}

func (e *everything) SetDynamicClient(dynamic.Interface) { e.note("SetDynamicClient") }

func (e *everything) SetExternalKubeInformerFactory(informers.SharedInformerFactory) {
	e.note("SetExternalKubeInformerFactory")
}

func (e *everything) SetAuthorizer(v authorizer.Authorizer) {
	set(e, "SetAuthorizer", &e.authorizer, v)
}

func (e *everything) SetRESTMapper(meta.RESTMapper) { e.note("SetRESTMapper") }

func (e *everything) SetQuotaConfiguration(v quota.Configuration) {
	set(e, "SetQuotaConfiguration", &e.quota, v)
}

func (e *everything) SetExcludedAdmissionResources(v []schema.GroupResource) {
	set(e, "SetExcludedAdmissionResources", &e.excluded, v)
}

func (e *everything) SetServiceResolver(v webhook.ServiceResolver) {
	set(e, "SetServiceResolver", &e.resolver, v)
}

func (e *everything) SetAuthenticationInfoResolverWrapper(v webhook.AuthenticationInfoResolverWrapper) {
	set(e, "SetAuthenticationInfoResolverWrapper", &e.wrapper, v)
}

func newEverything() *everything {
	return &everything{Handler: admission.NewHandler(admission.Create)}
}

func version(t *testing.T) fakes.Injector {
	t.Helper()
	return effectiveversion.Inject(effectiveversion.New(t, "1.36", "1.35"))
}

func methods(log []fakes.Injection) []string {
	var names []string
	for _, injection := range log {
		names = append(names, injection.Method)
	}
	return names
}

// ofKubernetes calls initializer.New, whose number of parameters differs between
// minors, with zero values.
func ofKubernetes(t *testing.T) admission.PluginInitializer {
	t.Helper()
	made := reflect.ValueOf(initializer.New)
	var zeros []reflect.Value
	for i := range made.Type().NumIn() {
		zeros = append(zeros, reflect.Zero(made.Type().In(i)))
	}
	result, ok := made.Call(zeros)[0].Interface().(admission.PluginInitializer)
	if !ok {
		t.Fatal("initializer.New does not return an admission.PluginInitializer")
	}
	return result
}

// TestOrderIsThatOfKubernetes compares with the initializers of the Kubernetes compiled against,
// apart from setters that 0.34 does not have.
func TestOrderIsThatOfKubernetes(t *testing.T) {
	later := func(method string) bool { return method == "SetAPIServerID" || method == "InspectEffectiveVersion" }
	original := newEverything()
	admission.PluginInitializers{
		ofKubernetes(t),
		webhookinitializer.NewPluginInitializer(func(r webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver { return r }, nil),
	}.Initialize(original)
	// Initializers of kube-apiserver: package pkg/controlplane/apiserver/admission, then
	// pkg/kubeapiserver/admission, of k8s.io/kubernetes, which this module does without.
	want := append(slices.DeleteFunc(original.calls, later), "SetQuotaConfiguration", "SetExcludedAdmissionResources")

	ours := newEverything()
	i := fakes.NewInitializer(fakes.NewWorld(t), version(t)).Strict()
	i.Initialize(ours)
	if err := i.Err(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(ours.calls, methods(i.Log())); diff != "" {
		t.Errorf("- called, + log:\n%s", diff)
	}
	if n := len(ours.calls); n != 13 {
		t.Errorf("%d calls, want 13: %v", n, ours.calls)
	}
	if diff := cmp.Diff(want, slices.DeleteFunc(ours.calls, later)); diff != "" {
		t.Errorf("- Kubernetes, + ours:\n%s", diff)
	}
}

func TestValues(t *testing.T) {
	plugin, w := newEverything(), fakes.NewWorld(t)
	i := fakes.NewInitializer(w, version(t))
	i.Initialize(plugin)
	select {
	case <-plugin.drained:
		t.Error("drained before Drain")
	default:
	}
	i.Drain()
	i.Drain()
	<-plugin.drained
	if decision, _, err := plugin.authorizer.Authorize(t.Context(), authorizer.AttributesRecord{}); decision != authorizer.DecisionAllow || err != nil {
		t.Errorf("authorizer: %v, %v", decision, err)
	}
	if plugin.gates.Enabled("AllAlpha") {
		t.Error("the alpha gates are on")
	}
	if len(plugin.excluded) != 6 {
		t.Errorf("excluded: %v", plugin.excluded)
	}
	if _, err := plugin.resolver.ResolveEndpoint("a", "b", 443); err == nil || !strings.Contains(err.Error(), "resolve service a/b:443: the test has no services") {
		t.Errorf("got %v for service a/b", err)
	}
	if resolver := plugin.wrapper(nil); resolver != nil {
		t.Errorf("wrapper: %v", resolver)
	}
	if got := plugin.version.EmulationVersion().String(); got != "1.35" {
		t.Errorf("emulation version %s", got)
	}
	if len(plugin.quota.Evaluators()) != 0 {
		t.Error("quota has evaluators")
	}
}

func TestValuesOfInjectors(t *testing.T) {
	registerGates(t)
	resolver := webhook.NewDefaultServiceResolver()
	wrapper := func(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{}
	}
	plugin, a := newEverything(), fakes.Deny()
	quotas := fakes.Quota(evaluator{})
	i := fakes.NewInitializer(fakes.NewWorld(t), version(t),
		fakes.InjectAuthorizer(a), fakes.InjectQuotaConfiguration(quotas),
		fakes.InjectFeatureGates(fakes.Gates(map[featuregate.Feature]bool{"Mine": true})),
		fakes.InjectServiceResolver(resolver),
		fakes.InjectAuthenticationInfoResolverWrapper(wrapper),
		fakes.Inject("WantsAPIServerID", func(p interface{ SetAPIServerID(string) }) { p.SetAPIServerID("") }),
	).Strict()
	i.Initialize(plugin)
	if err := i.Err(); err != nil {
		t.Error(err)
	}
	if plugin.authorizer != authorizer.Authorizer(a) || !plugin.gates.Enabled("Mine") || plugin.quota != quotas || plugin.wrapper(nil) == nil {
		t.Errorf("%+v", plugin)
	}
	if _, err := plugin.resolver.ResolveEndpoint("a", "b", 443); err != nil {
		t.Error(err)
	}
	if plugin.id != "" || plugin.calls[0] != "SetAPIServerID" {
		t.Errorf("the Injector did not replace WantsAPIServerID: %v", plugin.calls)
	}
}

func TestOrders(t *testing.T) {
	run := func(order fakes.Order) []string {
		plugin := newEverything()
		i := fakes.NewInitializer(fakes.NewWorld(t), version(t)).InOrder(order)
		i.Initialize(plugin)
		if err := i.Err(); err != nil {
			t.Error(err)
		}
		return plugin.calls
	}
	original := run(nil)
	if diff := cmp.Diff(original, run(fakes.DefaultOrder())); diff != "" {
		t.Error(diff)
	}
	reversed := slices.Clone(original)
	slices.Reverse(reversed)
	if diff := cmp.Diff(reversed, run(fakes.Reverse())); diff != "" {
		t.Error(diff)
	}
	seven, eight := run(fakes.Shuffled(7)), run(fakes.Shuffled(8))
	if diff := cmp.Diff(seven, run(fakes.Shuffled(7))); diff != "" {
		t.Errorf("the same seed, another order:\n%s", diff)
	}
	if slices.Equal(seven, eight) || slices.Equal(seven, original) {
		t.Errorf("%v and %v", seven, eight)
	}
	slices.Sort(seven)
	if diff := cmp.Diff(slices.Sorted(slices.Values(original)), seven); diff != "" {
		t.Errorf("shuffled has other names:\n%s", diff)
	}
}

func TestSkip(t *testing.T) {
	plugin := newEverything()
	i := fakes.NewInitializer(fakes.NewWorld(t)).Strict().Skip("WantsAuthorizer", "WantsEffectiveVersion")
	i.Initialize(plugin)
	if err := i.Err(); err != nil {
		t.Error(err)
	}
	for _, method := range []string{"SetAuthorizer", "InspectEffectiveVersion"} {
		if slices.Contains(plugin.calls, method) || slices.Contains(methods(i.Log()), method) {
			t.Errorf("%s was called", method)
		}
	}
	if len(plugin.calls) != 11 {
		t.Errorf("%d calls: %v", len(plugin.calls), plugin.calls)
	}
}

// kcpWants is an interface of another project, with a setter of two arguments.
type kcpWants interface{ SetKcpInformers(local, global string) }

type kcpPlugin struct {
	*admission.Handler

	local, global string
}

func (p *kcpPlugin) SetKcpInformers(local, global string) { p.local, p.global = local, global }

func TestInjectOwn(t *testing.T) {
	plugin := &kcpPlugin{Handler: admission.NewHandler(admission.Create)}
	i := fakes.NewInitializer(fakes.NewWorld(t), fakes.Inject("WantsKcpInformers", func(p kcpWants) { p.SetKcpInformers("l", "g") })).Strict()
	i.Initialize(plugin)
	if err := i.Err(); err != nil {
		t.Error(err)
	}
	if plugin.local != "l" || plugin.global != "g" {
		t.Errorf("%+v", plugin)
	}
	want := []fakes.Injection{{Interface: "WantsKcpInformers", Method: "SetKcpInformers"}}
	if diff := cmp.Diff(want, i.Log()); diff != "" {
		t.Error(diff)
	}
}
