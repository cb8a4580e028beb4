package reference

import (
	"io"
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction"
	config "k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction/apis/podtolerationrestriction"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// The toleration that it adds for a pod it appends to the configured defaults, into what
// room there is behind them: requests at the same time write to the same memory.
func TestFindingPodTolerationRestrictionAppendsToItsConfiguration(t *testing.T) {
	defaults := make([]core.Toleration, 1, 2)
	defaults[0] = core.Toleration{Key: "a", Operator: core.TolerationOpExists}
	plugin := harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return podtolerationrestriction.NewPodTolerationsPlugin(&config.Configuration{Default: defaults}), nil
	})
	h := harness.New(t, plugin, harness.WithWorld(fakes.NewWorld(t, fakes.WithObjects(storedNamespace("plain")))), harness.WithScheme(kubeSubject("").Scheme))
	h.Do(framework.Create(podWith("plain", "p", requesting("cpu", "1")))).MustAllow(t)
	if got := defaults[:2][1].Key; got != "node.kubernetes.io/memory-pressure" {
		t.Errorf("behind the defaults is %q: is the defect fixed?", got)
	}
}
