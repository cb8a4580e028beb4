package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/suites/policy"
)

// manifest returns a file of testdata. Images, limits, scalers, replicas and templates are policies that obey all rules; second, guarded and
// replaced are added to one of them.
func manifest(name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		panic(err)
	}
	return "\n" + string(text)
}

// ofPods is a rule for the create of pods.
const ofPods = `{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}`

// file writes a file with manifests.
func file(t testing.TB, text string) policy.Manifests {
	t.Helper()
	name := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.Files(name)
}

func subject(t testing.TB, policies string) policy.Subject {
	t.Helper()
	return policy.Subject{
		Policies: file(t, policies), Good: file(t, strings.ReplaceAll(manifest("pod"), "IMAGE", "registry.example.com/a")),
		Bad: []policy.Bad{{Object: file(t, strings.ReplaceAll(manifest("pod"), "IMAGE", "example.org/a")), Denied: "registry.example.com/"}},
	}
}

// faulty are changes of the sound policy for images. Each breaks the rules with which it begins, and no other.
func faulty() map[string]string {
	change := func(pairs ...string) string {
		text := manifest("images")
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(text, pairs[i]) {
				panic("the sound policy has no " + pairs[i])
			}
			text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
		}
		return text
	}
	const label = `Object{metadata: Object.metadata{labels: {"marked": "yes"}}}`
	validation := "      message: images must come from registry.example.com/\n"
	return map[string]string{
		"PO-VERDICT-1": change("'registry.example.com/'", "''"),
		"PO-ERR-1":     change(validation, validation+"    - {expression: \"object.metadata.labels.exempt != 'maybe'\", message: maybe}\n"),
		"PO-ERR-1 PO-ERR-2": change("failurePolicy: Fail\n  matchConstraints:\n", "failurePolicy: Ignore\n  matchConstraints:\n",
			"startsWith('registry.example.com/'))", "startsWith('registry.example.com/')) || object.spec.automountServiceAccountToken"),
		"PO-ERR-1 PO-ERR-2 in many lines": change("failurePolicy: Fail\n  matchConstraints:\n", "failurePolicy: Ignore\n  matchConstraints:\n",
			"startsWith('registry.example.com/'))", `startsWith('registry.example.com/')) || // or\nobject.spec.automountServiceAccountToken\n`),
		"PO-ERR-3 in many lines":  change("oldObject == null ||", `// a new object\nobject.metadata.labels.exempt != '' &&\noldObject == null ||`),
		"PO-ERR-4":                change(validation, validation+"    - {expression: \"!has(object.spec.hostNetwrk)\", message: no host network}\n"),
		"PO-ERR-5":                manifest("images") + strings.ReplaceAll(manifest("guarded"), "EXPRESSION", "object.metadata.name != 'keep'"),
		"PO-ERR-6":                change(validation, ""),
		"PO-ERR-3":                change("oldObject == null ||", "oldObject == null || namespaceObject != null ||"),
		"PO-ERR-3 for an error":   change("oldObject == null ||", "object.metadata.labels.exempt != '' && oldObject == null ||"),
		"PO-ERR-4 by its path":    change(validation, validation+"    - {expression: \"!has(object.spec.template)\", message: no template}\n"),
		"PO-ERR-6 as a message":   change(validation, "      message: object.metadata.name + ' has an image that is not from registry.example.com/'\n"),
		"PO-ERR-7":                change("  validations:\n", "  auditAnnotations: [{key: exempt, valueExpression: \"string(object.metadata.labels.exempt)\"}]\n  validations:\n"),
		"PO-VERDICT-3":            change("variables.all.all(", "size(object.spec.containers) > 2 || variables.all.all("),
		"PO-VERDICT-4":            change("variables.all.all(", "!request.dryRun || variables.all.all("),
		"PO-VERDICT-4 by options": change("variables.all.all(", "request.options.?fieldManager.orValue('') == 'contract' || variables.all.all("),
		"PO-DOOR-7":               change("matchConditions:\n", "matchConditions:\n    - {name: exempt, expression: \"object.metadata.?labels.exempt.orValue('no') != 'yes'\"}\n"),
		"PO-DOOR-8":               change("'registry.example.com/')", "'registry.example.com')"),
		"PO-DOOR-1":               change("operations: [CREATE, UPDATE], resources: [pods]}", "operations: [CREATE], resources: [pods]}"),
		"PO-DOOR-2":               change(" + dyn(object.spec.?initContainers.orValue([]))", ""),
		"PO-DOOR-3":               change("      - {apiGroups: [\"\"], apiVersions: [v1], operations: [UPDATE], resources: [pods/ephemeralcontainers]}\n", ""),
		"PO-DOOR-6":               change("startsWith('registry.example.com/'))", "startsWith('registry.example.com/')) || has(object.metadata.generateName)"),
		"PO-LIFE-1":               change("|| object.spec != oldObject.spec", "|| !has(object.metadata.deletionTimestamp)"),
		"PO-LIFE-2":               change("|| object.spec != oldObject.spec", "|| object.spec != oldObject.spec || has(object.metadata.deletionTimestamp)"),
		"PO-LIFE-3":               manifest("images") + strings.ReplaceAll(manifest("guarded"), "EXPRESSION", "request.userInfo.username == 'contract-requester'"),
		"PO-LIFE-4":               manifest("images") + strings.NewReplacer("operations: [DELETE], resources: [pods]", "operations: [UPDATE], resources: [services]", "EXPRESSION", "object.spec.type != 'ClusterIP'").Replace(manifest("guarded")),
		"PO-MUT-1": change("patchType: ApplyConfiguration", "patchType: JSONPatch",
			`applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"marked": "yes"}}}'}`,
			`jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: "b" + string(size(object.spec.tolerations)), operator: "Exists"}}]'}`),
		"PO-MUT-4": change("operations: [CREATE], resources: [pods]}]}\n  mutations", "operations: [CREATE, UPDATE], resources: [pods]}]}\n  mutations",
			`Object{metadata: Object.metadata{labels: {"marked": "yes"}}}`, `Object{spec: Object.spec{hostname: "always"}}`),
		"PO-MUT-3": change(label, `Object{spec: Object.spec{hostname: has(object.metadata.labels) ? "valid" : "Not Valid"}}`),
		"PO-MUT-5": change("patchType: ApplyConfiguration", "patchType: JSONPatch", "applyConfiguration: {expression: '"+label+"'}",
			`jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels", value: {"marked": "yes"}}]'}`),
		"PO-MUT-6": change("patchType: ApplyConfiguration", "patchType: JSONPatch", "applyConfiguration: {expression: '"+label+"'}",
			`jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels/marked", value: "yes"}]'}`),
		"PO-MUT-9 PO-VERDICT-3": change("patchType: ApplyConfiguration", "patchType: JSONPatch", "  mutations:", "  matchConditions: [{name: a, expression: \"object.spec.containers.exists(c, c.image == 'registry.example.com/a')\"}]\n  mutations:",
			"applyConfiguration: {expression: '"+label+"'}", `jsonPatch: {expression: '[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "registry.example.com/a:1"}]'}`),
		"PO-MUT-2":  manifest("images") + strings.ReplaceAll(manifest("second"), "LABEL", "marked"),
		"PO-BIND-1": change("spec: {policyName: marked}", "spec: {policyName: markd}"),
		"PO-ERR-8":  change(validation, validation+"    - {expression: \""+strings.Repeat("object.spec.containers.all(c, ", 7)+"c.name != 'bad'"+strings.Repeat(")", 7)+"\", message: bad name}\n"),
		"PO-MUT-7":  change("operations: [CREATE], resources: [pods]}]}\n  mutations", "operations: [CREATE, UPDATE], resources: [pods]}]}\n  mutations", label, "oldObject == null ? Object{} : "+label),
	}
}

