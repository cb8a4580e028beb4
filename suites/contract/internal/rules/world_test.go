package rules_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// worldMutants returns the broken plugins for decoys.go and counts.go.
func worldMutants() map[string]mutant {
	return map[string]mutant{
		// Its clock has stopped, so nothing expires.
		"W1": {build: func(p *sound) admission.Interface {
			started := p.now().AddDate(-100, 0, 0)
			p.now = started.Local
			return p
		}},
		"R5": {build: func(p *sound) admission.Interface { return &countsCached{sound: p} }, subject: func(s *check.Subject) {
			s.Allow = append(s.Allow, framework.Create(podOf(metav1.ObjectMeta{Name: "twin", Namespace: "default", Labels: map[string]string{"twin": "true"}})))
		}},
	}
}

// podOf returns a pod that sound admits.
func podOf(metadata metav1.ObjectMeta) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metadata, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}}}
}

// countsCached counts the pods with the label twin in its cache.
type countsCached struct {
	*sound
	pods corelisters.PodLister
}

func (p *countsCached) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	p.pods = factory.Core().V1().Pods().Lister()
	p.synced = append(p.synced, factory.Core().V1().Pods().Informer().HasSynced)
}

func (p *countsCached) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod := created(a)
	if pod == nil || pod.Labels["twin"] == "" || a.GetResource().Resource != "pods" {
		return p.sound.Validate(ctx, a, o)
	}
	if err := p.ready(ctx); err != nil {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	twins, err := p.pods.Pods(a.GetNamespace()).List(labels.SelectorFromSet(labels.Set{"twin": "true"}))
	if err != nil || len(twins) > 1 {
		return admission.NewForbidden(a, errors.New("there are two already"))
	}
	return p.sound.Validate(ctx, a, o)
}

// borrows uses a default of any namespace if the namespace has none.
func borrows(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.Admit(ctx, a, o)
	pod := created(a)
	if err != nil || pod == nil || pod.Labels[teamLabel] != "none" {
		return err
	}
	defaults, err := p.configMaps.List(labels.SelectorFromSet(labels.Set{teamDefault: "true"}))
	if err == nil && len(defaults) > 0 {
		pod.Labels[teamLabel] = "borrowed"
	}
	return err
}

// knowsLast admits only if the last default of a list is of a team that it knows.
func knowsLast(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && a.GetNamespace() == "default" {
		all, err := p.client.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{LabelSelector: teamDefault})
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if last := all.Items[len(all.Items)-1].Data[teamLabel]; last != "green" && last != "blue" {
			return admission.NewForbidden(a, errors.New("the last team is unknown"))
		}
	}
	return p.Validate(ctx, a, o)
}

// latestConfig returns a plugin that keeps its configuration in a variable of all plugins.
func latestConfig() mutant {
	var mu sync.Mutex
	var latest soundConfig
	return mutant{build: func(p *sound) admission.Interface {
		mu.Lock()
		latest = p.config
		mu.Unlock()
		return phased{p, func(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
			mu.Lock()
			other := newSoundLike(p, latest)
			mu.Unlock()
			return other.Admit(ctx, a, o)
		}, nil}
	}}
}

// newSoundLike returns a plugin with another configuration.
func newSoundLike(p *sound, config soundConfig) *sound {
	return &sound{Handler: p.Handler, config: config, client: p.client, namespaces: p.namespaces, configMaps: p.configMaps,
		synced: p.synced, authorizer: p.authorizer, mapper: p.mapper, inspected: p.inspected, strict: p.strict, stop: p.stop, now: p.now}
}

// remembersNamespaces returns a plugin that remembers in a variable of all plugins which namespaces do not exist.
func remembersNamespaces() mutant {
	var missing sync.Map
	return mutant{build: inAdmit(func(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
		if _, known := missing.Load(a.GetNamespace()); known && created(a) != nil {
			return admission.NewForbidden(a, errors.New("the namespace did not exist"))
		}
		err := p.Admit(ctx, a, o)
		if apierrors.IsForbidden(err) {
			missing.Store(a.GetNamespace(), true)
		}
		return err
	})}
}

// writesLate writes on another goroutine, also if it refuses.
func writesLate(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.Validate(ctx, a, o)
	if created(a) != nil && err != nil {
		go func() { _ = p.note(context.WithoutCancel(ctx), a, "late") }()
	}
	return err
}

