package builtin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/framework/harness/builtin"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	initializer "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/client-go/informers"
)

// only returns a chain of one plugin.
func only(name string) harness.Chain {
	all := append(builtin.Plugins(), builtin.ResourceQuota())
	return harness.Chain{Plugins: []harness.Source{all[slices.Index([]string{
		"NamespaceLifecycle", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "ResourceQuota",
	}, name)]}}
}

// INIT-006, INIT-007, NSLIFE-023: a plugin that misses something does not start, and says what it
// misses.
func TestPluginsThatMissSomething(t *testing.T) {
	for plugin, misses := range map[string]map[string]string{
		"NamespaceLifecycle": {
			"WantsExternalKubeInformerFactory": "missing namespaceLister",
			"WantsExternalKubeClientSet":       "missing client",
		},
		"MutatingAdmissionWebhook":   {"WantsExternalKubeInformerFactory": "kubernetes client is not properly setup", "WantsExternalKubeClientSet": "namespaceMatcher is not properly setup"},
		"ValidatingAdmissionWebhook": {"WantsExternalKubeInformerFactory": "kubernetes client is not properly setup", "WantsExternalKubeClientSet": "namespaceMatcher is not properly setup"},
		"ValidatingAdmissionPolicy": {
			"WantsExternalKubeInformerFactory":             "missing informer factory",
			"WantsExternalKubeClientSet":                   "missing kubernetes client",
			"WantsRESTMapper":                              "missing rest mapper",
			"WantsDynamicClient":                           "missing dynamic client",
			"WantsDrainedNotification":                     "missing stop channel",
			"WantsAuthorizer,WantsUnconditionalAuthorizer": "missing authorizer", // the latter since 1.37
		},
	} {
		for wants, want := range misses {
			t.Run(plugin+"/"+wants, func(t *testing.T) {
				_, err := harness.BuildChain(t, only(plugin), harness.WithInitializer(fakes.NewInitializer(fakes.NewWorld(t)).Skip(strings.Split(wants, ",")...)))
				if err == nil || !strings.Contains(err.Error(), `failed to initialize admission plugin "`+plugin+`": `+want) {
					t.Errorf("got %v, want an error with %q", err, want)
				}
			})
		}
		if _, err := harness.BuildChain(t, only(plugin)); err != nil {
			t.Errorf("%s with all that it wants: %v", plugin, err)
		}
	}
}

// INIT-008: ResourceQuota must get the drained notification before the quota configuration.
func TestQuotaWantsTheNotificationFirst(t *testing.T) {
	w := fakes.NewWorld(t)
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("first %t", first), func(t *testing.T) {
			plugin, err := resourcequota.NewResourceQuota(nil, 1)
			if err != nil {
				t.Fatal(err)
			}
			plugin.SetExternalKubeClientSet(w.Client())
			plugin.SetExternalKubeInformerFactory(w.Informers())
			if first {
				plugin.SetDrainedNotification(t.Context().Done())
			}
			plugin.SetQuotaConfiguration(fakes.Quota())
			plugin.SetDrainedNotification(t.Context().Done())
			if err := plugin.ValidateInitialization(); (err == nil) != first {
				t.Errorf("notification first: %t; got %v", first, err)
			}
		})
	}
}

// INIT-011: a nil service resolver or wrapper leaves the default ones in place: the webhook is
// called at the DNS name of its Service, with a client that has no credentials.
func TestNilResolverAndWrapper(t *testing.T) {
	configuration := read[admissionregistrationv1.ValidatingWebhookConfiguration](t, "metadata: {name: v}\nwebhooks: [{name: a.example.com, timeoutSeconds: 1, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {service: {namespace: absent, name: gone}}, "+onPods+"}]")
	w := fakes.NewWorld(t, fakes.WithObjects(append(builtin.Stored(t, configuration), namespace("default"))...))
	given := 0
	inject := fakes.Inject("nil", func(plugin interface {
		initializer.WantsServiceResolver
		initializer.WantsAuthenticationInfoResolverWrapper
	}) {
		given++
		plugin.SetServiceResolver(nil)
		plugin.SetAuthenticationInfoResolverWrapper(nil)
	})
	h := harness.NewChain(t, only("ValidatingAdmissionWebhook"), harness.WithInitializer(fakes.NewInitializer(w, inject).Skip("WantsServiceResolver", "WantsAuthenticationInfoResolverWrapper")), harness.WithWorld(w))
	h.Do(framework.Create(pod())).MustReject(t, metav1.StatusReasonInternalError, "https://gone.absent.svc:443/")
	if given != 1 {
		t.Errorf("%d plugins got nil, want one", given)
	}
}

