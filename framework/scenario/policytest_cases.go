package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// policyRequest is one request of a case.
type policyRequest struct {
	name, requirement, operation string
	// of is the case, at the position at.
	of PolicyCase
	at *document.Node
	// object is what is sent or, for a DELETE, what exists. Old is nil except for an UPDATE.
	object, old *fileManifest
	step        Step
	// sent is the path of the object in step, for positions: "create" or "patch.merge".
	sent string
	// mutated is the manifest that the object in the response must match. It can be nil.
	mutated *document.Node
}

// readCase reads a case: a request for each of its objects.
func (p *policyTable) readCase(n *document.Node, c PolicyCase, where document.Path) {
	operation := c.Operation
	if operation == "" && n.Has("old") {
		operation = operationUpdate
	}
	objects := p.manifests(n.Get("object"), where.Field("object"))
	olds := p.manifests(n.Get("old"), where.Field("old"))
	then, mutated := p.expectation(n, c, where)
	for _, object := range objects {
		request := &policyRequest{of: c, at: n, operation: cmp.Or(operation, operationCreate), mutated: mutated, object: &fileManifest{object, p.prepared(object, c.Namespace)}}
		if operation == operationUpdate && !p.findOld(request, olds, where) {
			return
		}
		request.step = request.compose()
		request.step.DryRun, request.step.As, request.step.Then, request.step.Subresource = true, c.As, then, c.Subresource
		request.describe(len(objects) > 1)
		p.requests = append(p.requests, request)
	}
}

// findOld sets the object before an UPDATE, the one of the same kind, name and namespace, and reports whether there is one.
func (p *policyTable) findOld(r *policyRequest, olds []*document.Node, where document.Path) bool {
	for _, old := range olds {
		if manifest := p.prepared(old, r.of.Namespace); identity(manifest) == identity(r.object.prepared) {
			r.old = &fileManifest{old, manifest}
			return true
		}
	}
	if len(olds) > 0 {
		p.Fail(r.at.Get("old"), fmt.Sprintf("%s.old has no %s %s; expected an object of the same kind, name and namespace as the new one", where,
			r.object.Text("kind"), document.Quote(r.object.Get("metadata").Text("name"))), "")
	}
	return false
}

// identity returns what identifies the object of a manifest: its group, kind, namespace and
// name.
func identity(manifest map[string]any) string {
	object := &unstructured.Unstructured{Object: manifest}
	return fmt.Sprintf("%s/%s/%s", object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName())
}

// compose returns the step that sends the request. An UPDATE is a merge patch with what
// changes: the object on the API server has fields that the manifests do not.
func (r *policyRequest) compose() Step {
	of := r.object.object()
	reference := ObjectReference{APIVersion: of.GetAPIVersion(), Kind: of.GetKind(), Name: of.GetName()}
	if namespace := of.GetNamespace(); namespace != "" {
		reference.Namespace = &namespace
	}
	switch r.operation {
	case operationUpdate:
		r.sent = "patch.merge"
		return Step{Patch: &Patch{ObjectReference: reference, Merge: object.MergePatch(r.old.prepared, r.object.prepared)}}
	case operationDelete:
		r.sent = "delete"
		return Step{Delete: &Delete{ObjectReference: reference}}
	default:
		r.sent = "create"
		return Step{Create: r.object.prepared}
	}
}

// describe sets the name and the requirement of a request. Several is true if its case has other
// requests too.
func (r *policyRequest) describe(several bool) {
	kind, object := r.object.Text("kind"), r.object.Get("metadata").Text("name")
	if r.of.Subresource != "" {
		kind += "/" + r.of.Subresource
	}
	title := object
	if prefix := r.object.Get("metadata").Text("generateName"); object == "" {
		object, title = prefix, prefix+"…"
	}
	name := strings.Join([]string{r.operation, kind, object}, "-")
	if r.of.As != nil {
		name += "-as-" + r.of.As.Name
		title += " by " + r.of.As.Name
	}
	if r.of.Name != "" {
		if name = r.of.Name; several {
			name += "-" + object
		}
	}
	result := "is allowed"
	switch denied := r.of.Denied; {
	case denied != nil && len(denied.Message) > 0:
		result = "is denied: " + strings.Join(denied.Message, ", ")
	case denied != nil && denied.Error != "":
		result = "is refused because of an error: " + denied.Error
	case denied != nil:
		result = "is denied"
	case r.of.Mutated != nil:
		result = "is mutated"
	}
	r.name, r.requirement = slugWord(name), fmt.Sprintf("%s of %s %s %s.", r.operation, kind, title, result)
}

// needs returns the object that must exist for a request, or nil.
func (r *policyRequest) needs() *fileManifest {
	if r.operation == operationDelete {
		return r.object
	}
	return r.old
}

// ofConfiguration reports whether a webhook configuration or policy must exist for a request, whose object
// it is. It is stored as it is written, so it decides about every request to the API server.
func (r *policyRequest) ofConfiguration() bool {
	needed := r.needs()
	return needed != nil && object.IsAdmission(needed.prepared)
}

// createsAccount reports whether a request creates the ServiceAccount default, which the run otherwise
// creates for Pods.
func (r *policyRequest) createsAccount() bool {
	return r.operation == operationCreate && r.object.Text("kind") == "ServiceAccount" && r.object.Get("metadata").Text("name") == "default"
}

