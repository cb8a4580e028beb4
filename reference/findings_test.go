package reference

import (
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction"
	config "k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction/apis/podtolerationrestriction"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// podIn is a pod of a namespace, which edits have changed.
func podIn(namespace string, edits ...func(*core.Pod)) *core.Pod {
	pod := &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "main", Image: "registry.example.com/main:1"}}},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// It panics on a request without a user. Every request to an API server has a user, unless
// authentication is disabled.
func TestFindingPodSecurityPanicsWithoutUser(t *testing.T) {
	h := harnessOf(t, entryOf(t, "PodSecurity").subject)
	of, err := h.Attributes(framework.Create(podIn("restricted")), framework.Validating)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := admission.NewAttributesRecord(of.GetObject(), nil, of.GetKind(), of.GetNamespace(), of.GetName(), of.GetResource(), "", of.GetOperation(), of.GetOperationOptions(), false, nil)
	var panicked *harness.PanicError
	if _, err := h.Call(t.Context(), anonymous, framework.Validating); !errors.As(err, &panicked) {
		t.Errorf("%v, want a panic: is the defect fixed?", err)
	}
}

// Before the cache of pods has synced, there is no warning about existing pods that violate a
// stricter level. The plugin neither waits nor says that it does not know.
func TestFindingPodSecurityDoesNotWarnUntilSynced(t *testing.T) {
	open := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "open"}}
	stricter := framework.UpdateWith(open, func(n *core.Namespace) {
		n.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	})
	if warned := harnessOf(t, entryOf(t, "PodSecurity").subject).Do(stricter).MustAllow(t).Warnings; len(warned) == 0 {
		t.Fatal("it does not warn at all: the test shows nothing")
	}
	if warned := harnessOf(t, entryOf(t, "PodSecurity").subject, fakes.Unsynced(&corev1.Pod{})).Do(stricter).MustAllow(t).Warnings; len(warned) > 0 {
		t.Errorf("warned of %q: is the defect fixed?", warned)
	}
}

// An update that takes an init container away makes it panic. The API server validates
// updates before, so that none such arrives; the helper library has other callers.
func TestFindingDeclaredFeaturesPanicsAtFewerContainers(t *testing.T) {
	old := podIn("default", func(pod *core.Pod) {
		pod.Spec.NodeName = "new"
		pod.Spec.InitContainers = []core.Container{{Name: "init", Image: "registry.example.com/init:1"}}
	})
	request := framework.UpdateWith(old, func(pod *core.Pod) { pod.Spec.InitContainers, pod.Generation = nil, 1 })
	var panicked *harness.PanicError
	if _, err := harnessOf(t, entryOf(t, "NodeDeclaredFeatureValidator").subject).Run(t.Context(), request); !errors.As(err, &panicked) {
		t.Errorf("%s: %v, want a panic: is the defect fixed?", request, err)
	}
}

// Its message names the type of the old object where it means that of the new one.
func TestFindingTrustBundleNamesTheWrongType(t *testing.T) {
	h := harnessOf(t, entryOf(t, "ClusterTrustBundleAttest").subject)
	label := func(pod *core.Pod) { pod.Labels = map[string]string{"team": "blue"} }
	for says, request := range map[string]framework.Request{
		"got: *core.Pod": framework.UpdateWith(podIn("default"), label),
		"got: <nil>":     framework.Create(podIn("default")), // it got a Pod
	} {
		request = request.WithResource(schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles"})
		h.Do(request.Impossible("the type is what it is about")).MustReject(t, metav1.StatusReasonForbidden, says)
	}
}

// The toleration that it adds for a pod it appends to the configured defaults, into what
// room there is behind them: requests at the same time write to the same memory.
func TestFindingPodTolerationRestrictionAppendsToItsConfiguration(t *testing.T) {
	defaults := make([]core.Toleration, 1, 2)
	defaults[0] = core.Toleration{Key: "a", Operator: core.TolerationOpExists}
	plugin := harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return podtolerationrestriction.NewPodTolerationsPlugin(&config.Configuration{Default: defaults}), nil
	})
	subject := entryOf(t, "PodTolerationRestriction").subject
	h := harness.New(t, plugin, harness.WithWorld(fakes.NewWorld(t, subject.World...)), harness.WithScheme(subject.Scheme))
	h.Do(framework.Create(podIn("plain", func(pod *core.Pod) {
		pod.Spec.Containers[0].Resources.Requests = core.ResourceList{"cpu": resource.MustParse("1")}
	}))).MustAllow(t)
	if got := defaults[:2][1].Key; got != "node.kubernetes.io/memory-pressure" {
		t.Errorf("behind the defaults is %q: is the defect fixed?", got)
	}
}

// TestEventRateLimit checks what the Subject cannot: a limit that is reached. A dry run is
// admitted nevertheless, and does not count (D2 and T2, intended).
func TestEventRateLimit(t *testing.T) {
	subject := entryOf(t, "EventRateLimit").subject
	head, _, _ := strings.Cut(subject.Config, "limits:")
	for _, limit := range []string{"Server", "Namespace", "User", "SourceAndObject"} {
		t.Run(limit, func(t *testing.T) {
			h := harness.New(t, subject.Source, harness.WithScheme(subject.Scheme), harness.WithConfig(head+"limits:\n- {type: "+limit+", qps: 1, burst: 1}\n"))
			request := subject.Allow[0] // it creates an event
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
