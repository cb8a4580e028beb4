package reference

import (
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/apis/scheduling"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
)

func groupProtectionEntry() entry {
	subject := kubeSubject("PodGroupProtection")
	subject.Inject = func(*fakes.World) []fakes.Injector {
		return []fakes.Injector{fakes.InjectFeatureGates(fakes.Gates(map[featuregate.Feature]bool{"GenericWorkload": true}))}
	}
	subject.Allow = []framework.Request{
		framework.Create(podGroup("")), framework.CreateOnUpdate(finalized(podGroup("high"), "example.com/f")),
		framework.Create(finalized(podGroup(""), scheduling.PodGroupProtectionFinalizer)),
		framework.UpdateWith(podGroup(""), func(g *scheduling.PodGroup) { g.Labels = map[string]string{"team": "blue"} }),
		framework.UpdateWith(podGroup(""), func(g *scheduling.PodGroup) { g.Labels = map[string]string{"team": "blue"} }).WithSubresource("status"),
		framework.Create(plainPod("default", "p")),
	}
	return entry{subject: subject}
}
