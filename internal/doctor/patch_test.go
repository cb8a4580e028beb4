package doctor

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

// patched returns the report about files after the patches of findings.
func patched(t *testing.T, file string, findings ...Finding) *Report {
	t.Helper()
	project, err := shipped.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		at := slices.IndexFunc(project.Manifests, func(m shipped.Manifest) bool {
			return (&object{Unstructured: unstructured.Unstructured{Object: m.Object}}).String() == f.Object
		})
		operations, _ := json.Marshal(f.Patch)
		patch, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(project.Manifests[at].Object)
		if text, err = patch.Apply(text); err != nil {
			t.Fatalf("apply %s to %s: %v", operations, f.Object, err)
		}
		project.Manifests[at].Object = nil
		if err := json.Unmarshal(text, &project.Manifests[at].Object); err != nil {
			t.Fatal(err)
		}
	}
	report, err := Judge(t.Context(), Input{Manifests: project.Manifests})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Each patch that is printed is applied, alone and after all others: its finding is gone, and there is no new one.
func TestPatches(t *testing.T) {
	files, _ := filepath.Glob("testdata/*/*.yaml")
	patches := 0
	for _, file := range files {
		before := judge(t, file)
		of := func(f Finding) func(Finding) bool {
			return func(other Finding) bool {
				return other.Rule == f.Rule && other.Object == f.Object && other.Message == f.Message
			}
		}
		with := slices.DeleteFunc(slices.Clone(before.Findings), func(f Finding) bool { return len(f.Patch) == 0 })
		patches += len(with)
		all := patched(t, file, with...)
		for _, f := range with {
			if slices.ContainsFunc(patched(t, file, f).Findings, of(f)) {
				t.Errorf("%s: the finding is still there after its patch: %s", file, f)
			}
			if slices.ContainsFunc(all.Findings, of(f)) {
				t.Errorf("%s: the finding is still there after the patches of all: %s", file, f)
			}
		}
		for _, f := range all.Findings {
			if !slices.ContainsFunc(before.Findings, of(f)) {
				t.Errorf("%s: the patches lead to a finding: %s", file, f)
			}
		}
	}
	if patches < 15 {
		t.Errorf("got %d findings with a patch", patches)
	}
}

