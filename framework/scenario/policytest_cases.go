package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// policyRequest is one request of a case.
type policyRequest struct {
	name, requirement, operation string
	// of is the case.
	of PolicyCase
	// at is the case.
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
func (p *policyTable) readCase(n *document.Node, c PolicyCase, where *document.Path) {
	operation := c.Operation
	switch {
	case operation == "" && n.Has("old"):
		operation = operationUpdate
	case operation == "":
		operation = operationCreate
	}
	objects := p.manifests(n.Get("object"), where.Field("object"))
	olds := p.manifests(n.Get("old"), where.Field("old"))
	if operation == operationUpdate && !n.Has("old") {
		return // the schema reports it
	}
	then, mutated := p.expectation(n, c, where)
	for _, object := range objects {
		request := &policyRequest{of: c, at: n, operation: operation, mutated: mutated}
		request.object = &fileManifest{object, p.prepared(object, c.Namespace)}
		if operation == operationUpdate {
			if request.old = p.oldOf(olds, object, c.Namespace, n.Get("old"), where); request.old == nil {
				return
			}
		}
		request.step = request.compose()
		request.step.DryRun, request.step.As, request.step.Then, request.step.Subresource = true, c.As, then, c.Subresource
		request.describe(c, len(objects) > 1)
		p.requests = append(p.requests, request)
	}
}

// oldOf returns the object before an UPDATE: the one of the same kind, name and namespace.
func (p *policyTable) oldOf(olds []*document.Node, object *document.Node, namespace string, at *document.Node, where *document.Path) *fileManifest {
	want := identity(p.prepared(object, namespace))
	for _, old := range olds {
		if manifest := p.prepared(old, namespace); identity(manifest) == want {
			return &fileManifest{old, manifest}
		}
	}
	if len(olds) > 0 {
		p.Fail(at, fmt.Sprintf("%s.old has no %s %s; expected an object of the same kind, name and namespace as the new one", where,
			object.Text("kind"), document.Quote(object.Get("metadata").Text("name"))), "")
	}
	return nil
}

// identity returns what identifies the object of a manifest: its group, kind, namespace and
// name.
func identity(manifest map[string]any) string {
	apiVersion, _ := manifest["apiVersion"].(string)
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	metadata, _ := manifest["metadata"].(map[string]any)
	return fmt.Sprintf("%s/%v/%v/%v", group, manifest["kind"], metadata["namespace"], metadata["name"])
}

// compose returns the step that sends the request. An UPDATE is a merge patch with what
// changes: the object on the API server has fields that the manifests do not.
func (r *policyRequest) compose() Step {
	manifest := r.object.prepared
	metadata, _ := manifest["metadata"].(map[string]any)
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	reference := ObjectReference{APIVersion: apiVersion, Kind: kind}
	reference.Name, _ = metadata["name"].(string)
	if namespace, ok := metadata["namespace"].(string); ok {
		reference.Namespace = &namespace
	}
	switch r.operation {
	case operationUpdate:
		r.sent = "patch.merge"
		return Step{Patch: &Patch{ObjectReference: reference, Merge: object.MergePatch(r.old.prepared, manifest)}}
	case operationDelete:
		r.sent = "delete"
		return Step{Delete: &Delete{ObjectReference: reference}}
	default:
		r.sent = "create"
		return Step{Create: manifest}
	}
}

// describe sets the name and the requirement of a request. Several is true if its case has other
// requests too.
func (r *policyRequest) describe(c PolicyCase, several bool) {
	kind := r.object.Node.Text("kind")
	if c.Subresource != "" {
		kind += "/" + c.Subresource
	}
	object := r.object.Node.Get("metadata").Text("name")
	title := object
	if object == "" {
		prefix := r.object.Node.Get("metadata").Text("generateName")
		object, title = strings.TrimSuffix(prefix, "-"), prefix+"…"
	}
	words := []string{r.operation, kind, object}
	if c.As != nil {
		words = append(words, "as", c.As.Name)
	}
	r.name = slugWord(strings.Join(words, "-"))
	if c.Name != "" {
		if r.name = slugWord(c.Name); several {
			r.name = slugWord(c.Name + "-" + object)
		}
	}
	result := "is allowed"
	switch {
	case c.Denied != nil && len(c.Denied.Message) > 0:
		result = "is denied: " + strings.Join(c.Denied.Message, ", ")
	case c.Denied != nil && c.Denied.Error != "":
		result = "is refused because of an error: " + c.Denied.Error
	case c.Denied != nil:
		result = "is denied"
	case c.Mutated != nil:
		result = "is mutated"
	}
	r.requirement = fmt.Sprintf("%s of %s %s %s.", r.operation, kind, title, result)
	if c.As != nil {
		r.requirement = fmt.Sprintf("%s of %s %s by %s %s.", r.operation, kind, title, c.As.Name, result)
	}
}

// policySet is a set of requests for one scenario: their objects that must exist do not exclude each other.
type policySet struct {
	// exists has the objects that exist before the policies, created what is created, and within the namespaces of all of them.
	exists   map[string]fileManifest
	created  map[string]bool
	within   map[string]bool
	order    []string
	requests []*policyRequest
}

// needs returns the object that must exist for a request, or nil.
func (r *policyRequest) needs() *fileManifest {
	switch r.operation {
	case operationUpdate:
		return r.old
	case operationDelete:
		return r.object
	default:
		return nil
	}
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
	return r.operation == operationCreate && r.object.Node.Text("kind") == "ServiceAccount" && r.object.Node.Get("metadata").Text("name") == "default"
}

// accepts reports whether a request can be in the set.
func (s *policySet) accepts(r *policyRequest) bool {
	if s.requests[0].ofConfiguration() || r.ofConfiguration() || s.requests[0].createsAccount() != r.createsAccount() {
		return false
	}
	id := identity(r.object.prepared)
	existing, exists := s.exists[id]
	if s.created[within(r.object.prepared)] || s.within[id] && r.needs() == nil {
		return false // the namespace of an object exists before
	}
	if needed := r.needs(); needed != nil {
		return !s.created[id] && (!exists || reflect.DeepEqual(existing.prepared, needed.prepared))
	}
	return !exists
}

// within returns the identity of the namespace of a manifest.
func within(manifest map[string]any) string {
	metadata, _ := manifest["metadata"].(map[string]any)
	return identity(namespaceManifest(fmt.Sprint(metadata["namespace"]), nil))
}

func (s *policySet) add(r *policyRequest) {
	id := identity(r.object.prepared)
	s.within[within(r.object.prepared)] = true
	if needed := r.needs(); needed == nil {
		s.created[id] = true
	} else if _, exists := s.exists[id]; !exists {
		s.exists[id] = *needed
		s.order = append(s.order, id)
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
			sets = append(sets, &policySet{exists: map[string]fileManifest{}, created: map[string]bool{}, within: map[string]bool{}})
		}
		sets[at].add(request)
	}
	return sets
}

