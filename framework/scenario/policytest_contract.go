package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
	"github.com/admissiontest/admissiontest/internal/object"
)

// PolicyContract asks for the rules of suites/policy, which hold for every policy. All fields are optional.
type PolicyContract struct {
	// Good are objects that the policies allow. The default are the objects of the cases that create
	// something, are allowed and have no user: at most ten. A Namespace that other objects are in is none of them.
	// Updates and deletions of cases without a user are samples too, ten of them.
	Good Manifests `json:"good,omitempty"`
	// Bad are objects that the policies refuse. The default are the objects of the cases that create
	// something, are denied and have no user: at most ten.
	Bad []ContractBad `json:"bad,omitempty"`
	// Requester is the user who sends the requests. The default is a user without groups.
	Requester *framework.User `json:"requester,omitempty"`
	// Except are the rules that the policies may break.
	Except []ContractException `json:"except,omitempty"`
}

// ContractBad is an object that the policies refuse.
type ContractBad struct {
	// Object is the object.
	Object Manifests `json:"object"`
	// Denied is a part of the message of the refusal.
	Denied string `json:"denied"`
	// Fix is the object without its defect. The default is the first good object of the same kind.
	Fix Manifests `json:"fix,omitempty"`
}

// ContractException allows the policies to break a rule.
type ContractException struct {
	// Rule is the ID or the name of the rule: PO-DOOR-2 or sibling-lists.
	Rule string `json:"rule"`
	// Reason says why.
	Reason string `json:"reason"`
	// Until is the last day of the exception, such as "2027-01-31". The default is that it does not end.
	Until string `json:"until,omitempty"`

	// Line is where it is in the file. The loader sets it.
	Line int `json:"-"`
}

// Contract is the contract of a PolicyTest with the manifests that it names. Its namespaces have the names in the file.
type Contract struct {
	// Policies are the policies and bindings, Given what must exist before.
	Policies, Given []ContractManifest
	// Good and Bad are the samples.
	Good []ContractManifest
	Bad  []ContractSample
	// Requests are the updates and deletions of the cases.
	Requests []ContractRequest
	// Requester is the user of the requests. The zero value is an ordinary user without groups.
	Requester framework.User
	// Except are the rules that the policies may break.
	Except []ContractException

	first string // the name of the case with which the contract is checked
}

// ContractManifest is a manifest, with its position.
type ContractManifest struct {
	// Object is the manifest.
	Object map[string]any
	// File and Line are where it is.
	File string
	Line int
}

// ContractSample is an object that the policies refuse, with a part of the message. A nil Fix means the first good
// object of the same kind.
type ContractSample struct {
	Object ContractManifest
	Denied string
	Fix    *ContractManifest
}

// ContractRequest is an update, or without Old a deletion.
type ContractRequest struct {
	// Name says which case it is.
	Name   string
	Object ContractManifest
	// Old is the object before the update.
	Old         *ContractManifest
	Subresource string
	// Denied is a part of the message of the refusal. Empty means that the request is allowed.
	Denied string
}

// ContractOf returns the contract of a scenario, or nil. It belongs to the first case of a PolicyTest: a selection
// without this case has no contract.
func (s Scenario) ContractOf() *Contract {
	if s.contract == nil || !slices.ContainsFunc(s.Cases, func(c Case) bool { return c.Name == s.contract.first }) {
		return nil
	}
	return s.contract
}

// mostSamples limits the samples that are taken from the cases.
const mostSamples = 10

// contract returns what the field contract says. Without the field, it returns nil, or the samples of the cases.
func (p *policyTable) contract(samples bool) *Contract {
	at, asked := p.root.Get("contract"), p.test.Contract
	if asked == nil {
		if !samples {
			return nil
		}
		at, asked = p.root, &PolicyContract{}
	}
	if p.test.Server != nil && p.test.Contract != nil {
		p.Fail(at, "contract cannot be combined with server; the rules are checked on an API server without custom flags", "write a PolicyTest for each")
	}
	c := &Contract{Except: asked.Except}
	for i, n := range at.List("except") {
		c.Except[i].Line = n.Line
	}
	if asked.Requester != nil {
		c.Requester = *asked.Requester
	}
	for _, name := range slices.Sorted(maps.Keys(p.namespaces)) {
		if labels := p.test.Namespaces[name]; !isSystemNamespace(name) || len(labels) > 0 {
			c.Given = append(c.Given, ContractManifest{namespaceManifest(name, labels), p.from.Name, at.Line})
		}
	}
	for _, each := range p.given {
		if object.IsPolicy(each.prepared) {
			c.Policies = append(c.Policies, contractManifest(each))
		} else {
			c.Given = append(c.Given, contractManifest(each))
		}
	}
	p.contractSamples(c, at)
	return c
}

