package fakes_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

func TestGates(t *testing.T) {
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	before := utilfeature.DefaultFeatureGate.(interface{ String() string }).String()
	locked, alpha, beta := featuregate.Feature(""), featuregate.Feature(""), featuregate.Feature("")
	for name, spec := range known {
		switch {
		case spec.LockToDefault && spec.Default:
			locked = name
		case spec.PreRelease == featuregate.Alpha && name != "AllAlpha":
			alpha = name
		case spec.PreRelease == featuregate.Beta && spec.Default:
			beta = name
		}
	}
	if alpha == "" || beta == "" {
		t.Fatalf("the API server's libraries register no alpha or beta gate: %v", known)
	}
	gates := fakes.Gates(map[featuregate.Feature]bool{alpha: true, beta: false, locked: false})
	for name, want := range map[featuregate.Feature]bool{alpha: true, beta: false, locked: false} {
		if got := gates.Enabled(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	defaults := fakes.Gates(nil)
	for name, spec := range known {
		if got := defaults.Enabled(name); got != spec.Default {
			t.Errorf("default of %s: %v, want %v", name, got, spec.Default)
		}
	}
	if all := fakes.Gates(map[featuregate.Feature]bool{"AllAlpha": true}); !all.Enabled(alpha) {
		t.Errorf("AllAlpha: %s is off", alpha)
	}
	t.Run("another test sets the global gates", func(t *testing.T) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, alpha, true)
		if fakes.Gates(nil).Enabled(alpha) || defaults.Enabled(alpha) {
			t.Errorf("%s is on", alpha)
		}
	})
	after := utilfeature.DefaultFeatureGate.(interface{ String() string }).String()
	if before != after || len(utilfeature.DefaultMutableFeatureGate.GetAll()) != len(known) {
		t.Errorf("the global gates changed from %q to %q", before, after)
	}
}

// registerGates registers the gates of the plugins in these tests, as a project does.
func registerGates(t interface{ Fatal(...any) }) {
	alpha := featuregate.FeatureSpec{PreRelease: featuregate.Alpha}
	if err := utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{"Mine": alpha, "ExampleStrict": alpha}); err != nil {
		t.Fatal(err)
	}
}

// A gate that is not registered is an error: if a test sets it, and if a plugin reads it.
func TestUnknownGates(t *testing.T) {
	registerGates(t)
	plugin := &gatedPlugin{}
	i := fakes.NewInitializer(nil, fakes.InjectFeatureGates(fakes.Gates(map[featuregate.Feature]bool{"ExampleStrikt": true, "Mine": true})))
	i.Initialize(plugin)
	wantInError(t, i.Err(), `WantsFeatures: the test sets feature gate "ExampleStrikt", which is not registered; did you mean "ExampleStrict"?`, "one of Kubernetes itself in a _test.go file, with utilfeature.DefaultMutableFeatureGate.Add")

	i = fakes.NewInitializer(nil)
	i.Initialize(&misreadingPlugin{})
	wantInError(t, i.Err(), "call InspectFeatureGates of WantsFeatures", `the plugin reads feature gate "ExampleStrct" in fakes_test.(*misreadingPlugin).InspectFeatureGates (gates_test.go:`, `did you mean "ExampleStrict"?`, "fakes.InjectFeatureGates")
}

// misreadingPlugin reads a gate whose name is misspelt.
type misreadingPlugin struct{ base }

func (*misreadingPlugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	_ = gates.Enabled("ExampleStrct")
}

func wantInError(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want %q in it", err, text)
		}
	}
}

type evaluator struct{ quota.Evaluator }

func (evaluator) GroupResource() schema.GroupResource { return schema.GroupResource{Resource: "pods"} }
func (evaluator) Handles(admission.Attributes) bool   { return true }

func TestQuota(t *testing.T) {
	configuration := fakes.Quota(evaluator{}, nil)
	if got := configuration.Evaluators(); len(got) != 1 || got[0].GroupResource().Resource != "pods" {
		t.Errorf("evaluators: %v", got)
	}
	if got := fakes.Quota(); len(got.Evaluators()) != 0 || len(got.IgnoredResources()) != 0 {
		t.Errorf("empty configuration: %v", got)
	}
}