// scenarios returns a scenario for each set of requests.
func (p *policyTable) scenarios() []Scenario {
	var common Scenario
	var prepare []Step
	common.APIVersion, common.Kind, common.Metadata.Name = APIVersion, Kind, p.name
	common.Spec.Level, common.Spec.Server = framework.Must, p.test.Server
	if p.open {
		common.Spec.Isolation = IsolationNone
		_, prepare = p.openNamespaces()
	} else {
		for _, name := range slices.Sorted(maps.Keys(p.namespaces)) {
			common.Spec.Namespaces = append(common.Spec.Namespaces, Namespace{Name: name, Labels: p.test.Namespaces[name]})
		}
	}
	var out []Scenario
	taken := map[string]int{}
	for _, set := range p.sets() {
		one := common
		var sources []*document.Node
		for _, given := range p.givenOf(set) {
			one.Spec.Given, sources = append(one.Spec.Given, given.prepared), append(sources, given.Node)
		}
		one.Existing = len(set.order)
		one.Spec.Exclusive = set.requests[0].ofConfiguration()
		one.Line, one.Column = p.root.Line, p.root.Column
		one.origin = &origin{spec: p.root, given: sources}
		for _, request := range set.requests {
			name := p.name + "." + request.name
			if taken[request.name]++; taken[request.name] > 1 {
				name = fmt.Sprintf("%s-%d", name, taken[request.name])
			}
			c := Case{Name: name, Requirement: request.requirement, When: append(slices.Clone(prepare), request.step), Line: request.at.Line, Column: request.at.Column}
			if request.step.Then.Audit != nil {
				c.Needs = []string{"audit"}
			}
			c.Lines = slices.Repeat([]int{request.at.Line}, len(c.When))
			c.origin = &origin{spec: request.at, given: sources, others: request.spots(len(prepare))}
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

// spots returns where the manifests of a request are, by their paths in a case. Before is the number of steps before the request.
func (r *policyRequest) spots(before int) map[string]spot {
	step := fmt.Sprintf("when[%d].", before)
	found := map[string]spot{step + r.sent: r.spot(r.object.Node)}
	if r.mutated != nil {
		found[step+"then.object"] = r.spot(r.mutated)
	}
	return found
}

// spot returns where a manifest begins: at the case, unless it is in another file.
func (r *policyRequest) spot(manifest *document.Node) spot {
	if manifest.File() != r.at.File() {
		return spot{manifest, manifest}
	}
	return spot{manifest, r.at}
}

// givenOf returns what is installed for a set of requests: the policies and what they need, and objects
// that exist before the policies.
func (p *policyTable) givenOf(set *policySet) []fileManifest {
	var out []fileManifest
	if p.open {
		namespaces, _ := p.openNamespaces()
		for _, manifest := range namespaces {
			id := identity(manifest)
			if !set.created[id] || slices.ContainsFunc(p.given, func(given fileManifest) bool { return within(given.prepared) == id }) {
				out = append(out, fileManifest{p.root, manifest})
			}
		}
	}
	out = append(out, p.given...)
	for _, id := range set.order {
		out = append(out, set.exists[id])
	}
	return out
}