func limits(t *testing.T, pairs ...string) policy.Subject {
	t.Helper()
	return policy.Subject{
		Policies: file(t, strings.NewReplacer(pairs...).Replace(manifest("limits"))), Good: file(t, strings.ReplaceAll(manifest("quota"), "PODS", "3")),
		Given: file(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: most, namespace: default, labels: {a: b}}, data: {most: '5', other: '6'}}"),
		Bad:   []policy.Bad{{Object: file(t, strings.ReplaceAll(manifest("quota"), "PODS", "30")), Denied: "too many pods"}},
	}
}

func scalers(t *testing.T, policies string) policy.Subject {
	t.Helper()
	return policy.Subject{
		Policies: file(t, policies), Good: file(t, strings.ReplaceAll(manifest("scaler"), "MOST", "3")),
		Bad: []policy.Bad{{Object: file(t, strings.ReplaceAll(manifest("scaler"), "MOST", "30")), Denied: "at most 5 replicas"}},
	}
}

func replicas(t *testing.T, policies string) policy.Subject {
	t.Helper()
	return policy.Subject{
		Policies: file(t, policies), Good: file(t, strings.ReplaceAll(manifest("replicaset"), "MOST", "3")),
		Bad: []policy.Bad{{Object: file(t, strings.ReplaceAll(manifest("replicaset"), "MOST", "30")), Denied: "at most 5 replicas"}},
	}
}

