package execution

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/target/targettest"
)

// withClients is a Target whose API server has other clients, if shared, and where only ConfigMaps live in
// namespaces.
type withClients struct {
	targettest.Target
	shared bool
}

func (withClients) Namespaced(kind schema.GroupVersionKind) (bool, error) {
	return kind.Kind == "ConfigMap", nil
}

func (t withClients) Optional() target.Optional {
	if !t.shared {
		return target.Optional{}
	}
	return target.Optional{Confined: func(string, framework.Request) error { return nil }}
}

// The user of a case of a PolicyTest gets rights. On an API server of others, these are never rights to objects
// of others.
func TestRightsToObjectsOfOthers(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io/v1"
	for name, test := range map[string]struct {
		shared     bool
		policyTest bool
		version    string
		kind       string
		as         *framework.User
		refused    bool
	}{
		"cluster-scoped":        {true, true, rbac, "ClusterRoleBinding", &framework.User{Name: "jane"}, true},
		"in a namespace":        {true, true, "v1", "ConfigMap", &framework.User{Name: "jane"}, false},
		"of an administrator":   {true, true, rbac, "ClusterRoleBinding", &framework.User{Name: "jane", Groups: []string{"system:masters"}}, false},
		"of the run":            {true, true, rbac, "ClusterRoleBinding", nil, false},
		"of a Scenario":         {true, false, rbac, "ClusterRoleBinding", &framework.User{Name: "jane"}, false},
		"without other clients": {false, true, rbac, "ClusterRoleBinding", &framework.User{Name: "jane"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			step := scenario.Step{As: test.as, Create: map[string]any{"apiVersion": test.version, "kind": test.kind, "metadata": map[string]any{"name": "a"}}}
			s := scenario.Scenario{Spec: scenario.Spec{When: []scenario.Step{step}}}
			if test.policyTest {
				s.Cases = []scenario.Case{{When: s.Spec.When}}
			}
			setup, err := New(s, withClients{shared: test.shared}, Options{Secrets: func() *redact.Set { return &redact.Set{} }})
			if err != nil {
				t.Fatal(err)
			}
			if err := setup.Cases[0].Foreign(); errors.Is(err, framework.ErrForeign) != test.refused {
				t.Errorf("Foreign = %v; want refused: %v", err, test.refused)
			}
		})
	}
}
