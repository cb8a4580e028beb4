package rules_test

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// handlesMutants returns the broken plugins of the properties of Handles, Validate,
// Admit, and of memory.
func handlesMutants() map[string]mutant {
	all := map[string]mutant{
		"H1": {build: func(p *sound) admission.Interface { return handlesAnything{p} }},
		"H2": {build: func(p *sound) admission.Interface { return deniesUpdates{p} }},
		"H3": {build: func(p *sound) admission.Interface { return refusesInAdmit{p} }},
		"V1": {build: func(p *sound) admission.Interface { return annotatesInValidate{p} }},
		"V2": {build: func(p *sound) admission.Interface { return refusesItsOwn{p} }},
	}
	for _, family := range []map[string]mutant{admitMutants(), aliasMutants()} {
		maps.Copy(all, family)
	}
	return all
}

// handlesAnything says that it handles every operation but one it does not know.
type handlesAnything struct{ *sound }

func (handlesAnything) Handles(operation admission.Operation) bool {
	return operation != admission.Connect
}

// deniesUpdates says that it does not handle updates, and admits them all the same.
type deniesUpdates struct{ *sound }

func (p deniesUpdates) Handles(operation admission.Operation) bool {
	return operation != admission.Update && p.sound.Handles(operation)
}

// refusesInAdmit has nothing to do in Admit but to refuse.
type refusesInAdmit struct{ *sound }

func (p refusesInAdmit) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Create {
		return nil
	}
	if _, mine, err := p.pod(a, a.GetObject()); !mine {
		return err
	}
	if err := p.ready(ctx); err != nil {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	_, err := p.team(ctx, a)
	return err
}

// annotatesInValidate writes to the object that it validates.
type annotatesInValidate struct{ *sound }

func (p annotatesInValidate) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.sound.Validate(ctx, a, o)
	if pod := created(a); pod != nil {
		pod.Annotations = withKey(pod.Annotations, soundPrefix+"validated", "true")
	}
	return err
}

// refusesItsOwn refuses in Validate a team that it gives in Admit.
type refusesItsOwn struct{ *sound }

func (p refusesItsOwn) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && pod.Labels[teamLabel] == "red" {
		return admission.NewForbidden(a, errors.New("no pod can be of team red"))
	}
	return p.sound.Validate(ctx, a, o)
}

// created returns the pod that a request creates; nil of all others.
func created(a admission.Attributes) *corev1.Pod {
	if a.GetOperation() != admission.Create || a.GetResource().Resource != "pods" || a.GetSubresource() != "" {
		return nil
	}
	pod, _ := a.GetObject().(*corev1.Pod)
	return pod
}

// withKey returns a copy of a map with one more key.
func withKey(values map[string]string, key, value string) map[string]string {
	more := maps.Clone(values)
	if more == nil {
		more = map[string]string{}
	}
	more[key] = value
	return more
}

func admitMutants() map[string]mutant {
	return map[string]mutant{
		"A1": {build: func(p *sound) admission.Interface { return after{p, appendsTwice} }},
		"A2": {build: func(p *sound) admission.Interface { return after{p, mountsSecret} }, subject: func(s *check.Subject) { s.Scheme = defaulting() }},
		"A3": {build: func(p *sound) admission.Interface { return after{p, addsForEachContainer} }},
		"A4": {build: func(p *sound) admission.Interface { return after{p, writesItsCopyOver} }},
	}
}

// after is sound with one thing more that it does to pods which it has admitted.
type after struct {
	*sound
	more func(pod *corev1.Pod)
}

func (p after) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.sound.Admit(ctx, a, o)
	if pod := created(a); pod != nil && err == nil {
		p.more(pod)
	}
	return err
}

// appendsTwice adds a toleration without looking whether there is one, up to two.
func appendsTwice(pod *corev1.Pod) {
	twice := corev1.Toleration{Key: "twice", Operator: corev1.TolerationOpExists}
	if count := len(slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), func(t corev1.Toleration) bool { return t != twice })); count < 2 {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, twice)
	}
}

// mountsSecret adds a volume without the mode that defaulting gives it.
func mountsSecret(pod *corev1.Pod) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == "token" {
			return
		}
	}
	secret := &corev1.SecretVolumeSource{SecretName: "token"}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Secret: secret}})
}

// defaulting is the scheme of Kubernetes' clients with one default of its API server.
func defaulting() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		panic(err) // of a test: the scheme is Kubernetes' own
	}
	scheme.AddTypeDefaultingFunc(&corev1.Pod{}, func(object any) {
		for i := range object.(*corev1.Pod).Spec.Volumes {
			secret := object.(*corev1.Pod).Spec.Volumes[i].Secret
			if secret != nil && secret.DefaultMode == nil {
				mode := corev1.SecretVolumeSourceDefaultMode
				secret.DefaultMode = &mode
			}
		}
	})
	return scheme
}

// addsForEachContainer adds a sidecar when there is a container that it has not
// counted, and forgets to count its own.
func addsForEachContainer(pod *corev1.Pod) {
	const counted = soundPrefix + "containers"
	count := string(rune('a' + len(pod.Spec.Containers)))
	if was, ok := pod.Annotations[counted]; ok && was != count {
		pod.Spec.Containers = append(slices.Clone(pod.Spec.Containers), corev1.Container{Name: "sidecar-" + count, Image: "example.com/c"})
	}
	pod.Annotations = withKey(pod.Annotations, counted, count)
}

// writesItsCopyOver makes a pod of the parts that it knows, in place of the one it has.
func writesItsCopyOver(pod *corev1.Pod) {
	known := metav1.ObjectMeta{
		Name: pod.Name, GenerateName: pod.GenerateName, Namespace: pod.Namespace,
		Labels: pod.Labels, Annotations: pod.Annotations, DeletionTimestamp: pod.DeletionTimestamp,
	}
	*pod = corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: known, Spec: *pod.Spec.DeepCopy(), Status: pod.Status}
}