// readsEarly reads its cache, waits, and then uses what it has read.
func readsEarly(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	_, early := p.namespaces.Get(a.GetNamespace())
	if err := p.Admit(ctx, a, o); err != nil {
		return err
	}
	if created(a) != nil && early != nil {
		return admission.NewForbidden(a, errors.New("the namespace does not exist"))
	}
	return nil
}

// disrupting returns a plugin that refuses new pods because of PodDisruptionBudgets in their namespace.
func disrupting(refuses func(pod *corev1.Pod, budget policyv1.PodDisruptionBudget) bool) mutant {
	object := func(name, app string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": app}}
	}
	return mutant{
		build: inValidate(func(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
			if pod := created(a); pod != nil {
				budgets, err := p.client.PolicyV1().PodDisruptionBudgets(a.GetNamespace()).List(ctx, metav1.ListOptions{})
				if err != nil {
					return apierrors.NewInternalError(err)
				}
				for _, each := range budgets.Items {
					if refuses(pod, each) {
						return admission.NewForbidden(a, fmt.Errorf("%s is in the way", each.Name))
					}
				}
			}
			return p.Validate(ctx, a, o)
		}),
		subject: func(s *check.Subject) {
			s.World = append(s.World, fakes.WithObjects(&policyv1.PodDisruptionBudget{ObjectMeta: object("budget", "web"), Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			}}))
			s.Reject = append(s.Reject, framework.Create(podOf(object("of-web", "web"))))
		},
	}
}

func ignoresSelector(pod *corev1.Pod, _ policyv1.PodDisruptionBudget) bool {
	return pod.Labels["app"] != ""
}

// TestSelectorsAreSound: a plugin that evaluates the selector does not break W1, nor S7 or T2.
func TestSelectorsAreSound(t *testing.T) {
	outcomes, _ := checkRules(disrupting(func(pod *corev1.Pod, budget policyv1.PodDisruptionBudget) bool {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		return err == nil && selector.Matches(labels.Set(pod.Labels))
	}).of(), "W1", "S7", "T2")
	for _, got := range outcomes {
		if got.Verdict != framework.Pass {
			t.Errorf("%s: got %s, want pass: %s", got.Rule, got.Verdict, got.Reason)
		}
	}
}

// counter is a plugin that admits a number of pods with the label counted in each namespace.
type counter struct {
	*sound
	locked, between bool
	limit           int

	mu   sync.Mutex
	seen map[string]int
}

func (p *counter) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod := created(a)
	if pod == nil || pod.Labels["counted"] == "" || a.IsDryRun() {
		return p.sound.Validate(ctx, a, o)
	}
	if p.locked {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	key := a.GetNamespace()
	count := p.seen[key]
	if count >= p.limit {
		return admission.NewForbidden(a, errors.New("there are too many"))
	}
	if p.between {
		key = a.GetNamespace()
	}
	p.seen[key] = count + 1
	return p.sound.Validate(ctx, a, o)
}

func counting(as *counter) check.Subject {
	return mutant{
		factory: func(config io.Reader) (admission.Interface, error) {
			p, err := newSound(config)
			return &counter{sound: p, locked: as.locked, between: as.between, limit: as.limit, seen: map[string]int{}}, err
		},
		subject: func(s *check.Subject) {
			s.Allow = append(s.Allow, framework.Create(podOf(metav1.ObjectMeta{Name: "counted", Namespace: "default", Labels: map[string]string{"counted": "true"}})))
		},
	}.of()
}

// TestLostUpdates: a counter without a lock fails each time, if another call can come between its read and its write. A
// counter with a lock passes.
func TestLostUpdates(t *testing.T) {
	for limit := 1; limit < 6; limit++ {
		for range 4 {
			if outcomes, _ := checkRules(counting(&counter{between: true, limit: limit}), "T1"); outcomes[0].Verdict != framework.Fail {
				t.Errorf("limit %d: got %s, want fail: %s", limit, outcomes[0].Verdict, outcomes[0].Reason)
			}
		}
		if outcomes, _ := checkRules(counting(&counter{between: true, locked: true, limit: limit}), "T1"); outcomes[0].Verdict != framework.Pass {
			t.Errorf("limit %d, locked: got %s, want pass: %s", limit, outcomes[0].Verdict, outcomes[0].Reason)
		}
	}
}
