// Package since36 tests package fakes with what Kubernetes has since 0.36. Source that
// also compiles against 0.34 cannot name it, so this package is in testdata, where ./...
// does not find it: `make test` and `make test-minors` name it.
package since36

import (
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

// everything has the setters of all that an API server of Kubernetes 0.36 injects.
type everything struct {
	*admission.Handler

	calls   []string
	loaders *initializer.ManifestLoaders
}

var (
	_ initializer.WantsAPIServerID                              = &everything{}
	_ initializer.WantsDrainedNotification                      = &everything{}
	_ initializer.WantsEffectiveVersion                         = &everything{}
	_ initializer.WantsFeatures                                 = &everything{}
	_ initializer.WantsExternalKubeClientSet                    = &everything{}
	_ initializer.WantsDynamicClient                            = &everything{}
	_ initializer.WantsExternalKubeInformerFactory              = &everything{}
	_ initializer.WantsAuthorizer                               = &everything{}
	_ initializer.WantsRESTMapper                               = &everything{}
	_ initializer.WantsQuotaConfiguration                       = &everything{}
	_ initializer.WantsExcludedAdmissionResources               = &everything{}
	_ initializer.WantsManifestLoaders                          = &everything{}
	_ webhookinitializer.WantsServiceResolver                   = &everything{}
	_ webhookinitializer.WantsAuthenticationInfoResolverWrapper = &everything{}
)

func (e *everything) note(method string) { e.calls = append(e.calls, method) }

func (e *everything) ValidateInitialization() error          { return nil }
func (e *everything) SetAPIServerID(string)                  { e.note("SetAPIServerID") }
func (e *everything) SetDrainedNotification(<-chan struct{}) { e.note("SetDrainedNotification") }
func (e *everything) SetExternalKubeClientSet(kubernetes.Interface) {
	e.note("SetExternalKubeClientSet")
}
func (e *everything) SetDynamicClient(dynamic.Interface)          { e.note("SetDynamicClient") }
func (e *everything) SetAuthorizer(authorizer.Authorizer)         { e.note("SetAuthorizer") }
func (e *everything) SetRESTMapper(meta.RESTMapper)               { e.note("SetRESTMapper") }
func (e *everything) SetQuotaConfiguration(quota.Configuration)   { e.note("SetQuotaConfiguration") }
func (e *everything) InspectFeatureGates(featuregate.FeatureGate) { e.note("InspectFeatureGates") }
func (e *everything) SetServiceResolver(webhook.ServiceResolver)  { e.note("SetServiceResolver") }
func (e *everything) InspectEffectiveVersion(compatibility.EffectiveVersion) {
	e.note("InspectEffectiveVersion")
}

func (e *everything) SetExternalKubeInformerFactory(informers.SharedInformerFactory) {
	e.note("SetExternalKubeInformerFactory")
}

func (e *everything) SetExcludedAdmissionResources([]schema.GroupResource) {
	e.note("SetExcludedAdmissionResources")
}

func (e *everything) SetAuthenticationInfoResolverWrapper(webhook.AuthenticationInfoResolverWrapper) {
	e.note("SetAuthenticationInfoResolverWrapper")
}

func (e *everything) SetManifestLoaders(l *initializer.ManifestLoaders) {
	e.note("SetManifestLoaders")
	e.loaders = l
}

func newEverything() *everything {
	return &everything{Handler: admission.NewHandler(admission.Create)}
}

// TestOrderIsThatOfKubernetes compares with all initializers of an API server.
func TestOrderIsThatOfKubernetes(t *testing.T) {
	original := newEverything()
	admission.PluginInitializers{
		initializer.NewAPIServerIDInitializer("id"),
		initializer.New(nil, nil, nil, nil, nil, nil, nil, nil),
		webhookinitializer.NewPluginInitializer(func(r webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver { return r }, nil),
	}.Initialize(original)
	// Initializers of kube-apiserver: package pkg/controlplane/apiserver/admission, then
	// pkg/kubeapiserver/admission, of k8s.io/kubernetes, which this module does without.
	want := append(original.calls, "SetQuotaConfiguration", "SetExcludedAdmissionResources", "SetManifestLoaders")

	ours := newEverything()
	i := fakes.NewInitializer(fakes.NewWorld(t), effectiveversion.Inject(effectiveversion.New(t, "1.36", "1.35"))).Strict()
	i.Initialize(ours)
	if err := i.Err(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, ours.calls); diff != "" {
		t.Errorf("- Kubernetes, + ours:\n%s", diff)
	}
	if list, hash, err := ours.loaders.LoadValidatingWebhookManifests("folder"); list != nil || hash != "" || err != nil {
		t.Errorf("manifests: %v %v %v", list, hash, err)
	}
	if _, _, _, err := ours.loaders.LoadMutatingPolicyManifests("folder"); err != nil {
		t.Errorf("manifests: %v", err)
	}
}
