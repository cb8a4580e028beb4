package scenario

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const contractPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: modes}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "object.data.mode != 'bad$(x)'"}]
`

const contractTest = `apiVersion: admissiontest.dev/v1alpha1
kind: PolicyTest
policies: policy.yaml
params: {apiVersion: v1, kind: ConfigMap, metadata: {name: p, namespace: prod}}
namespaces: {prod: {tier: prod}}
cases:
- {object: good.yaml, namespace: prod}
- {object: bad.yaml, denied: [the mode, is bad]}
- {object: good.yaml, as: jane, name: by-jane}
- {object: good.yaml, operation: DELETE, name: delete}
`

func loadContract(contract string) ([]Scenario, error) { return loadTest(contractTest + contract) }

func loadTest(text string) ([]Scenario, error) {
	object := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}, data: {mode: " + name + "}}")}
	}
	return Load(LoadOptions{FS: fstest.MapFS{
		"x/test.yaml": {Data: []byte(text)}, "x/policy.yaml": {Data: []byte(contractPolicy)}, "x/good.yaml": object("good"), "x/bad.yaml": object("bad"),
	}}, "x/test.yaml")
}

// An empty contract takes its samples from the cases, without placeholders.
func TestContractOfCases(t *testing.T) {
	all, err := loadContract("- {object: good.yaml, old: good.yaml}\n- {object: good.yaml, old: good.yaml, denied: never, name: never}\n- {object: good.yaml, old: good.yaml, as: jane}\ncontract: {}\n")
	if err != nil {
		t.Fatal(err)
	}
	var c *Contract
	for _, s := range all {
		if found := s.ContractOf(); found != nil && c != nil {
			t.Error("two scenarios have the contract")
		} else if found != nil {
			c = found
		}
	}
	if c == nil || len(c.Good) != 1 || len(c.Bad) != 1 || len(c.Given) != 2 || len(c.Policies) != 2 {
		t.Fatalf("%+v; want one good, one bad, the namespace and the param, the policy and its binding", c)
	}
	if got := identity(c.Good[0].Object); got != "ConfigMap/prod/good" || c.Bad[0].Denied != "the mode" || c.Bad[0].Object.File != "x/bad.yaml" {
		t.Errorf("good is %s, bad %+v", got, c.Bad)
	}
	if len(c.Requests) != 3 || c.Requests[0].Name != "ConfigMap good (case delete)" || c.Requests[0].Old != nil || c.Requests[1].Old == nil || c.Requests[2].Denied != "never" {
		t.Errorf("requests %+v; want the deletion, and two updates of which one is denied", c.Requests)
	}
	spec, _ := c.Policies[0].Object["spec"].(map[string]any)
	validations, _ := spec["validations"].([]any)
	first, _ := validations[0].(map[string]any)
	binding, _ := c.Policies[1].Object["spec"].(map[string]any)
	ref, _ := binding["paramRef"].(map[string]any)
	if first["expression"] != "object.data.mode != 'bad$(x)'" || ref["namespace"] != "prod" || c.Policies[0].Line != 2 {
		t.Errorf("expression %q, namespace of the param %q, line %d", first["expression"], ref["namespace"], c.Policies[0].Line)
	}
	without := Keep(all, func(s Scenario) bool { return !strings.HasSuffix(s.Cases[0].Name, ".by-jane") })
	for _, s := range without {
		if len(s.Cases) > 0 && s.ContractOf() != nil {
			t.Error("a selection without the first case has the contract")
		}
	}
}

func TestContractFields(t *testing.T) {
	all, err := loadContract(`contract:
  good: good.yaml
  bad: [{object: bad.yaml, denied: x, fix: good.yaml}]
  requester: {name: jane, groups: [devs]}
  except: [{rule: PO-DOOR-2, reason: y, until: "2027-06-01"}]
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if c := s.ContractOf(); c != nil {
			if c.Requester.Name != "jane" || c.Bad[0].Fix == nil || c.Except[0].Until != "2027-06-01" || c.Except[0].Line != 15 {
				t.Errorf("%+v", c)
			}
			return
		}
	}
	t.Error("no scenario has the contract")
}

// What is wrong with a contract has its position.
func TestContractMistakes(t *testing.T) {
	for contract, want := range map[string]string{
		"contract: {god: good.yaml}\n":                                                       `x/test.yaml:11:12: unknown field "god" in contract`,
		"contract: {bad: [{object: bad.yaml}]}\n":                                            "x/test.yaml:11:18: contract.bad[0] has no denied; expected one",
		"contract: {except: [{rule: PO-DOOR-2, reason: x, until: tomorrow}]}\n":              "x/test.yaml:11:57: ",
		"contract: {good: none.yaml}\n":                                                      "x/test.yaml:11:18: ",
		"contract: {}\nserver: {flags: {runtime-config: api/all=true}}\n":                    "x/test.yaml:11:11: contract cannot be combined with server",
		"contract: {good: [good.yaml], bad: [{object: [good.yaml, bad.yaml], denied: x}]}\n": "x/test.yaml:11:46: contract.bad[0].object has ",
	} {
		t.Run(contract, func(t *testing.T) {
			_, err := loadContract(contract)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v; want %s", err, want)
			}
		})
	}
}

// A contract without a good object says which field helps.
func TestContractWithoutGood(t *testing.T) {
	without := strings.NewReplacer("- {object: good.yaml, namespace: prod}\n", "", "- {object: good.yaml, operation: DELETE, name: delete}\n", "")
	_, err := loadTest(without.Replace(contractTest) + "contract: {}\n")
	for _, want := range []string{"x/test.yaml:9:11: contract has no good object", `add "good:"`, `"requester:" if only`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
}

// A Namespace that a case creates does not exist before, and is no sample of the contract. Cases with objects in it are in another
// scenario, with the Namespace.
func TestNamespaceOfCase(t *testing.T) {
	const test = `apiVersion: admissiontest.dev/v1alpha1
kind: PolicyTest
policies: policy.yaml
params: {apiVersion: v1, kind: ConfigMap, metadata: {name: p}}
isolation: none
cases:
- {object: {apiVersion: v1, kind: Namespace, metadata: {name: team}}, name: namespace}
- {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team}}, name: in-it}
- {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}, name: in-another}
contract: {}
`
	all, err := Load(LoadOptions{FS: fstest.MapFS{"x/test.yaml": {Data: []byte(test)}, "x/policy.yaml": {Data: []byte(contractPolicy)}}}, "x/test.yaml")
	if err != nil || len(all) != 2 {
		t.Fatalf("%d scenarios, error %v; want 2", len(all), err)
	}
	for i, want := range []struct {
		cases int
		team  bool
	}{{2, false}, {1, true}} {
		team := slices.ContainsFunc(all[i].Spec.Given, func(m map[string]any) bool { return identity(m) == "Namespace//team" })
		if len(all[i].Cases) != want.cases || team != want.team {
			t.Errorf("scenario %d has %d cases; given the namespace is %t", i, len(all[i].Cases), team)
		}
	}
	if c := all[0].ContractOf(); c == nil || len(c.Good) != 2 {
		t.Errorf("the contract is %+v; want the ConfigMaps as good objects", c)
	}
}