// counting is an informer factory that counts the attempts to start it.
type counting struct {
	informers.SharedInformerFactory
	started *atomic.Int64
}

func (c counting) Start(stop <-chan struct{}) {
	c.started.Add(1)
	c.SharedInformerFactory.Start(stop)
}

// StartWithContext is a method of factories since Kubernetes 1.36.
func (c counting) StartWithContext(context.Context) { c.started.Add(1) }

// INIT-010: no plugin starts the informers of the factory that all plugins share.
func TestPluginsDoNotStartInformers(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(namespace("default")))
	var started atomic.Int64
	given := 0
	inject := fakes.Inject("WantsExternalKubeInformerFactory", func(plugin interface {
		admission.InitializationValidator
		SetExternalKubeInformerFactory(informers.SharedInformerFactory)
	}) {
		given++
		plugin.SetExternalKubeInformerFactory(counting{w.Informers(), &started})
	})
	h := harness.NewChain(t, harness.Chain{Plugins: append(builtin.Plugins(), builtin.ResourceQuota())}, harness.WithWorld(w), harness.WithInjectors(inject))
	h.Do(framework.Create(pod())).MustAllow(t)
	if given != 6 || started.Load() != 0 {
		t.Errorf("%d plugins got the factory and started it %d times; want 6 and none", given, started.Load())
	}
}

// CHAIN-018: without a ready function, a handler is ready. With one, it asks again and again,
// until the function says so, for up to ten seconds.
func TestWaitForReady(t *testing.T) {
	for name, test := range map[string]struct {
		readyAt int // the number of the call of the ready function; 0 means never
		want    bool
		atLeast time.Duration
	}{"at once": {1, true, 0}, "later": {4, true, 200 * time.Millisecond}, "never": {0, false, 10 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := admission.NewHandler(admission.Create)
				if !handler.WaitForReady() {
					t.Error("a handler without a ready function is not ready")
				}
				calls := 0
				handler.SetReadyFunc(func() bool { calls++; return calls == test.readyAt })
				start := time.Now()
				got := handler.WaitForReady()
				if waited := time.Since(start); got != test.want || waited < test.atLeast || waited > 11*time.Second {
					t.Errorf("ready %t after %s and %d calls, want %t", got, waited, calls, test.want)
				}
			})
		})
	}
}

// CHAIN-019, NSLIFE-020: a plugin whose caches do not sync refuses requests after ten seconds. Once
// they have, it admits them.
func TestPluginsWithoutCaches(t *testing.T) {
	for plugin, unsynced := range map[string]runtime.Object{
		"NamespaceLifecycle":         &corev1.Namespace{},
		"MutatingAdmissionWebhook":   &admissionregistrationv1.MutatingWebhookConfiguration{},
		"ValidatingAdmissionWebhook": &admissionregistrationv1.ValidatingWebhookConfiguration{},
		"ValidatingAdmissionPolicy":  &admissionregistrationv1.ValidatingAdmissionPolicy{},
	} {
		t.Run(plugin, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, synced := range []bool{true, false} {
					options := []fakes.Option{fakes.WithObjects(namespace("default"))}
					if !synced {
						options = append(options, fakes.Unsynced(unsynced))
					}
					h, err := harness.BuildChain(t, only(plugin), harness.WithWorld(fakes.NewWorld(t, options...)))
					if err != nil {
						t.Fatal(err)
					}
					result, err := h.Run(t.Context(), framework.Create(pod()))
					if waited := result.Finished.Sub(result.Started); err != nil || (waited >= 10*time.Second) == synced {
						t.Errorf("synced %t: %v after %s", synced, err, waited)
					}
					if synced {
						result.MustAllow(t)
					} else {
						result.MustReject(t, metav1.StatusReasonForbidden, "not yet ready to handle request")
					}
					h.World().MarkSynced()
					if result, err := h.Run(t.Context(), framework.Create(pod())); err != nil || !result.Allowed() {
						t.Errorf("synced %t, and then synced: %v, %v", synced, result, err)
					}
					if err := h.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
