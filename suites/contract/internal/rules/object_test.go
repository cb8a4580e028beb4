package rules_test

import (
	"context"
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// objectMutants returns the broken plugins for the content of objects: lists.go, updates.go, boundaries.go and
// types.go.
func objectMutants() map[string]mutant {
	return map[string]mutant{
		"S8 strings":   {build: inValidate(firstFinalizer), subject: rejects(func(p *corev1.Pod) { p.Finalizers = []string{"blocked.example.com/x"} })},
		"S8 templates": {build: inValidate(onlyDeployments), subject: workloads},
		"Y3":           {build: inValidate(unratcheted)},
		"Y3 counted":   {build: inValidate(countsUpdates)},
		"S9":           schedulers(strings.HasPrefix),
		"S9 suffix":    schedulers(strings.HasSuffix),
		"P8":           {build: func(p *sound) admission.Interface { return phased{p, onlyTyped(p.Admit), onlyTyped(p.Validate)} }},
		"P9":           {build: inValidate(dereferencing), subject: graceful},
		"P9 default":   {build: inValidate(noPolicy), subject: rejects(func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })},
	}
}

// rejects adds a pod that the plugin refuses.
func rejects(edit func(*corev1.Pod)) func(*check.Subject) {
	return func(s *check.Subject) {
		pod := s.Allow[0].Object.DeepCopyObject().(*corev1.Pod)
		edit(pod)
		s.Reject = append(s.Reject, framework.Create(pod))
	}
}

// firstFinalizer refuses new pods whose first finalizer is blocked.
func firstFinalizer(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && len(pod.Finalizers) > 0 && pod.Finalizers[0] == "blocked.example.com/x" {
		return admission.NewForbidden(a, errors.New("the finalizer is blocked"))
	}
	return p.Validate(ctx, a, o)
}

// workloads adds a Deployment with a blocked command, and workloads that the plugin admits.
func workloads(s *check.Subject) {
	named := metav1.ObjectMeta{Name: "workload", Namespace: "default"}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}}}
	bad := *template.DeepCopy()
	bad.Spec.Containers[0].Command = []string{blocked}
	s.Allow = append(s.Allow,
		framework.Create(&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Template: template}}),
		framework.Create(&appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{Template: template}}))
	s.Reject = append(s.Reject, framework.Create(&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Template: bad}}))
}

// onlyDeployments checks the templates of Deployments, and of no other workloads.
func onlyDeployments(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != appsv1.Resource("deployments") || a.GetSubresource() != "" || a.GetOperation() != admission.Create {
		return p.Validate(ctx, a, o)
	}
	deployment, ok := a.GetObject().(*appsv1.Deployment)
	if !ok {
		return admission.NewForbidden(a, errors.New("it is no Deployment"))
	}
	if hasBlocked(&corev1.Pod{Spec: deployment.Spec.Template.Spec}) {
		return admission.NewForbidden(a, errors.New("the command is blocked"))
	}
	return nil
}

// unratcheted refuses each update of a forbidden pod that is not in deletion.
func unratcheted(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod, ok := a.GetObject().(*corev1.Pod); ok && plainPod(a) && pod.DeletionTimestamp == nil && pod.Labels[forbiddenMark] == "true" {
		return admission.NewForbidden(a, errors.New("the pod is forbidden"))
	}
	return p.Validate(ctx, a, o)
}

// countsUpdates refuses pods in a namespace that has three, also the updates of these.
func countsUpdates(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || !plainPod(a) || pod.DeletionTimestamp != nil {
		return p.Validate(ctx, a, o)
	}
	pods, err := p.client.CoreV1().Pods(a.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if len(pods.Items) >= 3 {
		return admission.NewForbidden(a, errors.New("the namespace is full"))
	}
	return p.Validate(ctx, a, o)
}

// schedulers returns a plugin that compares the name of the scheduler in its own way.
func schedulers(same func(name, allowed string) bool) mutant {
	return mutant{build: inValidate(func(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
		if pod := created(a); pod != nil && same(pod.Spec.SchedulerName, scheduler) {
			known := pod.DeepCopy()
			known.Spec.SchedulerName = scheduler
			a = withPod{a, known}
		}
		return p.Validate(ctx, a, o)
	})}
}

// onlyTyped does not look at objects of other Go types.
func onlyTyped(next func(context.Context, admission.Attributes, admission.ObjectInterfaces) error) phase {
	return func(ctx context.Context, _ *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
		if _, ok := a.GetObject().(*corev1.Pod); !ok && plainPod(a) && a.GetOperation() == admission.Create {
			return nil
		}
		return next(ctx, a, o)
	}
}

// graceful sets the grace period of all pods.
func graceful(s *check.Subject) {
	seconds := int64(10)
	for _, request := range s.Allow {
		if pod, ok := request.Object.(*corev1.Pod); ok && pod.Spec.SchedulerName != "" {
			pod.Spec.TerminationGracePeriodSeconds = &seconds
		}
	}
}

// dereferencing uses the grace period of pods with a scheduler without checking for nil.
func dereferencing(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && pod.Spec.SchedulerName != "" {
		_ = *pod.Spec.TerminationGracePeriodSeconds
	}
	return p.Validate(ctx, a, o)
}

// noPolicy refuses new pods that have a restart policy, and takes the default for none.
func noPolicy(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && pod.Spec.RestartPolicy != "" {
		return admission.NewForbidden(a, errors.New("pods restart as the namespace says"))
	}
	return p.Validate(ctx, a, o)
}
