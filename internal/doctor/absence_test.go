package doctor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

// What files do not have, another file, an operator or a controller can add: it is a remark and no finding.
func TestAbsence(t *testing.T) {
	const account = `"serviceAccountName":"guard",`
	binding := shipped.Manifest{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "a"}, "subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "guard"}},
	}}
	for name, test := range map[string]struct {
		file, id, old, new string
		more               []shipped.Manifest
		found              bool
	}{
		"an operator makes the workload": {file: "cases/operator-makes-it", id: "CF-REACH-1"},
		"it can fill the caBundle":       {file: "cases/operator-makes-it", id: "CF-REACH-3"},
		"nothing fills the caBundle":     {file: "cf-reach-3/bad", id: "CF-REACH-3", found: true},
		"rights are known":               {file: "cf-reach-3/bad", id: "CF-REACH-3", old: `"containers"`, new: account + `"containers"`, more: []shipped.Manifest{binding}, found: true},
		"rights are not known":           {file: "cf-reach-3/bad", id: "CF-REACH-3", old: `"containers"`, new: account + `"containers"`},
		"firewalls block port 9443":      {file: "cf-match-3/good", id: "CF-REACH-2"},
		"a field that others have":       {file: "cf-block-12/good-fields", id: "CF-BLOCK-12", old: "spec.group", new: "spec.conversion.strategy"},
		"another policy":                 {file: "cf-match-8/bad", id: "CF-MATCH-8", old: `"name":"guard"}`, new: `"name":"other"}`},
	} {
		project, err := shipped.Read("testdata/" + test.file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for i := range project.Manifests {
			text, _ := json.Marshal(project.Manifests[i].Object)
			if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), test.old, test.new)), &project.Manifests[i].Object); err != nil && test.old != "" {
				t.Fatal(err)
			}
		}
		report, err := Judge(t.Context(), Input{Manifests: append(project.Manifests, test.more...), Only: []string{test.id}})
		if err != nil {
			t.Fatal(err)
		}
		if found, remarks := len(report.Findings) > 0, len(report.NotChecked) > 0; found != test.found || remarks == test.found {
			t.Errorf("%s: got %s", name, report.Text(true))
		}
		earlier := *report
		if report.Accept(&earlier); len(report.NotChecked) > 0 || strings.Contains(report.Text(true), " 0 suppressed") {
			t.Errorf("%s: after its own baseline: %s", name, report.Text(true))
		}
	}
}
