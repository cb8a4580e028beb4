package rules_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// sessions is a plugin with four informers of its own, two of them for custom resources. A user who opens a session in
// a pod, binds it or scales needs a grant in the namespace, and the right to use it.
type sessions struct {
	*admission.Handler
	polls      bool // in requests, without a ready function
	synced     func() bool
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	authorizer authorizer.Authorizer
	stop       <-chan struct{}

	typed      informers.SharedInformerFactory
	custom     dynamicinformer.DynamicSharedInformerFactory
	namespaces corelisters.NamespaceLister
	pods       corelisters.PodLister
	grants     cache.GenericLister
	roles      cache.GenericLister
}

var sessionsGroup = schema.GroupVersion{Group: "sessions.example.com", Version: "v1"} //nolint:gochecknoglobals // a constant

func (p *sessions) SetDrainedNotification(stop <-chan struct{})          { p.stop = stop }
func (p *sessions) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }
func (p *sessions) SetDynamicClient(client dynamic.Interface)            { p.dynamic = client }
func (p *sessions) SetAuthorizer(a authorizer.Authorizer)                { p.authorizer = a }

// ValidateInitialization starts the informers.
func (p *sessions) ValidateInitialization() error {
	if p.client == nil || p.dynamic == nil || p.authorizer == nil || p.stop == nil {
		return errors.New("missing client, dynamic client, authorizer or drained notification")
	}
	if p.typed != nil {
		return nil
	}
	p.typed, p.custom = informers.NewSharedInformerFactory(p.client, 0), dynamicinformer.NewDynamicSharedInformerFactory(p.dynamic, 0)
	namespaces, pods := p.typed.Core().V1().Namespaces(), p.typed.Core().V1().Pods()
	grants, roles := p.custom.ForResource(sessionsGroup.WithResource("grants")), p.custom.ForResource(sessionsGroup.WithResource("grantroles"))
	p.namespaces, p.pods, p.grants, p.roles = namespaces.Lister(), pods.Lister(), grants.Lister(), roles.Lister()
	synced := []cache.InformerSynced{namespaces.Informer().HasSynced, pods.Informer().HasSynced, grants.Informer().HasSynced, roles.Informer().HasSynced}
	p.synced = func() bool {
		return !slices.ContainsFunc(synced, func(each cache.InformerSynced) bool { return !each() })
	}
	if !p.polls {
		p.SetReadyFunc(p.synced)
	}
	p.typed.Start(p.stop)
	p.custom.Start(p.stop)
	return nil
}

func (p *sessions) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetOperation() != admission.Create || a.GetSubresource() != "" || a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil
	}
	if pod.Annotations["sessions.example.com/owner"] == "" && a.GetUserInfo() != nil {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "sessions.example.com/owner", a.GetUserInfo().GetName())
	}
	return nil
}

func (p *sessions) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetUserInfo() == nil {
		return nil
	}
	resource := a.GetResource().GroupResource()
	switch {
	case resource == corev1.Resource("pods") && (a.GetSubresource() == "exec" || a.GetSubresource() == "attach" || a.GetSubresource() == "binding"):
	case resource == schema.GroupResource{Group: "apps", Resource: "deployments"} && a.GetSubresource() == "scale":
	default:
		return nil
	}
	if p.polls && !cache.WaitForCacheSync(ctx.Done(), p.synced) || !p.WaitForReady() {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	if resource == corev1.Resource("pods") {
		if _, err := p.pods.Pods(a.GetNamespace()).Get(a.GetName()); apierrors.IsNotFound(err) {
			_, err = p.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, a.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return admission.NewForbidden(a, fmt.Errorf("there is no pod %s", a.GetName()))
			}
			if err != nil {
				return apierrors.NewInternalError(err)
			}
		}
	}
	return p.granted(ctx, a)
}

// granted looks for a grant in the cache, then live.
func (p *sessions) granted(ctx context.Context, a admission.Attributes) error {
	name := a.GetUserInfo().GetName()
	_, err := p.grants.ByNamespace(a.GetNamespace()).Get(name)
	if apierrors.IsNotFound(err) {
		_, err = p.dynamic.Resource(sessionsGroup.WithResource("grants")).Namespace(a.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return admission.NewForbidden(a, fmt.Errorf("user %q has no grant in namespace %s", name, a.GetNamespace()))
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	if roles, err := p.roles.List(labels.Everything()); err != nil || len(roles) == 0 {
		live, err := p.dynamic.Resource(sessionsGroup.WithResource("grantroles")).List(ctx, metav1.ListOptions{})
		switch {
		case err != nil:
			return apierrors.NewInternalError(err)
		case len(live.Items) == 0:
			return admission.NewForbidden(a, errors.New("there is no role"))
		}
	}
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "use", APIGroup: sessionsGroup.Group, Resource: "grants", Namespace: a.GetNamespace(), Name: name, ResourceRequest: true,
	})
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case decision != authorizer.DecisionAllow:
		return admission.NewForbidden(a, fmt.Errorf("user %q may not use its grant", name))
	}
	return nil
}

