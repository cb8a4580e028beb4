package engine

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

const shippedPolicy = "# comment\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\nspec:\n  failurePolcy: Fail\n"

const misspeltPolicy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\nspec:\n  matchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], resources: [configmap]}]}\n"

// installing is a Provider and Target whose installation ends with an error.
type installing struct {
	targettest.Target
	err               error
	installed, closed int
}

func (*installing) Optional() target.Optional {
	return target.Optional{Resources: func() []metav1.APIResource { return []metav1.APIResource{{Version: "v1", Name: "configmaps"}} }}
}

func (*installing) Check(context.Context) error             { return nil }
func (*installing) Version(context.Context) (string, error) { return "", nil }
func (p *installing) Start(context.Context, target.StartOptions) (target.Target, error) {
	return p, nil
}
func (p *installing) Close(context.Context) error { p.closed++; return nil }
func (p *installing) InstallForRun(_ context.Context, all []map[string]any) error {
	p.installed += len(all)
	return p.err
}

func project(t *testing.T) *shipped.Project {
	t.Helper()
	return projectOf(t, shippedPolicy)
}

func projectOf(t *testing.T, text string) *shipped.Project {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := shipped.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// An error of the installation ends the run before the first scenario, and the target is closed. One
// whose cause is in the file is an error of the file.
func TestInstallFails(t *testing.T) {
	t.Parallel()
	strict := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest, Message: `strict decoding error: unknown field "spec.failurePolcy"`}}
	for name, one := range map[string]struct {
		err    error
		want   string
		inFile bool
	}{
		"misspelt field": {strict, `policy.yaml:6:3: ValidatingAdmissionPolicy a: unknown field "spec.failurePolcy"; expected a field of the API server's admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy; did you mean "failurePolicy"?`, true},
		"misspelt rule":  {nil, `policy.yaml:5:87: ValidatingAdmissionPolicy a: spec.matchConstraints.resourceRules[0].resources[0]: the rule matches nothing that the API server serves, because of "configmap" in resources; did you mean "configmaps"?`, true},
		"other":          {errors.New("cannot be narrowed"), "policy.yaml:2:1: cannot be narrowed", true},
		"no rights":      {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Message: "forbidden"}}, "policy.yaml:2: ValidatingAdmissionPolicy a: forbidden", false},
		"no response":    {framework.ErrNoResponse, "no response", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, text := &installing{}, misspeltPolicy
			if one.err != nil {
				p.err, text = &framework.ManifestError{Err: one.err}, shippedPolicy
			}
			r, err := Run(t.Context(), Options{Scenarios: []scenario.Scenario{{Metadata: scenario.Metadata{Name: "a.b"}}}, Provider: p, Install: projectOf(t, text)})
			if err == nil || !strings.Contains(err.Error(), one.want) || (len(scenario.Errors(err)) > 0) != one.inFile {
				t.Errorf("got %v; want %q", err, one.want)
			}
			if len(r.Outcomes) != 1 || !r.Outcomes[0].NotReached || r.Target.Kind != "" || p.installed != 1 || p.closed != 1 {
				t.Errorf("%+v, %d installed, %d closed", r, p.installed, p.closed)
			}
		})
	}
}
