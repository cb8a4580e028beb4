package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// An API server writes the rules of a ClusterRole without rules as null, so has() is true, and a macro has an error. This
// is the defect of C-0280 of cel-admission-library, in a policy of our own.
func TestFindingHasIsTrueForNull(t *testing.T) {
	s := policy.Subject{
		Good: file(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`),
	}
	for expression, want := range map[string][]string{
		"!has(object.rules) || object.rules.all(":                             {"PO-ERR-1"},
		"!has(object.rules) || object.rules == null || object.rules.all(":     nil,
		"object.?rules.orValue([]) == null || object.?rules.orValue([]).all(": nil,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			s := s
			s.Policies = file(t, denying("{apiGroups: [rbac.authorization.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [clusterroles]}",
				expression+"r, !('*' in r.verbs))"))
			_, failed := verdicts(t, s, policy.Only("PO-ERR-1", "PO-VERDICT-1"))
			if !slices.Equal(failed, want) {
				t.Errorf("it breaks %v; want %v", failed, want)
			}
		})
	}
}

// A policy about the name of the object, or one that asks for an element of a list, says nothing about copies of another
// name or about a bad element beside a good one. These were false alarms for C-0225 and C-0234 of cel-admission-library.
func TestFindingNamesAndWantedElements(t *testing.T) {
	const account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: builder}, automountServiceAccountToken: VALUE}"
	volumes := strings.Replace(pod, "spec:\n", "spec:\n  volumes: [{name: v, VALUE: {}}]\n", 1)
	for name, test := range map[string]struct {
		resource, expression, object, good, bad string
		rules                                   []string
	}{
		"name": {
			"serviceaccounts", "object.metadata.name != 'builder' || object.?automountServiceAccountToken.orValue(true) == false",
			account, "false", "true", []string{"PO-DOOR-1", "PO-DOOR-6", "PO-VERDICT-4", "PO-VERDICT-1"},
		},
		"wanted element": {
			"pods", "object.spec.?volumes.orValue([]).exists(v, has(v.emptyDir))",
			volumes, "emptyDir", "downwardAPI", []string{"PO-VERDICT-3", "PO-DOOR-2", "PO-VERDICT-1"},
		},
		"name of an element": {
			"pods", "object.spec.?volumes.orValue([]).all(v, v.name != 'v' || has(v.emptyDir))",
			volumes, "emptyDir", "downwardAPI", []string{"PO-VERDICT-3", "PO-DOOR-2", "PO-VERDICT-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := policy.Subject{
				Policies: file(t, denying(`{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [`+test.resource+`]}`, test.expression)),
				Good:     file(t, strings.ReplaceAll(test.object, "VALUE", test.good)),
				Bad:      []policy.Bad{{Object: file(t, strings.ReplaceAll(test.object, "VALUE", test.bad)), Denied: "it is bad"}},
			}
			_, failed := verdicts(t, s, policy.Only(test.rules...))
			if len(failed) > 0 {
				t.Errorf("it breaks %v; want nothing", failed)
			}
		})
	}
}

// A run waits for params with a ConfigMap. A policy that refuses it while its param is missing does not end the run: it
// did for C-0012 of cel-admission-library.
func TestFindingPolicyForConfigMaps(t *testing.T) {
	s := limits(t, "[resourcequotas]", "[resourcequotas, configmaps]", "object.spec != oldObject.spec", "object.?spec != oldObject.?spec",
		"object.spec.?hard", "object.?spec.?hard")
	report, failed := verdicts(t, s)
	if len(failed) > 0 {
		t.Errorf("it breaks %v; want nothing", failed)
	}
	for _, outcome := range report.Outcomes {
		if outcome.Rule.Is("PO-BIND-2") && outcome.Verdict != framework.Pass {
			t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
		}
	}
}

// A Pod in a namespace that only the sample names is accepted, and so is a ServiceAccount that every namespace has.
func TestFindingAccounts(t *testing.T) {
	s := subject(t, validating(sound))
	in := func(manifest, namespace string) string {
		return strings.Replace(manifest, "metadata: {name: p,", "metadata: {name: p, namespace: "+namespace+",", 1)
	}
	image := func(name string) string { return strings.ReplaceAll(pod, "IMAGE", name) }
	s.Good = file(t, in(image("registry.example.com/a"), "default")+"---"+in(image("registry.example.com/a"), "contract-other")+
		"---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: contract-third}}")
	report, failed := verdicts(t, s, policy.Only("PO-VERDICT-1"))
	if len(failed) > 0 || report.NotAccepted == report.Requests {
		t.Errorf("it breaks %v", failed)
	}
}

// The stored copy of a good object has another name. If a policy about names refuses it for that, it says nothing.
func TestFindingNames(t *testing.T) {
	t.Parallel()
	names := denying(`{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}`, "object.metadata.name.endsWith('-ok')")
	s := policy.Subject{Policies: file(t, names), Good: file(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a-ok}}")}
	report, _ := verdicts(t, s, policy.Only("PO-LIFE-1", "PO-LIFE-2"))
	for _, outcome := range report.Outcomes {
		if outcome.Verdict != framework.Inconclusive || !strings.Contains(outcome.Reason, "under another name the object gets another decision") {
			t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
		}
	}
}

// The defect of a bad object is what the policies read of it and refuse alone. The samples of public libraries also differ
// elsewhere, have a defect twice, or have one that is not only in a template.
func TestFindingDefects(t *testing.T) {
	t.Parallel()
	const match = `{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}, {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [replicasets]}`
	const plain = "{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: VALUE}}, spec: {containers: [{name: c, image: i}]}}"
	change := strings.ReplaceAll
	ready := change(plain, "image: i}]", "image: VALUE}], initContainers: [{name: d, image: VALUE}]")
	set := change(replicaSet, "MOST", "2")
	on := server(t)
	for name, test := range map[string]struct {
		expression, good, bad string
		failed                []string
		why                   map[string]string // rules that are unsupported
	}{
		"another label": {
			"object.spec.containers.all(c, c.image == 'i')", change(plain, "VALUE", "b"), change(change(plain, "VALUE", "c"), "image: i", "image: j"),
			[]string{"PO-DOOR-2", "PO-DOOR-3"}, nil,
		},
		"another name": {
			"!has(object.spec.containers) || object.spec.containers[0].image == 'i'", change(plain, "VALUE", "b"), change(change(plain, "VALUE", "b"), "name: c, image: i", "name: d, image: j"),
			[]string{"PO-DOOR-2", "PO-DOOR-3", "PO-VERDICT-3"}, nil,
		},
		"twice": {
			"(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.image == 'i')", change(ready, "VALUE", "i"), change(ready, "VALUE", "j"),
			[]string{"PO-DOOR-3"}, nil,
		},
		"only together": {
			"!('a' in object.metadata.labels) || object.metadata.labels.a != 'c' || object.spec.containers.all(c, c.image == 'i')", change(plain, "VALUE", "b"), change(change(plain, "VALUE", "c"), "image: i", "image: j"),
			nil, map[string]string{"PO-DOOR-2": "the policies do not refuse", "PO-VERDICT-3": "with its fix, and of the bad object only spec.containers[0]"},
		},
		"not what scale writes": {
			"object.kind == 'Pod' || !has(object.spec.template.spec.hostname)", set, change(change(set, "replicas: 2", "replicas: 3"), "containers", "hostname: h, containers"),
			[]string{"PO-DOOR-4"}, map[string]string{"PO-DOOR-3": "the policies do not refuse"},
		},
		"not read in the template": {
			"object.kind == 'Pod' || object.spec.replicas > 1", set, change(change(set, "replicas: 2", "replicas: 1"), "image: i", "image: j"),
			[]string{"PO-DOOR-3"}, map[string]string{"PO-DOOR-4": "no defect is in a template"},
		},
		"no defect in the template": {
			"object.kind == 'Pod' || object.spec.template.spec.containers[0].image != 'k' && object.metadata.?labels.a.orValue('b') == 'b'", set, change(change(set, "name: r", "name: r, labels: {a: c}"), "image: i", "image: j"),
			nil, map[string]string{"PO-DOOR-4": "the policies do not refuse"},
		},
		"also read outside of the template": {
			"object.kind == 'Pod' || object.spec.replicas < 2 || has(object.spec.template.spec.hostname)", change(set, "containers", "hostname: h, containers"), set,
			nil, map[string]string{"PO-DOOR-4": "bad[0]: spec.replicas"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report, failed := judged(t, on.Check(t.Context(), policy.Subject{
				Policies: file(t, denying(match, test.expression)), Good: file(t, test.good),
				Bad: []policy.Bad{{Object: file(t, test.bad), Denied: "it is bad"}},
			}, policy.Only("PO-VERDICT-1", "PO-VERDICT-3", "PO-DOOR-2", "PO-DOOR-3", "PO-DOOR-4")))
			slices.Sort(failed)
			if !slices.Equal(failed, test.failed) {
				t.Errorf("it breaks %v; want %v", failed, test.failed)
			}
			for _, outcome := range report.Outcomes {
				if want, found := test.why[outcome.Rule.ID]; found && (outcome.Verdict != framework.Unsupported || !strings.Contains(outcome.Reason, want)) {
					t.Errorf("%s is %s: %s; want unsupported, %s", outcome.Rule, outcome.Verdict, outcome.Reason, want)
				}
			}
		})
	}
}

// The API server gives a node port to one Service only. The copies of a contract do not take the port of the sample: they did for
// four policies of a public library, so that the sample was refused. The rules about stored objects say that there is no copy.
func TestFindingNodePorts(t *testing.T) {
	t.Parallel()
	on := server(t)
	for name, test := range map[string]struct{ expression, good, bad string }{
		"beside the defect": {"object.spec.?externalTrafficPolicy.orValue('') != 'Local'", "{type: NodePort, ports: [{port: 80, nodePort: 30123}]}", "{type: NodePort, externalTrafficPolicy: Local, ports: [{port: 80, nodePort: 30123}]}"},
		"the defect":        {"object.spec.ports.all(p, p.?nodePort.orValue(0) != 30124)", "{type: NodePort, ports: [{port: 80, nodePort: 30123}]}", "{type: NodePort, ports: [{port: 80, nodePort: 30124}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			service := func(spec string) policy.Manifests {
				return file(t, "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: "+spec+"}")
			}
			s := policy.Subject{
				Policies: file(t, denying(`{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [services]}`, test.expression,
					`matchConditions: [{name: changed, expression: "oldObject == null || object.spec != oldObject.spec"}]`)),
				Good: service(test.good), Bad: []policy.Bad{{Object: service(test.bad), Denied: "it is bad"}},
			}
			report, failed := judged(t, on.Check(t.Context(), s))
			if len(failed) > 0 {
				t.Errorf("it breaks %v; want nothing", failed)
			}
			for _, outcome := range report.Outcomes {
				if outcome.Verdict == framework.Inconclusive && !outcome.Rule.Is("PO-ERR-8") && !strings.Contains(outcome.Reason, "no copy is stored") { // ten ports must have names
					t.Errorf("%s is %s: %s", outcome.Rule, outcome.Verdict, outcome.Reason)
				}
			}
		})
	}
}

// Through status, controllers write metadata. The rule about subresources says that it is only this.
func TestFindingMetadataThroughStatus(t *testing.T) {
	t.Parallel()
	s := limits(t)
	labelled := func(team string) policy.Manifests {
		return file(t, strings.Replace(strings.ReplaceAll(quota, "PODS", "3"), "name: q", "name: q, labels: {team: "+team+"}", 1))
	}
	s.Policies = file(t, strings.NewReplacer("object.spec != oldObject.spec", "object.metadata != oldObject.metadata", "paramKind: {apiVersion: v1, kind: ConfigMap}", "",
		"quantity(object.spec.?hard[?'pods'].orValue('0')).compareTo(quantity(params.?data[?'most'].orValue('0'))) <= 0", "object.metadata.?labels.?team.orValue('') != 'none'",
		", paramRef: {name: most, namespace: default, parameterNotFoundAction: Deny}", "").Replace(soundLimits))
	s.Good, s.Bad[0].Object = labelled("a"), labelled("none")
	report, failed := verdicts(t, s, policy.Only("PO-DOOR-3"))
	if !slices.Equal(failed, []string{"PO-DOOR-3"}) || !strings.Contains(report.Outcomes[0].Reason, "metadata through status") {
		t.Errorf("it breaks %v: %s", failed, report.Outcomes[0].Reason)
	}
}

// 'x' in LIST names no field: four policies of kyverno/policies were false alarms.
func TestFindingPaths(t *testing.T) {
	const variables = `variables: [{name: all, expression: "object.spec.?containers.orValue([]) + object.spec.?initContainers.orValue([])"}, {name: hidden, expression: "[object.spec]"}]`
	const pvc = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p}, spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}}"
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"
	for expression, want := range map[string]struct {
		verdict framework.Verdict
		reason  string
	}{
		"'ReadOnlyMany' in object.spec.accessModes":                          {framework.Pass, ""},
		"'ReadOnlyMany' in object.spec.accesModes":                           {framework.Fail, "object.spec.accesModes"},
		"'a.b/c' in object.metadata.labels":                                  {framework.Pass, ""},
		"'ownerReferencs' in object.metadata":                                {framework.Fail, "object.metadata.ownerReferencs"},
		"variables.all.all(c, has(c.imagePullPolicy))":                       {framework.Pass, ""},
		"variables.all.all(c, has(c.imagePullPolcy))":                        {framework.Fail, "object.spec.containers[*].imagePullPolcy"},
		"variables.all.all(c, 'ALL' in c.securityContext.capabilities.drop)": {framework.Pass, ""},
		"object.metadata.labels.exists(k, k == 'x')":                         {framework.Pass, ""},
		"has(object.spec.accessModes.ReadOnlyMany)":                          {framework.Fail, "object.spec.accessModes.ReadOnlyMany"},
		"variables.hidden.all(s, has(s.hostNetwrk))":                         {framework.Inconclusive, "spec.validations[0].expression: s"},
		"['hostNetwrk'].all(f, has(object.spec[f].a))":                       {framework.Inconclusive, "spec.validations[0].expression: object.spec[*]"},
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			policies := denying(`{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [persistentvolumeclaims, pods]}`, expression+" || object.kind != 'None'", variables)
			s := policy.Subject{Policies: file(t, policies), Good: file(t, pvc+"\n---\n"+pod)}
			for _, outcome := range policy.Check(t.Context(), s, policy.Only("PO-ERR-4")).Outcomes {
				if outcome.Verdict != want.verdict || !strings.Contains(outcome.Reason, want.reason) {
					t.Errorf("%s: %s; want %s: %s", outcome.Verdict, outcome.Reason, want.verdict, want.reason)
				}
			}
		})
	}
}

// Most fields of a Pod cannot be changed, so no update makes it bad there. What can be changed is found beside them. PO-DOOR-1 was
// inconclusive for 74 of the 161 policies of two public libraries.
func TestFindingFieldsThatCannotChange(t *testing.T) {
	t.Parallel()
	const plain = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {MORE containers: [{name: c, image: IMAGE}]}}"
	const image, hostname = "object.spec.containers[0].image == 'i'", "!has(object.spec.hostname)"
	on := server(t)
	for name, test := range map[string]struct {
		expression, image string
		verdict           framework.Verdict
		reason            string
	}{
		"the field":                {hostname, "i", framework.Unsupported, "refuses each update that makes a good object bad: Pod \"p-bad0-fixed"},
		"a field that is not read": {image, "j", framework.Fail, "only at what the policies read: 200, allowed"},
		"another part":             {image + " && " + hostname, "j", framework.Fail, "only at spec.containers[0].image: 200, allowed"},
		"only together":            {image + " || " + hostname, "j", framework.Unsupported, "refuses each update that makes a good object bad: Pod \"p-bad0-fixed"},
	} {
		t.Run(name, func(t *testing.T) {
			report, _ := judged(t, on.Check(t.Context(), policy.Subject{
				Policies: file(t, denying(ofPods, test.expression)),
				Good:     file(t, strings.NewReplacer("MORE", "", "IMAGE", "i").Replace(plain)),
				Bad:      []policy.Bad{{Object: file(t, strings.NewReplacer("MORE", "hostname: h,", "IMAGE", test.image).Replace(plain)), Denied: "it is bad"}},
			}, policy.Only("PO-DOOR-1")))
			if got := report.Outcomes[0]; got.Verdict != test.verdict || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("%s is %s: %s; want %s, %s", got.Rule, got.Verdict, got.Reason, test.verdict, test.reason)
			}
		})
	}
}

// Where the samples say nothing about a rule, its reason says what they lack, or why none can have it.
func TestFindingNoSample(t *testing.T) {
	t.Parallel()
	const always = "object.spec.restartPolicy.startsWith('Al')"
	on := server(t)
	for name, test := range map[string]struct {
		rule, policies string
		verdict        framework.Verdict
		reason         string
	}{
		"a message":       {"PO-ERR-6", denying(ofPods, always), framework.Pass, ""},
		"no message":      {"PO-ERR-6", strings.Replace(denying(ofPods, always), ", message: it is bad", "", 1), framework.Inconclusive, "a validation has no message, and there is no bad object"},
		"no value":        {"PO-DOOR-8", denying(ofPods, "!object.spec.containers[0].image.startsWith('q.io')"), framework.Unsupported, `no good object has a value for which startsWith("q.io") is true`},
		"no user":         {"PO-DOOR-8", denying(ofPods, "request.userInfo.username.startsWith('q') || true"), framework.Unsupported, `no bad object is created by a user for which startsWith("q") is true`},
		"no decision":     {"PO-DOOR-8", denying(ofPods, "object.spec.containers[0].image.startsWith('i') || true"), framework.Inconclusive, "spec.containers[0].image: x: 201, allowed, so the constant does not decide"},
		"no value can be": {"PO-DOOR-8", denying(ofPods, always), framework.Unsupported, "the API server itself refuses each value that has more than a constant: Pod \"p\" is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			report, _ := judged(t, on.Check(t.Context(), policy.Subject{
				Policies: file(t, test.policies),
				Good:     file(t, "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {restartPolicy: Always, containers: [{name: c, image: i}]}}"),
			}, policy.Only(test.rule)))
			if got := report.Outcomes[0]; got.Verdict != test.verdict || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("%s is %s: %s; want %s, %s", got.Rule, got.Verdict, got.Reason, test.verdict, test.reason)
			}
		})
	}
}