func sessionsSubject(polls bool) check.Subject {
	custom := func(kind, namespace, name string) *unstructured.Unstructured {
		made := &unstructured.Unstructured{}
		made.SetGroupVersionKind(sessionsGroup.WithKind(kind))
		made.SetNamespace(namespace)
		made.SetName(name)
		return made
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shell", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
	}
	exec := framework.Connect(pod, "exec", &corev1.PodExecOptions{Command: []string{"sh"}})
	attach := framework.Connect(pod, "attach", &corev1.PodAttachOptions{})
	other := pod.DeepCopy()
	other.Name = "absent"
	named := metav1.ObjectMeta{Name: "shell", Namespace: "default"}
	bind := framework.Create(&corev1.Binding{ObjectMeta: named, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}).WithSubresource("binding", pod)
	deployment := &appsv1.Deployment{ObjectMeta: named}
	scale := framework.UpdateWith(&autoscalingv1.Scale{ObjectMeta: named}, func(s *autoscalingv1.Scale) { s.Spec.Replicas = 2 }).WithSubresource("scale", deployment)
	return check.Subject{
		Name: "sessions",
		Source: harness.FromFactory(func(io.Reader) (admission.Interface, error) {
			return &sessions{polls: polls, Handler: admission.NewHandler(admission.Create, admission.Update, admission.Connect)}, nil
		}),
		World: []fakes.Option{
			fakes.WithMappings(
				meta.RESTMapping{Resource: sessionsGroup.WithResource("grants"), GroupVersionKind: sessionsGroup.WithKind("Grant"), Scope: meta.RESTScopeNamespace},
				meta.RESTMapping{Resource: sessionsGroup.WithResource("grantroles"), GroupVersionKind: sessionsGroup.WithKind("GrantRole"), Scope: meta.RESTScopeRoot},
			),
			fakes.WithObjects(pod, deployment, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, custom("Grant", "default", "ann"), custom("Grant", "default", "mallory"), custom("Grant", "default", "eve"), custom("GrantRole", "", "shell")),
		},
		Inject: func(*fakes.World) []fakes.Injector {
			return []fakes.Injector{fakes.InjectAuthorizer(fakes.Allow().Unless("mallory", "use", "grants"))}
		},
		Allow: []framework.Request{
			framework.Create(pod).As("ann"), exec.As("ann"), attach.As("ann"), exec.As("eve"), attach.As("eve"), bind.As("ann"), scale.As("ann"),
			framework.UpdateWith(pod, func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }).As("ann"),
			framework.UpdateWith(pod, func(p *corev1.Pod) { p.Finalizers = []string{"example.com/f"} }).As("ann"),
		},
		Reject: []framework.Request{
			exec.As("mallory"), attach.As("mallory"), bind.As("mallory"), scale.As("mallory"),
			exec.As("bob"), attach.As("bob"), bind.As("bob"), scale.As("bob"),
			framework.Connect(other, "exec", &corev1.PodExecOptions{}).As("ann"),
		},
	}
}

// BenchmarkContract checks all rules for a plugin. Its metrics are how many plugins a check builds, and the time of the
// processor, which depends less on what else the machine does.
func BenchmarkContract(b *testing.B) {
	for name, subject := range map[string]check.Subject{
		"sound":         mutant{build: same}.of(),
		"own-informers": sessionsSubject(false),
		"polls":         sessionsSubject(true),
	} {
		b.Run(name, func(b *testing.B) {
			var builds atomic.Int64
			source := subject.Source
			subject.Source = harness.FromFactory(func(config io.Reader) (admission.Interface, error) {
				builds.Add(1)
				return source.Plugin(config)
			})
			began := processorTime(b)
			for b.Loop() {
				outcomes, misuse := checkRules(subject)
				for _, each := range misuse {
					b.Error(each)
				}
				for _, outcome := range outcomes {
					if outcome.Verdict == framework.Fail || outcome.Verdict == framework.Errored {
						b.Errorf("%s %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
					}
				}
			}
			b.ReportMetric(float64(builds.Load())/float64(b.N), "plugins/op")
			b.ReportMetric((processorTime(b)-began).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// processorTime is how long this process ran so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
