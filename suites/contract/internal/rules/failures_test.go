package rules_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// failureMutants returns the broken plugins for failures.go, history.go, deletion.go, and the
// namespace in scope.go.
func failureMutants() map[string]mutant {
	return map[string]mutant{
		// It refuses only if the authorizer denies. The Subject has no request of a user without rights.
		"F1": {
			build: decides(func(decision authorizer.Decision, err error) bool {
				return err == nil && decision == authorizer.DecisionNoOpinion
			}),
			subject: func(s *check.Subject) { s.Reject = append(s.Reject[:2:2], s.Reject[3:]...) },
		},
		// It takes an error for a namespace without a team.
		"F2": {build: reads(func(namespace *corev1.Namespace, name string, err error) (*corev1.Namespace, error) {
			if err != nil && !apierrors.IsNotFound(err) {
				return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
			}
			return namespace, err
		})},
		// It allows everything if the authorizer fails.
		"F3": {build: decides(func(_ authorizer.Decision, err error) bool { return err != nil })},
		"F4": {build: inAdmit(forbids)},
		"F5": {build: func(p *sound) admission.Interface { return &ignoresMapper{sound: p} }},
		// It asks only its cache.
		"R3": {build: reads(func(_ *corev1.Namespace, name string, _ error) (*corev1.Namespace, error) {
			return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
		})},
		"T3": {build: func(p *sound) admission.Interface { return &memoizing{sound: p} }},
		"L2": {build: func(p *sound) admission.Interface { return &asserting{p} }},
		"Y1": {build: inValidate(holding)},
		// It needs the name of the object to be deleted.
		"Y2": {build: inValidate(naming)},
		// It does not know that an object without a name can be meant.
		"S4": {build: inValidate(namingObject)},
		"S3": {build: inValidate(withoutEphemeral)},
		"S8": {build: inValidate(checksFirst)},
	}
}

// forbids returns 403 for each error of its client.
func forbids(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.Admit(ctx, a, o)
	if apierrors.IsInternalError(err) {
		return admission.NewForbidden(a, err)
	}
	return err
}

// ignoresMapper checks no owner if the RESTMapper fails.
type ignoresMapper struct {
	*sound
	meta.RESTMapper
}

func (p *ignoresMapper) SetRESTMapper(mapper meta.RESTMapper) {
	p.RESTMapper = mapper
	p.sound.SetRESTMapper(p)
}

func (p *ignoresMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := p.RESTMapper.RESTMapping(kind, versions...)
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, nil
	}
	return mapping, err
}

// deciding is sound with an authorizer that also allows where allows returns true.
type deciding struct {
	*sound
	allows func(authorizer.Decision, error) bool
}

func decides(allows func(authorizer.Decision, error) bool) func(*sound) admission.Interface {
	return func(p *sound) admission.Interface { return &deciding{p, allows} }
}

func (p *deciding) SetAuthorizer(a authorizer.Authorizer) {
	p.sound.SetAuthorizer(authorizer.AuthorizerFunc(func(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
		decision, why, err := a.Authorize(ctx, asked)
		if p.allows(decision, err) {
			return authorizer.DecisionAllow, "", nil
		}
		return decision, why, err
	}))
}

// readNamespace changes what the client reads.
type readNamespace func(namespace *corev1.Namespace, name string, err error) (*corev1.Namespace, error)

// reads returns sound with a client that reads namespaces in another way.
func reads(as readNamespace) func(*sound) admission.Interface {
	return func(p *sound) admission.Interface { return &liveReading{p, as} }
}

type liveReading struct {
	*sound
	as readNamespace
}

func (p *liveReading) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.sound.SetExternalKubeClientSet(readingClient{client, p.as})
}

type readingClient struct {
	kubernetes.Interface
	as readNamespace
}

func (c readingClient) CoreV1() corev1client.CoreV1Interface {
	return readingCore{c.Interface.CoreV1(), c.as}
}

type readingCore struct {
	corev1client.CoreV1Interface
	as readNamespace
}

func (c readingCore) Namespaces() corev1client.NamespaceInterface {
	return readingNamespaces{c.CoreV1Interface.Namespaces(), c.as}
}

type readingNamespaces struct {
	corev1client.NamespaceInterface
	as readNamespace
}

func (c readingNamespaces) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Namespace, error) {
	namespace, err := c.NamespaceInterface.Get(ctx, name, options)
	return c.as(namespace, name, err)
}

// memoizing remembers which namespaces do not exist.
type memoizing struct {
	*sound
	missing sync.Map
}

func (p *memoizing) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if created(a) == nil {
		return p.sound.Admit(ctx, a, o)
	}
	if _, missing := p.missing.Load(a.GetNamespace()); missing {
		return admission.NewForbidden(a, fmt.Errorf("namespace %q does not exist", a.GetNamespace()))
	}
	err := p.sound.Admit(ctx, a, o)
	if apierrors.IsForbidden(err) && ctx.Err() == nil && p.synced[0]() {
		p.missing.Store(a.GetNamespace(), true)
	}
	return err
}

// asserting asserts the type of what a handler gets.
type asserting struct{ *sound }

func (p *asserting) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	_, _ = factory.Core().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(object any) { _ = object.(*corev1.Namespace).Name },
	})
}

// holding refuses updates of pods in deletion.
func holding(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod, ok := a.GetObject().(*corev1.Pod); ok && a.GetOperation() == admission.Update && plainPod(a) && pod.DeletionTimestamp != nil {
		return admission.NewForbidden(a, errors.New("the pod is in deletion"))
	}
	return p.Validate(ctx, a, o)
}

// namingObject takes the name from the body of an eviction.
func namingObject(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if eviction, ok := a.GetObject().(*policyv1.Eviction); ok && eviction.Name == "" {
		return apierrors.NewNotFound(corev1.Resource("pods"), eviction.Name)
	}
	return p.Validate(ctx, a, o)
}

// checksFirst checks only the first container.
func checksFirst(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && len(pod.Spec.Containers) > 1 {
		first := pod.DeepCopy()
		first.Spec.Containers = first.Spec.Containers[:1]
		a = withPod{a, first}
	}
	return p.Validate(ctx, a, o)
}

type withPod struct {
	admission.Attributes
	pod *corev1.Pod
}

func (w withPod) GetObject() runtime.Object { return w.pod }

// withoutEphemeral looks only at whole pods.
func withoutEphemeral(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	return p.Validate(ctx, a, o)
}

// naming refuses deletes without a name.
func naming(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if plainPod(a) && a.GetOperation() == admission.Delete && a.GetName() == "" {
		return apierrors.NewInternalError(errors.New("the request has no name"))
	}
	return p.Validate(ctx, a, o)
}