// contractSamples reads the samples of a contract, or takes them from the cases.
func (p *policyTable) contractSamples(c *Contract, at *document.Node) {
	where := document.Path("contract")
	for _, n := range p.manifests(at.Get("good"), where.Field("good")) {
		c.Good = append(c.Good, contractManifest(fileManifest{n, p.prepared(n, "")}))
	}
	for i, n := range at.List("bad") {
		here := where.Field("bad").Item(i)
		sample := ContractSample{Denied: p.test.Contract.Bad[i].Denied, Fix: p.contractSample(n.Get("fix"), here.Field("fix"))}
		if bad := p.contractSample(n.Get("object"), here.Field("object")); bad != nil {
			sample.Object = *bad
		}
		c.Bad = append(c.Bad, sample)
	}
	p.samplesOfCases(c, at)
	allowed := func(r ContractRequest) bool { return r.Denied == "" }
	if len(c.Good) == 0 && !slices.ContainsFunc(c.Requests, allowed) && len(p.Problems) == 0 && p.test.Contract != nil {
		p.Fail(at, "contract has no good object; expected a case that is allowed and has no user", `or add "good:", and "requester:" if only some users may create it`)
	}
}

// contractSample returns the manifest of a field that has one, or nil.
func (p *policyTable) contractSample(n *document.Node, where document.Path) *ContractManifest {
	found := p.manifests(n, where)
	if len(found) > 1 {
		p.Fail(n, fmt.Sprintf("%s has %d manifests; expected one", where, len(found)), "write FILE#NAME to select one of a file")
	}
	if len(found) != 1 {
		return nil
	}
	sample := contractManifest(fileManifest{found[0], p.prepared(found[0], "")})
	return &sample
}

// samplesOfCases adds the requests of cases to a contract. Which creations are samples, the contract can say itself.
func (p *policyTable) samplesOfCases(c *Contract, at *document.Node) {
	for _, request := range p.requests {
		of := request.of
		manifest := contractManifest(*request.object)
		if of.As != nil || of.Denied == nil && of.Warned != nil || of.Denied != nil && of.Denied.Error != "" {
			continue
		}
		if request.operation != operationCreate {
			p.addRequest(c, request, manifest)
			continue
		}
		if slices.ContainsFunc(c.Given, func(m ContractManifest) bool { return identity(m.Object) == identity(manifest.Object) }) {
			continue // it exists already, such as the namespace of another object
		}
		known := func(m ContractManifest) bool { return reflect.DeepEqual(m.Object, manifest.Object) }
		switch {
		case of.Denied == nil && !at.Has("good") && len(c.Good) < mostSamples && !slices.ContainsFunc(c.Good, known):
			c.Good = append(c.Good, manifest)
		case of.Denied != nil && !at.Has("bad") && len(c.Bad) < mostSamples && !slices.ContainsFunc(c.Bad, func(s ContractSample) bool { return known(s.Object) }):
			c.Bad = append(c.Bad, ContractSample{Object: manifest, Denied: partOf(*of.Denied)})
		}
	}
}

// addRequest adds an update or a deletion.
func (p *policyTable) addRequest(c *Contract, request *policyRequest, manifest ContractManifest) {
	if len(c.Requests) == mostSamples {
		return
	}
	name := fmt.Sprintf("%s %s (case %s)", request.object.Text("kind"), request.object.Get("metadata").Text("name"), request.name)
	sample := ContractRequest{Name: name, Object: manifest, Subresource: request.of.Subresource}
	if request.old != nil {
		old := contractManifest(*request.old)
		sample.Old = &old
	}
	if request.of.Denied != nil {
		sample.Denied = partOf(*request.of.Denied)
	}
	c.Requests = append(c.Requests, sample)
}

// partOf returns a part of the message of a refusal.
func partOf(d Denied) string {
	if len(d.Message) > 0 {
		return d.Message[0]
	}
	return "ValidatingAdmissionPolicy '" + d.Policy
}

// namespaceOfTest is the placeholder for a namespace of the test.
var namespaceOfTest = regexp.MustCompile(`([^$]|^)\$\(namespace\.([^)]*)\)`)

// contractManifest returns a prepared manifest without placeholders.
func contractManifest(m fileManifest) ContractManifest {
	return ContractManifest{withStrings(m.prepared, func(text string) string {
		return strings.ReplaceAll(namespaceOfTest.ReplaceAllString(text, "$1$2"), "$$(", "$(")
	}), m.File(), m.Line}
}