func templates(t *testing.T, policies string) policy.Subject {
	t.Helper()
	set := func(image string) string {
		return strings.NewReplacer("MOST", "1", "image: i", "image: "+image).Replace(manifest("replicaset"))
	}
	return policy.Subject{
		Policies: file(t, policies), Good: file(t, set("registry.example.com/a")),
		Bad: []policy.Bad{{Object: file(t, set("example.org/a")), Denied: "registry.example.com/"}},
	}
}

// faultySubjects are Subjects with changes of other sound policies.
func faultySubjects(t *testing.T) map[string]policy.Subject {
	t.Helper()
	return map[string]policy.Subject{
		"PO-DOOR-3 by scale": replicas(t, strings.Replace(manifest("replicas"), ", replicasets/scale", "", 1)),
		"PO-DOOR-4":          templates(t, strings.Replace(manifest("templates"), "[pods, pods/ephemeralcontainers]", "[podtemplates]", 1)),
		"PO-LIFE-5":          templates(t, strings.Replace(manifest("templates"), "  validations:\n", "  validations:\n    - {expression: \"has(object.spec.template) || !has(object.metadata.ownerReferences)\", message: no owner}\n", 1)),
		"PO-MUT-8":           templates(t, manifest("templates")+manifest("replaced")),
		"PO-DOOR-5":          scalers(t, strings.Replace(manifest("scalers"), "matchConstraints:", "matchConstraints:\n    matchPolicy: Exact", 1)),
		"PO-VERDICT-2": limits(t, "quantity(object.spec.?hard[?'pods'].orValue('0')).compareTo(quantity(params.?data[?'most'].orValue('0'))) <= 0",
			"!has(object.spec.hard) || !('pods' in object.spec.hard) || object.spec.hard['pods'] != '30'"),
		"PO-BIND-2":               limits(t, "parameterNotFoundAction: Deny", "parameterNotFoundAction: Allow"),
		"PO-BIND-3":               limits(t, "params.?data[?'most'].orValue('0')", "params.data.most"),
		"PO-BIND-3 in many lines": limits(t, "params.?data[?'most'].orValue('0')", `params.data.most // of the param\n`),
		"PO-BIND-5": limits(t, "[Deny]", "[Deny]", "paramRef: {name: most, namespace: default, parameterNotFoundAction: Deny}}", `paramRef: {name: most, namespace: default, parameterNotFoundAction: Deny}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: audited}
spec: {policyName: most, validationActions: [Audit], paramRef: {name: most, namespace: default, parameterNotFoundAction: Deny}}`),
	}
}
