package rules_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"

	"github.com/admissiontest/admissiontest/framework"
)

// ownInformers is a plugin with informers that it makes itself, typed and dynamic ones, in place of the API server's.
type ownInformers struct {
	plugin
	client  kubernetes.Interface
	dynamic dynamic.Interface
	stop    <-chan struct{}
	start   sync.Once
	caches  []cache.SharedIndexInformer
	ready   []cache.InformerSynced
}

// plugin has the methods of sound but SetExternalKubeInformerFactory.
type plugin interface {
	admission.MutationInterface
	admission.ValidationInterface
	admission.InitializationValidator
	InspectFeatureGates(gates featuregate.FeatureGate)
	SetAuthorizer(a authorizer.Authorizer)
	SetDrainedNotification(stop <-chan struct{})
	SetExternalKubeClientSet(client kubernetes.Interface)
	SetRESTMapper(mapper meta.RESTMapper)
}

func (p *ownInformers) SetDynamicClient(client dynamic.Interface) { p.dynamic = client }

func (p *ownInformers) SetDrainedNotification(stop <-chan struct{}) {
	p.stop = stop
	p.plugin.SetDrainedNotification(stop)
}

func (p *ownInformers) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.client = client
	p.plugin.SetExternalKubeClientSet(client)
}

func (p *ownInformers) ValidateInitialization() error {
	if p.client != nil && p.dynamic != nil && p.stop != nil {
		p.start.Do(func() {
			own, custom := informers.NewSharedInformerFactory(p.client, 0), dynamicinformer.NewDynamicSharedInformerFactory(p.dynamic, 0)
			p.plugin.(interface { //nolint:forcetypeassert // it is a sound
				SetExternalKubeInformerFactory(informers.SharedInformerFactory)
			}).SetExternalKubeInformerFactory(own)
			p.caches = []cache.SharedIndexInformer{
				own.Core().V1().Namespaces().Informer(), own.Core().V1().ConfigMaps().Informer(),
				custom.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer(),
			}
			for _, each := range p.caches {
				p.ready = append(p.ready, each.HasSynced)
			}
			own.Start(p.stop)
			custom.Start(p.stop)
		})
	}
	return p.plugin.ValidateInitialization()
}

// withOwn returns a plugin with informers of its own.
func withOwn(m mutant) mutant {
	return mutant{subject: m.subject, build: func(p *sound) admission.Interface {
		return &ownInformers{plugin: m.build(p).(plugin)} //nolint:forcetypeassert // it is a sound
	}}
}

// TestOwnInformersBroken: rules about caches reach the informers that a plugin makes itself.
func TestOwnInformersBroken(t *testing.T) {
	for _, id := range []string{"C1", "C2", "R1", "R3"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			outcomes, misuse := checkRules(withOwn(mutants()[id]).of(), id)
			if len(misuse) > 0 || outcomes[0].Verdict != framework.Fail {
				t.Errorf("got %s, want fail: %s %q", outcomes[0].Verdict, outcomes[0].Reason, misuse)
			}
		})
	}
}

// TestOwnInformers: a sound plugin with informers of its own breaks no rule.
func TestOwnInformers(t *testing.T) {
	outcomes, misuse := checkRules(withOwn(mutant{build: same}).of())
	for _, outcome := range outcomes {
		if outcome.Verdict == framework.Fail || outcome.Verdict == framework.Errored || len(misuse) > 0 {
			t.Errorf("%s is %s: %s %q", outcome.Rule, outcome.Verdict, outcome.Reason, misuse)
		}
	}
}
