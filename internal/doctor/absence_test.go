package doctor

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

// What files do not have, another file, an operator or a controller can add: it is no finding.
func TestAbsence(t *testing.T) {
	account := func(all []shipped.Manifest) []shipped.Manifest {
		for _, m := range all {
			if m.Object["kind"] == "Deployment" {
				_ = unstructured.SetNestedField(m.Object, "guard", "spec", "template", "spec", "serviceAccountName")
			}
		}
		return all
	}
	reads := func(all []shipped.Manifest) []shipped.Manifest {
		subjects := []any{map[string]any{"kind": "ServiceAccount", "name": "guard", "namespace": "guard-system"}}
		return append(all, shipped.Manifest{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "a"}, "subjects": subjects}})
	}
	as := func(all []shipped.Manifest) []shipped.Manifest { return all }
	for name, test := range map[string]struct {
		file, id string
		change   func([]shipped.Manifest) []shipped.Manifest
		found    bool
	}{
		"an operator makes the workload":    {"cases/operator-makes-it", "CF-REACH-1", as, false},
		"it can fill the caBundle":          {"cases/operator-makes-it", "CF-REACH-3", as, false},
		"nothing fills the caBundle":        {"cf-reach-3/bad", "CF-REACH-3", as, true},
		"an account whose rights are known": {"cf-reach-3/bad", "CF-REACH-3", func(all []shipped.Manifest) []shipped.Manifest { return reads(account(all)) }, true},
		"an account with unknown rights":    {"cf-reach-3/bad", "CF-REACH-3", account, false},
		"firewalls block port 9443":         {"cf-match-3/good", "CF-REACH-2", as, false},
		"another policy": {"cf-match-8/bad", "CF-MATCH-8", func(all []shipped.Manifest) []shipped.Manifest {
			all[0].Object["metadata"].(map[string]any)["name"] = "other"
			return all
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			project, err := shipped.Read("testdata/" + test.file + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			report, err := Judge(t.Context(), Input{Manifests: test.change(project.Manifests), Only: []string{test.id}})
			if err != nil {
				t.Fatal(err)
			}
			if found, remarks := len(report.Findings) > 0, len(report.NotChecked) > 0; found != test.found || remarks == test.found {
				t.Errorf("got %s", report.Text(true))
			}
			earlier := *report
			if report.Accept(&earlier); len(report.NotChecked) > 0 || strings.Contains(report.Text(true), " 0 suppressed") {
				t.Errorf("after its own baseline: %s", report.Text(true))
			}
		})
	}
}
