package contract_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/featuregate"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// initialized is a plugin with feature gates whose ValidateInitialization returns an error.
type initialized struct {
	*forbidden
	err error
}

func (initialized) InspectFeatureGates(featuregate.FeatureGate) {}

func (p initialized) ValidateInitialization() error { return p.err }

func (p initialized) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if !p.WaitForReady() {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	return p.forbidden.Validate(ctx, a, o)
}

// TestSubjectThatCannotBeBuilt: it is one mistake, and no rule says anything about it.
func TestSubjectThatCannotBeBuilt(t *testing.T) {
	from := func(p *initialized, failed error) harness.Source {
		return harness.FromFactory(func(io.Reader) (admission.Interface, error) { return p, failed })
	}
	plain := func() *initialized {
		return &initialized{forbidden: &forbidden{Handler: admission.NewHandler(admission.Create)}}
	}
	never := plain()
	never.SetReadyFunc(func() bool { return false })
	teams := schema.GroupVersion{Group: "example.com", Version: "v1"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
	for name, test := range map[string]struct {
		edit func(*contract.Subject)
		want string
	}{
		"mapping without a scope": {func(s *contract.Subject) {
			s.World = []fakes.Option{fakes.WithMappings(meta.RESTMapping{Resource: teams.WithResource("teams"), GroupVersionKind: teams.WithKind("Team")})}
		}, "make World: "},
		"twice": {func(s *contract.Subject) { s.World = []fakes.Option{fakes.WithObjects(pod, pod)} }, `there are two objects /v1, Kind=Pod "default/p": leave one out`},
		"gate that is not registered": {func(s *contract.Subject) {
			s.Source = from(plain(), nil)
			s.Inject = func(*fakes.World) []fakes.Injector {
				return []fakes.Injector{fakes.InjectFeatureGates(fakes.Gates(map[featuregate.Feature]bool{"Nowhere": true}))}
			}
		}, `feature gate "Nowhere", which is not registered`},
		"Inject panics": {func(s *contract.Subject) { s.Inject = func(*fakes.World) []fakes.Injector { panic("no injectors") } }, "panic: no injectors"},
		"factory refuses": {func(s *contract.Subject) {
			s.Source = from(nil, errors.New("no configuration"))
		}, "its factory: no configuration"},
		"ValidateInitialization": {func(s *contract.Subject) {
			p := plain()
			p.err = errors.New("missing foo")
			s.Source = from(p, nil)
		}, "missing foo"},
		"never ready": {func(s *contract.Subject) { s.Source = from(never, nil) }, "the plugin is not ready 10 s after its initialization"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := subject()
			test.edit(&broken)
			report := contract.Check(broken, contract.Strict())
			if len(report.Misuse) != 1 || !strings.Contains(report.Misuse[0], test.want) || !strings.HasSuffix(report.Misuse[0], "no rule was checked") {
				t.Errorf("misuse is %q, want one with %q", report.Misuse, test.want)
			}
			for _, outcome := range report.Outcomes {
				if outcome.Verdict != framework.Inconclusive || outcome.Reason != "no plugin could be built" {
					t.Errorf("%s: got %s: %s; want that no plugin could be built", outcome.Rule, outcome.Verdict, outcome.Reason)
				}
			}
		})
	}
}
