package scenario

import (
	"testing"
	"testing/fstest"
)

// An error of a manifest has the position of the field that the API server names.
func TestErrorAt(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: admissiontest.dev/v1alpha1
kind: Scenario
metadata: {name: a.b}
spec:
  level: MUST
  requirement: A requirement.
  source: [https://example.com]
  givenFiles: [manifests/first.yaml]
  given:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: a}
      data:
        a.b: value
        dta: value
  when:
    - create:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: b}
        list: [{name: a}, {name: b}]
`
	loaded, err := Load(LoadOptions{FS: fstest.MapFS{
		"a.yaml":               {Data: []byte(text)},
		"manifests/first.yaml": {Data: []byte("apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n  lables: {}\n")},
	}}, "a.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ manifest, field, want string }{
		{"given[1]", "data.dta", "a.yaml:15:9: m"},
		{"given[1]", "data[a.b]", "a.yaml:14:9: m"},
		{"given[1]", "data.none.deeper", "a.yaml:13:7: m"},
		{"given[1]", "", "a.yaml:10:7: m"},
		{"given[0]", "metadata.lables", "manifests/first.yaml:5:3: m"},
		{"when[0].create", "list[1].name", "a.yaml:21:28: m"},
		{"when[0].create", "list[7].name", "a.yaml:21:9: m"},
		{"when[4].create", "list", "a.yaml:16:3: m"},
		{"given[-1]", "", "a.yaml:9:3: m"},
	} {
		t.Run(one.manifest+" "+one.field, func(t *testing.T) {
			if got := loaded[0].ErrorAt(one.manifest, one.field, "m", "").Error(); got != one.want {
				t.Errorf("%s %s: got %s; want %s", one.manifest, one.field, got, one.want)
			}
		})
	}
}

// An error in an expression has the position of its character, in the file that has the expression.
func TestErrorIn(t *testing.T) {
	t.Parallel()
	loaded, err := Load(LoadOptions{FS: fstest.MapFS{
		"t.yaml": {Data: []byte("apiVersion: admissiontest.dev/v1alpha1\nkind: PolicyTest\npolicies: p.yaml\ncases:\n- {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, allowed: true}\n")},
		"p.yaml": {Data: []byte(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations:
  - expression: >-
      object.data.x == '1' &&
      object.data.y == 2
    messageExpression: 'it''s + x'
`)},
	}}, "t.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		field string
		at    [2]int
		want  string
	}{
		{"spec.validations[0].expression", [2]int{1, 25}, "p.yaml:9:7: m"},
		{"spec.validations[0].messageExpression", [2]int{1, 8}, "p.yaml:10:33: m"},
		{"spec.validations[0].none", [2]int{1, 8}, "p.yaml:7:5: m"},
	} {
		t.Run(one.field, func(t *testing.T) {
			if got := loaded[0].ErrorIn("given[0]", one.field, one.at, "m").Error(); got != one.want {
				t.Errorf("got %s; want %s", got, one.want)
			}
		})
	}
}

// A scenario that is from no file has errors without a position.
func TestErrorAtWithoutFile(t *testing.T) {
	subject := Scenario{File: "b.yaml"}
	if got := subject.ErrorAt("given[0]", "data", "m", "").Error(); got != "b.yaml: m" {
		t.Errorf("ErrorAt: got %s", got)
	}
	if got := subject.ErrorIn("given[0]", "data", [2]int{2, 1}, "m").Error(); got != "b.yaml: m" {
		t.Errorf("ErrorIn: got %s", got)
	}
	if subject.FromFile("given[0]") {
		t.Error("FromFile is true")
	}
}
