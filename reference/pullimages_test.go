package reference

import (
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

func pullImagesEntry() entry {
	subject := kubeSubject("AlwaysPullImages")
	full := podWith("default", "full", func(pod *core.Pod) {
		pod.Spec.InitContainers = []core.Container{{Name: "init", Image: "registry.example.com/init:1", ImagePullPolicy: core.PullNever}}
		pod.Spec.Volumes = []core.Volume{{Name: "models", VolumeSource: core.VolumeSource{Image: &core.ImageVolumeSource{
			Reference: "registry.example.com/models:1", PullPolicy: core.PullIfNotPresent,
		}}}}
	})
	subject.Enforced = []string{"spec.containers[].imagePullPolicy", "spec.initContainers[].imagePullPolicy", "spec.volumes[].image.pullPolicy"}
	subject.Allow = []framework.Request{
		framework.Create(plainPod("default", "p")), framework.Create(full), framework.CreateOnUpdate(full),
		framework.UpdateWith(plainPod("default", "p"), labelPod),
		framework.UpdateWith(plainPod("default", "p"), func(pod *core.Pod) { pod.Spec.Containers[0].Image = "registry.example.com/main:2" }),
		bindingOf(plainPod("default", "p"), "node"),
	}
	return entry{subject: subject, waivers: []waiver{
		{"E1", "Validate refuses with an Aggregate, so the client gets 500 of unknown reason; this happens if a later webhook reverts the policy; not intended", "plugin/pkg/admission/alwayspullimages/admission.go:121"},
	}}
}