// The request that a finding names is one that the rules have, and the fix can change what happens to it.
func TestFixFitsRequest(t *testing.T) {
	own := func(key, operator string) map[string]any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": key, "operator": operator, "values": []any{"off"}}}}
	}
	pods := ruleOf("CREATE", "", "pods")
	for name, test := range map[string]struct {
		id             string
		rule, fields   map[string]any
		severity       Severity
		request, fix   string
		without, patch string
	}{
		"namespaces by name":    {"CF-BLOCK-2", pods, nil, Error, "CREATE pods/coredns-0 in kube-system", "NotIn [kube-system]", "matchCondition", `"kube-system"`},
		"no namespace":          {"CF-BLOCK-2", ruleOf("CREATE UPDATE", "rbac.authorization.k8s.io", "clusterroles"), nil, Error, "CREATE clusterroles/system:node", `leave out clusterroles with a matchCondition, such as request.userInfo.username != "system:apiserver"`, "namespaceSelector", ""},
		"nodes":                 {"CF-BLOCK-2", ruleOf("UPDATE", "", "nodes/status configmaps"), nil, Error, "UPDATE configmaps", `NotIn [kube-system]; leave out nodes with a matchCondition, such as !("system:nodes" in request.userInfo.groups)`, "", ""},
		"every namespace":       {"CF-BLOCK-2", ruleOf("CREATE UPDATE", "", "namespaces"), nil, Error, "CREATE namespaces/any-namespace", "let namespaces opt in", "matchCondition", ""},
		"namespaces on update":  {"CF-BLOCK-2", ruleOf("UPDATE", "", "namespaces"), nil, Error, "UPDATE namespaces/kube-system", "NotIn [kube-system]", "", `"kube-system"`},
		"namespaces, uncertain": {"CF-BLOCK-2", ruleOf("CREATE UPDATE", "", "namespaces"), map[string]any{"namespaceSelector": own("openshift.io/run-level", "NotIn")}, Warning, "UPDATE namespaces/kube-system", "NotIn [kube-system]", "", `"kube-system"`},
		"its only namespace":    {"CF-BLOCK-2", pods, map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{nameLabel: "kube-system"}}}, Error, "coredns", "take kube-system out of the namespaces", "NotIn", ""},
		"namespace default":     {"CF-BLOCK-1", pods, map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": "default", "name": "guard"}}}, Error, "in default", "a namespace of its own", "matchCondition", ""},
		"own value":             {"CF-BLOCK-2", pods, map[string]any{"namespaceSelector": own("example.com/guard", "NotIn")}, Error, "coredns", "NotIn [kube-system]", "", `"example.com/guard"`},
		"value of a platform":   {"CF-BLOCK-2", pods, map[string]any{"namespaceSelector": own("openshift.io/run-level", "NotIn")}, Warning, "coredns", "NotIn [kube-system]", "", `"kube-system"`},
		"own value, other":      {"CF-BLOCK-1", pods, map[string]any{"namespaceSelector": own("example.com/guard", "NotIn"), "clientConfig": map[string]any{"service": map[string]any{"namespace": "other", "name": "guard"}}}, Warning, "in other", "NotIn [other]", "", `"other"`},
		"its own namespace":     {"CF-BLOCK-11", ruleOf("DELETE", "", "namespaces"), nil, Warning, "DELETE namespaces/guard-system", "NotIn [guard-system]; or leave out DELETE", "", `"guard-system"`},
		"opt in":                {"CF-MATCH-5", ruleOf("DELETE", "example.com", "widgets"), map[string]any{"objectSelector": map[string]any{"matchLabels": map[string]any{"used": "yes"}}}, Note, "DELETE widgets without the label used", "leave out the objectSelector", "select namespaces", ""},
		"way out":               {"CF-MATCH-5", ruleOf("UPDATE", "example.com", "widgets"), map[string]any{"objectSelector": own("skip", "NotIn")}, Warning, "UPDATE widgets with the label skip", "", "", ""},
		"way out, no namespace": {"CF-MATCH-5", ruleOf("UPDATE", "", "nodes"), map[string]any{"objectSelector": own("skip", "NotIn")}, Warning, "UPDATE nodes with the label skip", "use a matchCondition", "select namespaces", ""},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := webhookWith("Validating", func(w map[string]any) {
				maps.Copy(w, test.fields)
				w["rules"] = []any{test.rule}
			})
			report, err := Judge(t.Context(), Input{Manifests: append(around(t), manifest), Only: []string{test.id}})
			if err != nil || len(report.Findings) != 1 {
				t.Fatalf("got %s, %v", report.Text(true), err)
			}
			f := report.Findings[0]
			patch, _ := json.Marshal(f.Patch)
			if f.Severity != test.severity || !strings.Contains(f.Request, test.request) || !strings.Contains(f.Fix, test.fix) || test.without != "" && strings.Contains(f.Fix, test.without) || !strings.Contains(string(patch), test.patch) || test.patch == "" && f.Patch != nil {
				t.Errorf("got %s\n  fix %s\n  patch %s", f, f.Fix, patch)
			}
		})
	}
}

// A policy leaves out a namespace by its name, and requests without one in another way.
func TestFixOfPolicy(t *testing.T) {
	bad, _ := os.ReadFile("testdata/cf-block-12/bad.yaml")
	for resource, want := range map[string]string{"pods": "matchResources.namespaceSelector of the binding with kubernetes.io/metadata.name NotIn [kube-system]", "nodes": "leave out nodes with a matchCondition"} {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		_ = os.WriteFile(file, bytes.ReplaceAll(bad, []byte("[pods]"), []byte("["+resource+"]")), 0o600)
		if f := judge(t, file).Findings; len(f) != 1 || !strings.Contains(f[0].Fix, want) {
			t.Errorf("%s: got %+v", resource, f)
		}
	}
}
