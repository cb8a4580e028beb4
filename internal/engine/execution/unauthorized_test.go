package execution

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// reviewingTarget answers reviews of rights, by the name of the user, except the first ones. Its Sandbox refuses every request.
type reviewingTarget struct {
	targettest.Target
	may     map[string]bool
	refuses int
}

func (t *reviewingTarget) Do(ctx context.Context, request framework.Request) (framework.Result, error) {
	if ctx.Err() != nil {
		return framework.Result{}, ctx.Err()
	}
	allowed, answers := t.may[request.User.Name]
	if t.refuses--; t.refuses >= 0 || !answers {
		return response(403, "no roles yet"), nil
	}
	result := response(201, "")
	result.Object = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"allowed": allowed}}}
	return result, nil
}

// A refusal by the authorizer is inconclusive at once, with what grants the right, unless the authorizer has
// not read the roles: then the scenario is repeated.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	const cause = "the authorizer refused the request"
	const named = `: user "jane" may not patch deployments.apps/scale in namespace $(namespace): grant it with a Role and a RoleBinding in given`
	for name, test := range map[string]struct {
		may           map[string]bool
		refuses       int
		repeat, wants string
	}{
		"no role":           {map[string]bool{"jane": false}, 0, "", cause + named},
		"role not yet read": {map[string]bool{"jane": true}, 0, cause, ""},
		"may not ask":       {nil, 0, "", cause + named},
		"roles read later":  {map[string]bool{"jane": true}, 1, cause, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status := metav1.Status{Code: 403, Message: `deployments.apps "a" is forbidden: User "jane" cannot patch resource "deployments/scale" in API group "apps" in the namespace "at-1"`}
			c := caseOn(statusSandbox{status: status})
			c.patience = 250 * time.Millisecond
			c.ID, c.target = "at-1", &reviewingTarget{Target: targettest.Target{Sandbox: c.sandbox}, may: test.may, refuses: test.refuses}
			failure := c.step(t.Context(), scenario.Step{
				As: &framework.User{Name: "jane"}, Subresource: "scale",
				Patch: &scenario.Patch{ObjectReference: scenario.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"}, Merge: map[string]any{}},
			})
			if failure == nil {
				t.Fatal("the step held")
			}
			if got := failure.NothingAboutAdmission(); got != test.repeat {
				t.Errorf("got cause %q to repeat, want %q", got, test.repeat)
			}
			if got := c.Outcome(failure); test.wants != "" && (got.Verdict != framework.Inconclusive || !strings.HasSuffix(got.Reason, test.wants)) {
				t.Errorf("got %s: %s; want inconclusive: … %s", got.Verdict, got.Reason, test.wants)
			}
		})
	}
}
