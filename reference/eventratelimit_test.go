package reference

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// eventAbout is what a component says about a pod.
func eventAbout(pod, reason string) *core.Event {
	return &core.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: pod + ".17"},
		InvolvedObject: core.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: pod},
		Source:         core.EventSource{Component: "scheduler", Host: "node"}, Reason: reason, Type: core.EventTypeNormal, Count: 1,
	}
}

const eventRateHead = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"

func eventRateEntry() entry {
	const head = eventRateHead
	subject := kubeSubject("EventRateLimit")
	// Wide limits: what is refused depends on how many requests came in the second before,
	// so that no request is one that the plugin refuses. TestEventRateLimit has refusals.
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
	return entry{subject: subject, waivers: []waiver{
		{"K2", "it ignores unknown and repeated fields: the codec is not strict; historical", "plugin/pkg/admission/eventratelimit/config.go:32"},
	}}
}

// TestEventRateLimit checks what the Subject cannot: a limit that is reached. A dry run is
// admitted nevertheless, and does not count (D2 and T2, intended).
func TestEventRateLimit(t *testing.T) {
	for _, limit := range []string{"Server", "Namespace", "User", "SourceAndObject"} {
		t.Run(limit, func(t *testing.T) {
			h := harness.New(t, fromKubernetes("EventRateLimit"), harness.WithScheme(kubeSubject("").Scheme),
				harness.WithConfig(eventRateHead+"limits:\n- {type: "+limit+", qps: 1, burst: 1}\n"))
			request := framework.Create(eventAbout("a", "Scheduled"))
			h.Do(request.WithDryRun()).MustAllow(t)
			h.Do(request).MustAllow(t)
			for range 1000 { // one each second is let through
				if res := h.Do(request); res.Err != nil {
					res.MustReject(t, metav1.StatusReasonTooManyRequests, "limit reached on type "+limit)
					h.Do(request.WithDryRun()).MustAllow(t)
					return
				}
			}
			t.Error("a thousand events, and none refused")
		})
	}
}
