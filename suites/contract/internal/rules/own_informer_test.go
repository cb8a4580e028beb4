package rules_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
	"github.com/admissiontest/admissiontest/suites/contract/internal/rules"
)

// budgeted is a plugin with informers that it makes itself: a dynamic one for a custom resource, and a typed one.
// It gives pods the cost center of the Budget of their namespace's owner, and refuses them if the Budget is spent.
type budgeted struct {
	*admission.Handler
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	authorizer authorizer.Authorizer
	stop       <-chan struct{}

	start      sync.Once
	budgets    cache.GenericLister
	namespaces corelisters.NamespaceLister
}

const (
	ownerLabel = "owner"
	costLabel  = "cost-center"
)

func budgetResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "cost.example.com", Version: "v1", Resource: "budgets"}
}

func newBudgeted(io.Reader) (*budgeted, error) {
	return &budgeted{Handler: admission.NewHandler(admission.Create)}, nil
}

func (p *budgeted) SetDrainedNotification(stop <-chan struct{})          { p.stop = stop }
func (p *budgeted) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }
func (p *budgeted) SetDynamicClient(client dynamic.Interface)            { p.dynamic = client }
func (p *budgeted) SetAuthorizer(a authorizer.Authorizer)                { p.authorizer = a }

func (p *budgeted) ValidateInitialization() error {
	switch {
	case p.stop == nil:
		return errors.New("missing drained notification")
	case p.client == nil:
		return errors.New("missing client")
	case p.dynamic == nil:
		return errors.New("missing dynamic client")
	case p.authorizer == nil:
		return errors.New("missing authorizer")
	}
	p.start.Do(p.startInformers)
	return nil
}

func (p *budgeted) startInformers() {
	own := informers.NewSharedInformerFactory(p.client, 0)
	custom := dynamicinformer.NewDynamicSharedInformerFactory(p.dynamic, 0)
	namespaces, budgets := own.Core().V1().Namespaces(), custom.ForResource(budgetResource())
	p.namespaces, p.budgets = namespaces.Lister(), budgets.Lister()
	synced := []cache.InformerSynced{namespaces.Informer().HasSynced, budgets.Informer().HasSynced}
	p.SetReadyFunc(func() bool { return synced[0]() && synced[1]() })
	own.Start(p.stop)
	custom.Start(p.stop)
}

// budget returns the Budget of a request's namespace. Nil if the namespace has no owner.
func (p *budgeted) budget(ctx context.Context, a admission.Attributes) (*unstructured.Unstructured, error) {
	if !p.WaitForReady() {
		return nil, admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	namespace, err := p.namespaces.Get(a.GetNamespace())
	if apierrors.IsNotFound(err) {
		namespace, err = p.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, admission.NewForbidden(a, fmt.Errorf("namespace %q does not exist", a.GetNamespace()))
	case err != nil:
		return nil, apierrors.NewInternalError(err)
	}
	owner := namespace.Labels[ownerLabel]
	if owner == "" {
		return nil, nil
	}
	found, err := p.budgets.Get(owner)
	budget, ok := found.(*unstructured.Unstructured)
	if apierrors.IsNotFound(err) || err == nil && !ok {
		budget, err = p.dynamic.Resource(budgetResource()).Get(ctx, owner, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, admission.NewForbidden(a, fmt.Errorf("owner %q has no budget", owner))
	case err != nil:
		return nil, apierrors.NewInternalError(err)
	}
	return budget, nil
}

// podOf returns the created pod of a request, and nil for other requests.
func podOf(a admission.Attributes) (*corev1.Pod, error) {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" || a.GetOperation() != admission.Create {
		return nil, nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("got %T, want a pod", a.GetObject()))
	}
	return pod, nil
}

func (p *budgeted) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := podOf(a)
	if pod == nil {
		return err
	}
	budget, err := p.budget(ctx, a)
	if budget == nil {
		return err
	}
	center, _, _ := unstructured.NestedString(budget.Object, "spec", "costCenter")
	if pod.Labels[costLabel] == "" && center != "" {
		pod.Labels = withKey(pod.Labels, costLabel, center)
	}
	return nil
}

func (p *budgeted) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := podOf(a)
	if pod == nil {
		return err
	}
	budget, err := p.budget(ctx, a)
	if budget == nil {
		return err
	}
	if spent, _, _ := unstructured.NestedBool(budget.Object, "spec", "spent"); spent {
		return admission.NewForbidden(a, fmt.Errorf("the budget of %q is spent", budget.GetName()))
	}
	if a.GetUserInfo() == nil {
		return nil
	}
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "use", APIGroup: budgetResource().Group, Resource: budgetResource().Resource, Name: budget.GetName(), ResourceRequest: true,
	})
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case decision != authorizer.DecisionAllow:
		return admission.NewForbidden(a, fmt.Errorf("user %q may not use budget %q", a.GetUserInfo().GetName(), budget.GetName()))
	}
	return nil
}

