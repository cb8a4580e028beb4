package rules_test

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// admitMutants returns the broken plugins for admit.go.
func admitMutants() map[string]mutant {
	return map[string]mutant{
		"A1": {build: func(p *sound) admission.Interface { return after{p, appendsTwice} }},
		"A2": {build: func(p *sound) admission.Interface { return after{p, mountsSecret} }, subject: func(s *check.Subject) { s.Scheme = defaulting() }},
		"A3": {build: func(p *sound) admission.Interface { return after{p, addsForEachContainer} }, subject: func(s *check.Subject) {
			s.Enforced = []string{"metadata.annotations[" + countedContainers + "]"}
		}},
		"A5": {build: inAdmit(overwrites)},
		"A4": {build: func(p *sound) admission.Interface { return after{p, writesItsCopyOver} }},
	}
}

// after is sound, and changes pods after Admit.
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

// overwrites sets its team also if the user has set one.
func overwrites(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil {
		delete(pod.Labels, teamLabel)
	}
	return p.Admit(ctx, a, o)
}

// appendsTwice adds a toleration even if there is one already, but not a third.
func appendsTwice(pod *corev1.Pod) {
	twice := corev1.Toleration{Key: "twice", Operator: corev1.TolerationOpExists}
	if count := len(slices.DeleteFunc(slices.Clone(pod.Spec.Tolerations), func(t corev1.Toleration) bool { return t != twice })); count < 2 {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, twice)
	}
}

// mountsSecret adds a volume without the mode that defaulting sets.
func mountsSecret(pod *corev1.Pod) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name == "token" {
			return
		}
	}
	secret := &corev1.SecretVolumeSource{SecretName: "token"}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Secret: secret}})
}

// defaulting returns the scheme of client-go with one default of kube-apiserver.
func defaulting() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		panic(err) // cannot happen: the scheme is that of client-go
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

// countedContainers is the annotation of addsForEachContainer.
const countedContainers = soundPrefix + "containers"

// addsForEachContainer adds a sidecar if the number of containers has changed since its last
// call, and does not count its own sidecar.
func addsForEachContainer(pod *corev1.Pod) {
	count := string(rune('a' + len(pod.Spec.Containers)))
	if was, ok := pod.Annotations[countedContainers]; ok && was != count {
		pod.Spec.Containers = append(slices.Clone(pod.Spec.Containers), corev1.Container{Name: "sidecar-" + count, Image: "example.com/c"})
	}
	pod.Annotations = withKey(pod.Annotations, countedContainers, count)
}

// writesItsCopyOver replaces the pod by a new one with the fields that it knows.
func writesItsCopyOver(pod *corev1.Pod) {
	known := metav1.ObjectMeta{
		Name: pod.Name, GenerateName: pod.GenerateName, Namespace: pod.Namespace,
		Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences, DeletionTimestamp: pod.DeletionTimestamp,
	}
	*pod = corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: known, Spec: *pod.Spec.DeepCopy(), Status: pod.Status}
}
