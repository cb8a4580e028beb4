package contract

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// TestSubjectIsConverted: no field of a Subject is lost on its way to the rules.
func TestSubjectIsConverted(t *testing.T) {
	full := Subject{
		Name: "a", Source: harness.FromFactory(nil), World: []fakes.Option{nil},
		Inject: func(*fakes.World) []fakes.Injector { return nil }, Scheme: runtime.NewScheme(), Config: "b",
		Configs: Configs{Valid: []string{"c"}, Invalid: []string{"d"}, Required: true},
		Allow:   []framework.Request{{}}, Reject: []framework.Request{{}}, RejectWith: []Refusal{{}}, AnnotationPrefix: "e", Subresources: []string{"f"}, Enforced: []string{"g"},
	}
	public, internal := reflect.ValueOf(full), reflect.ValueOf(full.internal())
	if public.NumField() != internal.NumField() {
		t.Fatalf("check.Subject has %d fields, want %d", internal.NumField(), public.NumField())
	}
	for i := range public.NumField() {
		name := public.Type().Field(i).Name
		if public.Field(i).IsZero() {
			t.Errorf("this test does not set Subject.%s", name)
		}
		if got := internal.FieldByName(name); !got.IsValid() || got.IsZero() {
			t.Errorf("check.Subject.%s is not set", name)
		}
	}
	if DefaultBudget != check.DefaultBudget {
		t.Errorf("DefaultBudget is %s, want %s", DefaultBudget, check.DefaultBudget)
	}
}