func newBudget(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cost.example.com/v1", "kind": "Budget", "metadata": map[string]any{"name": name}, "spec": maps.Clone(spec),
	}}
}

// budgetedSubject returns the Subject of budgeted, or of a plugin that embeds it.
func budgetedSubject(build func(*budgeted) admission.Interface) check.Subject {
	namespace := func(name, owner string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ownerLabel: owner}}}
	}
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "subject", Namespace: namespace},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
		}
	}
	mapping := meta.RESTMapping{Resource: budgetResource(), GroupVersionKind: budgetResource().GroupVersion().WithKind("Budget"), Scope: meta.RESTScopeRoot}
	return check.Subject{
		Name: "Budgeted",
		Source: harness.FromRegister("Budgeted", func(plugins *admission.Plugins) {
			plugins.Register("Budgeted", func(config io.Reader) (admission.Interface, error) {
				p, err := newBudgeted(config)
				return build(p), err
			})
		}),
		World: []fakes.Option{fakes.WithMappings(mapping), fakes.WithObjects([]runtime.Object{
			namespace("blue", "ann"), namespace("red", "bob"), namespace("free", ""), namespace("poor", "eve"),
			newBudget("ann", map[string]any{"costCenter": "17"}), newBudget("bob", map[string]any{"spent": true}),
		}...)},
		Inject: func(*fakes.World) []fakes.Injector {
			return []fakes.Injector{fakes.InjectAuthorizer(fakes.Allow().Unless("mallory", "use", "budgets"))}
		},
		Allow:  []framework.Request{framework.Create(pod("blue")), framework.Create(pod("free"))},
		Reject: []framework.Request{framework.Create(pod("red")), framework.Create(pod("poor")), framework.Create(pod("absent")), framework.Create(pod("blue")).As("mallory")},
	}
}

// TestOwnInformersBroken: rules about caches reach the informers that a plugin makes itself.
func TestOwnInformersBroken(t *testing.T) {
	for id, build := range map[string]func(*budgeted) admission.Interface{
		"C1": func(p *budgeted) admission.Interface { return &edits{p} },
		"C2": func(p *budgeted) admission.Interface { return &shares{p} },
		"R1": func(p *budgeted) admission.Interface { return &hasty{p} },
		"R3": func(p *budgeted) admission.Interface { return &cacheOnly{p} },
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			outcomes, misuse := checkRules(budgetedSubject(build), id)
			if len(misuse) > 0 || outcomes[0].Verdict != framework.Fail {
				t.Errorf("got %s, want fail: %s %q", outcomes[0].Verdict, outcomes[0].Reason, misuse)
			}
		})
	}
}

// edits labels the cached namespace.
type edits struct{ *budgeted }

func (p *edits) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.budgeted.Validate(ctx, a, o); err != nil {
		return err
	}
	if namespace, err := p.namespaces.Get(a.GetNamespace()); err == nil && namespace.Labels[ownerLabel] != "" {
		namespace.Labels["seen"] = "true"
	}
	return nil
}

// shares gives pods the labels of the cached namespace.
type shares struct{ *budgeted }

func (p *shares) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.budgeted.Admit(ctx, a, o); err != nil {
		return err
	}
	pod, _ := podOf(a)
	if namespace, err := p.namespaces.Get(a.GetNamespace()); err == nil && pod != nil && pod.Annotations == nil {
		pod.Annotations = namespace.Labels
	}
	return nil
}

// hasty does not wait for its caches.
type hasty struct{ *budgeted }

func (p *hasty) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if _, err := p.namespaces.Get(a.GetNamespace()); apierrors.IsNotFound(err) {
		return nil
	}
	return p.budgeted.Validate(ctx, a, o)
}

func (p *hasty) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if _, err := p.namespaces.Get(a.GetNamespace()); apierrors.IsNotFound(err) {
		return nil
	}
	return p.budgeted.Admit(ctx, a, o)
}

// cacheOnly does not look for a namespace that its cache does not have.
type cacheOnly struct{ *budgeted }

func (p *cacheOnly) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod, _ := podOf(a); pod != nil {
		if _, err := p.namespaces.Get(a.GetNamespace()); err != nil {
			return admission.NewForbidden(a, errors.New("unknown namespace"))
		}
	}
	return p.budgeted.Validate(ctx, a, o)
}

// TestOwnInformers: a sound plugin with informers of its own breaks no rule.
func TestOwnInformers(t *testing.T) {
	subject := budgetedSubject(func(p *budgeted) admission.Interface { return p })
	plan := check.NewPlan(subject, rules.All(), rule.Options{})
	for _, wrong := range plan.Misuse() {
		t.Error(wrong)
	}
	for _, rule := range plan.Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			switch outcome := plan.Check(rule); outcome.Verdict {
			case framework.Pass, framework.Unsupported, framework.Inconclusive:
				t.Logf("%s %s %s", outcome.Verdict, outcome.Duration, outcome.Reason)
			default:
				t.Errorf("got %s, want pass: %s", outcome.Verdict, outcome.Reason)
			}
		})
	}
}
