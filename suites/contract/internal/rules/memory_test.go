package rules_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/framework"
)

// aliasMutants returns the broken plugins for memory.go and isolation.go.
func aliasMutants() map[string]mutant {
	return map[string]mutant{
		"O1": {build: inAdmit(editsOld)},
		"O2": {build: inAdmit(sharesWithOld)},
		"C1": {build: func(p *sound) admission.Interface { return &editsCache{sound: p} }},
		"C2": {build: inAdmit(sharesWithCache)},
		"C3": {build: func(p *sound) admission.Interface {
			seconds := int64(300)
			return after{p, func(pod *corev1.Pod) { sharesItsPointer(pod, &seconds) }}
		}},
		"U1": {build: func(p *sound) admission.Interface {
			kept := &keepsPod{}
			return after{p, kept.compare}
		}},
		"U2": {build: inAdmit(editsUser)},
	}
}

// editsOld removes a label from the old object.
func editsOld(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.Admit(ctx, a, o)
	if old, ok := a.GetOldObject().(*corev1.Pod); ok && a.GetOperation() == admission.Update {
		delete(old.Labels, teamLabel)
	}
	return err
}

// sharesWithOld uses a pointer of the old object.
func sharesWithOld(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod, _ := a.GetObject().(*corev1.Pod)
	old, _ := a.GetOldObject().(*corev1.Pod)
	if pod != nil && old != nil && pod.Spec.Priority == nil && a.GetSubresource() == "" {
		pod.Spec.Priority = old.Spec.Priority
	}
	return p.Admit(ctx, a, o)
}

// editsCache adds a label to namespaces in the cache. It does so in an index function, under
// the lock of the cache: a data race would fail other rules too.
type editsCache struct {
	*sound
	indexer cache.Indexer
}

const editing = "editing"

func (p *editsCache) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	informer := factory.Core().V1().Namespaces().Informer()
	// An error means that another plugin has already added the function to this cache.
	_ = informer.AddIndexers(cache.Indexers{editing: func(object any) ([]string, error) {
		if seen, ok := object.(seenNamespace); ok {
			seen.Labels = withKey(seen.Labels, soundPrefix+"seen", "true")
		}
		return nil, nil
	}})
	p.indexer = informer.GetIndexer()
}

// seenNamespace is a namespace that gets the label; others are only indexed.
type seenNamespace struct{ *corev1.Namespace }

func (p *editsCache) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.sound.Admit(ctx, a, o)
	if created(a) == nil {
		return err
	}
	if namespace, missing := p.namespaces.Get(a.GetNamespace()); missing == nil {
		if _, failed := p.indexer.Index(editing, seenNamespace{namespace}); failed != nil {
			return apierrors.NewInternalError(failed)
		}
	}
	return err
}

// sharesWithCache sets the node selector of pods to the annotations of their namespace.
func sharesWithCache(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.Admit(ctx, a, o)
	pod := created(a)
	if err != nil || pod == nil || pod.Spec.NodeSelector != nil {
		return err
	}
	namespace, err := p.namespaces.Get(a.GetNamespace())
	if apierrors.IsNotFound(err) {
		namespace, err = p.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	}
	pod.Spec.NodeSelector = namespace.Annotations
	return err
}

// sharesItsPointer adds the same pointer to every pod.
func sharesItsPointer(pod *corev1.Pod, seconds *int64) {
	shared := corev1.Toleration{Key: "shared", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds}
	for _, each := range pod.Spec.Tolerations {
		if each.Key == shared.Key {
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, shared)
}

// keepsPod keeps the last pod, and labels the next one if its image differs.
type keepsPod struct {
	lock sync.Mutex
	last *corev1.Pod
}

func (k *keepsPod) compare(pod *corev1.Pod) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if len(pod.Spec.Containers) != 1 {
		return
	}
	if k.last != nil && k.last.Spec.Containers[0].Image != pod.Spec.Containers[0].Image {
		pod.Labels = withKey(pod.Labels, soundPrefix+"image", "another")
	}
	k.last = pod
}

// editsUser adds an entry to the extra of the user.
func editsUser(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if who := a.GetUserInfo(); who != nil && who.GetExtra() != nil {
		who.GetExtra()[soundPrefix+"seen"] = []string{"true"}
	}
	return p.Admit(ctx, a, o)
}

// TestSpareCapacity: a slice whose spare capacity several objects share is found.
func TestSpareCapacity(t *testing.T) {
	subject := mutant{build: func(p *sound) admission.Interface {
		shared := make([]corev1.Toleration, 1, 8)
		shared[0] = corev1.Toleration{Key: "shared", Operator: corev1.TolerationOpExists}
		return after{p, func(pod *corev1.Pod) {
			if len(pod.Spec.Tolerations) > 0 && pod.Spec.Tolerations[0] != shared[0] {
				pod.Spec.Tolerations = append(shared, corev1.Toleration{Key: pod.Namespace}) //nolint:gocritic // that is the bug
			}
		}}
	}}.of()
	outcomes, _ := checkRules(subject, "C3")
	for _, outcome := range outcomes {
		if outcome.Verdict != framework.Fail || !strings.Contains(outcome.Reason, "changed by later requests") {
			t.Errorf("got %s, want a failure because of what later requests wrote: %s", outcome.Verdict, outcome.Reason)
		}
	}
}
