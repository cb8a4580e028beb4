package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/suites/policy"
)

// written returns manifests in a file.
func written(t *testing.T, text string) policy.Manifests {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.Files(file)
}

const comparedPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  validations:
  - expression: EXPRESSION
    message: images come from our registry
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`

const podOf = `{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {automountServiceAccountToken: false, containers: [{name: a, image: IMAGE}]}}`

func policyOf(name, expression string) string {
	return strings.NewReplacer("NAME", name, "EXPRESSION", expression).Replace(comparedPolicy)
}

// TestDifferences: a policy that forgets init containers, or that compares with a shorter prefix, differs from the first one.
func TestDifferences(t *testing.T) {
	whole := `"object.spec.containers.all(c, c.image.startsWith('r.example.com/')) && object.spec.?initContainers.orValue([]).all(c, c.image.startsWith('r.example.com/'))"`
	side := func(name, expression string) policy.Subject {
		return policy.Subject{Policies: written(t, policyOf(name, expression))}
	}
	samples := side("images", whole)
	samples.Good = written(t, strings.NewReplacer("NAME", "good", "IMAGE", "r.example.com/a").Replace(podOf))
	samples.Bad = []policy.Bad{{Object: written(t, strings.NewReplacer("NAME", "bad", "IMAGE", "other/a").Replace(podOf)), Denied: "our registry"}}
	for name, test := range map[string]struct {
		expression, want string
	}{
		"same":            {whole, ""},
		"init containers": {`"object.spec.containers.all(c, c.image.startsWith('r.example.com/'))"`, "initContainers"},
		"shorter":         {`"(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.image.startsWith('r.example.com'))"`, "r.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := policy.Differences(t.Context(), samples, side("others", test.expression))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(found.Sum(), found.Dropped, found.Unsteady, found.Compared)
			for _, each := range found.Differences {
				t.Log(each, each.Like, each.Case)
			}
			text := fmt.Sprintf("%v %v", found.Differences, found.Unsteady)
			if len(found.Differences) != min(1, len(test.want)) || len(found.Unsteady) > 0 || !strings.Contains(text, test.want) {
				t.Errorf("got %s, want %q in it", text, test.want)
			}
		})
	}
}
