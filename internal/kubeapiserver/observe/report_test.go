package observe_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
)

// by returns a create of an object of a resource, by a user.
func by(name, resource, object string) admission.Attributes {
	return admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", object,
		rbacv1.SchemeGroupVersion.WithResource(resource), "", admission.Create, nil, false, &user.DefaultInfo{Name: name})
}

// A refusal of what the API server itself creates is reported once for each resource, and a panic with
// its position. The errors and the panic stay the same.
func TestReports(t *testing.T) {
	printed := &strings.Builder{}
	r := &observe.Recorder{OnlyReports: true, Own: []string{"Own"}, Out: printed}
	own := r.Decorate(does{mutates{create(), func(admission.Attributes) error { return boom() }}, func(a admission.Attributes) error {
		return errors.New("no\nowner for " + a.GetName())
	}}, "Own")
	for _, a := range []admission.Attributes{by("jane", "roles", "a"), by(user.APIServerUser, "roles", "b"), by(user.APIServerUser, "roles", "c"), by(user.APIServerUser, "clusterroles", "d")} {
		if err := own.(admission.ValidationInterface).Validate(t.Context(), a, nil); err == nil || err.Error() != "no\nowner for "+a.GetName() {
			t.Errorf("got %v, want the error of the plugin", err)
		}
	}
	func() {
		defer func() {
			if cause := recover(); fmt.Sprint(cause) != "assignment to entry in nil map" {
				t.Errorf("recovered %v, want the panic of the plugin", cause)
			}
		}()
		_ = own.(admission.MutationInterface).Admit(t.Context(), by("jane", "roles", "e"), nil)
	}()
	lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
	want := []string{
		"admissiontest: plugin Own refused the API server's own request to create roles.rbac.authorization.k8s.io b: no owner for b",
		"admissiontest: plugin Own refused the API server's own request to create clusterroles.rbac.authorization.k8s.io d: no owner for d",
		"observe_test.boomAt (report_test.go:",
	}
	if len(lines) != len(want) {
		t.Fatalf("printed\n%s\nwant %d lines", printed, len(want))
	}
	for i, text := range want {
		if !strings.Contains(lines[i], text) {
			t.Errorf("line %d is %q, want %q in it", i, lines[i], text)
		}
	}
	if want := "): assignment to entry in nil map; it was called for create roles.rbac.authorization.k8s.io e"; !strings.HasPrefix(lines[2], "admissiontest: plugin Own panicked at ") || !strings.HasSuffix(lines[2], want) {
		t.Errorf("the panic is %q, want %q at its end", lines[2], want)
	}
}

// boom panics.
func boom() error {
	return boomAt(nil)
}

func boomAt(labels map[string]string) error {
	labels["a"] = "b"
	return nil
}

// A plugin that is not of the user, and is not recorded, is not decorated.
func TestOthersAreNotDecorated(t *testing.T) {
	inner := validates{create(), nothing}
	if got := (&observe.Recorder{OnlyReports: true, Own: []string{"Own"}}).Decorate(inner, "Other"); fmt.Sprintf("%T", got) != "observe_test.validates" {
		t.Errorf("got a %T, want the plugin itself", got)
	}
}

// The position is the function that panicked, or the innermost function of a package that is given.
func TestPanicPosition(t *testing.T) {
	for _, test := range []struct {
		packages []string
		want     string
		found    bool
	}{
		{nil, "observe_test.boomAt (report_test.go:", false},
		{[]string{"example.com/none", "testing"}, "testing.tRunner (testing.go:", true},
	} {
		t.Run(test.want, func(t *testing.T) {
			defer func() {
				_ = recover()
				position, found := observe.PanicPosition(test.packages...)
				if !strings.Contains(position, test.want) || found != test.found {
					t.Errorf("got %q, %t; want %q, %t", position, found, test.want, test.found)
				}
			}()
			_ = boom()
		})
	}
}