// states returns what must exist before a request, by identity: a manifest, nil for an object that must not exist, and
// an empty manifest for a namespace, which can have any fields.
func (r *policyRequest) states() map[string]map[string]any {
	states := map[string]map[string]any{within(r.object.prepared): {}, identity(r.object.prepared): nil}
	if needed := r.needs(); needed != nil {
		states[identity(needed.prepared)] = needed.prepared
	}
	return states
}

// within returns the identity of the namespace of a manifest.
func within(manifest map[string]any) string {
	object := unstructured.Unstructured{Object: manifest}
	return identity(namespaceManifest(object.GetNamespace(), nil))
}

// policySet is a set of requests for one scenario: their objects that must exist do not exclude each other.
type policySet struct {
	// states are the states of all requests, and exist the objects that exist for them, before the policies.
	states   map[string]map[string]any
	exist    []fileManifest
	requests []*policyRequest
}

// accepts reports whether a request can be in the set.
func (s *policySet) accepts(r *policyRequest) bool {
	if s.requests[0].ofConfiguration() || r.ofConfiguration() || s.requests[0].createsAccount() != r.createsAccount() {
		return false
	}
	for id, want := range r.states() {
		have, known := s.states[id]
		if known && ((have == nil) != (want == nil) || len(have) > 0 && len(want) > 0 && !reflect.DeepEqual(have, want)) {
			return false
		}
	}
	return true
}

func (s *policySet) add(r *policyRequest) {
	if needed := r.needs(); needed != nil && len(s.states[identity(needed.prepared)]) == 0 {
		s.exist = append(s.exist, *needed)
	}
	for id, state := range r.states() {
		if len(s.states[id]) == 0 {
			s.states[id] = state
		}
	}
	s.requests = append(s.requests, r)
}

// sets divides the requests into as few sets as possible.
func (p *policyTable) sets() []*policySet {
	var sets []*policySet
	for _, request := range p.requests {
		at := slices.IndexFunc(sets, func(s *policySet) bool { return s.accepts(request) })
		if at < 0 {
			at = len(sets)
			sets = append(sets, &policySet{states: map[string]map[string]any{}})
		}
		sets[at].add(request)
	}
	return sets
}

// scenarios returns a scenario for each set of requests.
func (p *policyTable) scenarios() []Scenario {
	var out []Scenario
	taken := map[string]int{}
	for _, set := range p.sets() {
		one := Scenario{APIVersion: APIVersion, Kind: Kind, Metadata: Metadata{Name: p.name}, Line: p.root.Line, Column: p.root.Column, Existing: len(set.exist)}
		one.Spec.Level, one.Spec.Server, one.Spec.Exclusive = framework.Must, p.test.Server, set.requests[0].ofConfiguration()
		if p.open {
			one.Spec.Isolation = IsolationNone
		}
		var sources []*document.Node
		for _, given := range slices.Concat(p.givenNamespaces(&one.Spec, set), p.given, set.exist) {
			one.Spec.Given, sources = append(one.Spec.Given, given.prepared), append(sources, given.Node)
		}
		one.origin = &origin{spec: p.root, given: sources}
		for _, request := range set.requests {
			c := Case{Name: p.name + "." + request.name, Requirement: request.requirement, When: []Step{request.step}, Line: request.at.Line, Column: request.at.Column, Lines: []int{request.at.Line}}
			if taken[request.name]++; taken[request.name] > 1 {
				c.Name = fmt.Sprintf("%s-%d", c.Name, taken[request.name])
			}
			if request.step.Then.Audit != nil {
				c.Needs = []string{"audit"}
			}
			c.origin = &origin{spec: request.at, given: sources, others: map[string]spot{"when[0]." + request.sent: {request.object.Node, request.at}}}
			if request.mutated != nil {
				c.origin.others["when[0].then.object"] = spot{request.mutated, request.at}
			}
			one.Cases = append(one.Cases, c)
		}
		slices.SortFunc(one.Cases, func(a, b Case) int { return cmp.Compare(a.Name, b.Name) })
		out = append(out, one)
	}
	if p.checked != nil {
		p.checked.first = out[0].Cases[0].Name
		out[0].contract = p.checked
	}
	return out
}

// givenNamespaces sets the namespaces of a scenario for a set of requests. It returns those that are given as they are,
// because the policies are not narrowed: all but those that a request creates and that nothing given is in.
func (p *policyTable) givenNamespaces(spec *Spec, set *policySet) []fileManifest {
	var out []fileManifest
	for _, name := range slices.Sorted(maps.Keys(p.namespaces)) {
		if !p.open {
			spec.Namespaces = append(spec.Namespaces, Namespace{Name: name, Labels: p.test.Namespaces[name]})
			continue
		}
		manifest := namespaceManifest(name, p.test.Namespaces[name])
		state, known := set.states[identity(manifest)]
		created := known && state == nil && !slices.ContainsFunc(p.given, func(given fileManifest) bool { return within(given.prepared) == identity(manifest) })
		if !isSystemNamespace(name) && !created {
			out = append(out, fileManifest{p.root, manifest})
		}
	}
	return out
}
