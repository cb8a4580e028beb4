package reference

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
)

// eventAbout is what a component says about a pod.
func eventAbout(pod, reason string) *core.Event {
	return &core.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: pod + ".17"},
		InvolvedObject: core.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: pod},
		Source:         core.EventSource{Component: "scheduler", Host: "node"}, Reason: reason, Type: core.EventTypeNormal, Count: 1,
	}
}

func eventRateEntry() entry {
	const head = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"
	subject := kubeSubject("EventRateLimit")
	// One event about an object, and then one each thousand seconds or so: QPS is whole.
	subject.Config = head + "limits:\n- {type: Server, qps: 5000, burst: 100000}\n- {type: Namespace, qps: 5000, burst: 100000, cacheSize: 10}\n" +
		"- {type: User, qps: 5000, burst: 100000}\n- {type: SourceAndObject, qps: 5000, burst: 100000}\n"
	subject.Configs.Valid = []string{head + "limits:\n- {type: SourceAndObject, qps: 1, burst: 1, cacheSize: 1}\n"}
	subject.Configs.Invalid = []string{
		head, head + "limits:\n- {type: Cluster, qps: 1, burst: 1}\n", head + "limits:\n- {type: Server, qps: 0, burst: 1}\n",
		head + "limits:\n- {type: User, qps: 1, burst: 1, cacheSize: -1}\n",
	}
	subject.Configs.Required = true
	subject.Allow = []framework.Request{
		framework.Create(eventAbout("a", "Scheduled")), framework.Create(eventAbout("b", "Scheduled")),
		framework.UpdateWith(eventAbout("a", "Scheduled"), func(e *core.Event) { e.Count++ }),
		framework.CreateOnUpdate(eventAbout("a", "Failed")), framework.Delete(eventAbout("a", "Failed")),
		framework.Create(plainPod("default", "p")),
	}
	return entry{subject: subject, waivers: []waiver{}}
}
