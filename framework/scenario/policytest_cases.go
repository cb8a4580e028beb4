package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/strictyaml"
)

// policyRequest is one request of a case.
type policyRequest struct {
	name, requirement string
	line, column      int
	operation         string
	// object is what is sent or, for a DELETE, what exists. Old is nil except for an UPDATE.
	object, old *fileManifest
	step        Step
	// sent is the path of the object in step, for positions: "create".
	sent []string
	// audit is true if the expectation needs the audit log.
	audit bool
}

// readCase reads a case: a request for each of its objects.
func (p *policyTable) readCase(n *strictyaml.Node, c PolicyCase, where *place) {
	operation := c.Operation
	switch {
	case operation == "" && n.Has("old"):
		operation = opUpdate
	case operation == "":
		operation = opCreate
	}
	p.enum(n, "operation", operations())
	if name := n.Get("name"); name != nil && name.Kind == strictyaml.KindText && slugWord(name.Raw) == "" {
		p.fail(name, fmt.Sprintf("%s.name is %s; expected words", where, strictyaml.Quote(name.Raw)), "")
	}
	if c.Namespace != "" {
		p.checkNamespace(&p.decoder, c.Namespace, n.Get("namespace"))
	}
	objects := p.manifests(n.Get("object"), where.field("object"))
	olds := p.manifests(n.Get("old"), where.field("old"))
	switch {
	case operation == opUpdate && n.Get("old") == nil:
		p.fail(n, fmt.Sprintf("%s is an UPDATE and has no old; expected the object before it", where), `add "old:"`)
		return
	case operation != opUpdate && n.Has("old"):
		p.fail(n.Get("old"), fmt.Sprintf("%s is a %s and has old; expected it for an UPDATE", where, operation), "the object of a DELETE is object")
		return
	}
	then, audit := p.expected(n, c, where)
	for _, object := range objects {
		request := &policyRequest{line: n.Line, column: n.Column, operation: operation, audit: audit}
		request.object = &fileManifest{object, p.shipped(object, c.Namespace)}
		if operation == opUpdate {
			if request.old = p.oldOf(olds, object, c.Namespace, n.Get("old"), where); request.old == nil {
				return
			}
		}
		request.step = request.compose()
		request.step.DryRun, request.step.As, request.step.Then = true, c.As, then
		request.describe(c, len(objects) > 1)
		p.requests = append(p.requests, request)
	}
}

// oldOf returns the object before an UPDATE: the one of the same kind, name and namespace.
func (p *policyTable) oldOf(olds []fileNode, object fileNode, namespace string, at *strictyaml.Node, where *place) *fileManifest {
	want := identity(p.shipped(object, namespace))
	for _, old := range olds {
		if manifest := p.shipped(old, namespace); identity(manifest) == want {
			return &fileManifest{old, manifest}
		}
	}
	if len(olds) > 0 {
		p.fail(at, fmt.Sprintf("%s.old has no %s %s; expected an object of the same kind, name and namespace as the new one", where,
			object.node.Text("kind"), strictyaml.Quote(object.node.Get("metadata").Text("name"))), "")
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
	manifest := r.object.manifest
	metadata, _ := manifest["metadata"].(map[string]any)
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	reference := ObjectReference{APIVersion: apiVersion, Kind: kind}
	reference.Name, _ = metadata["name"].(string)
	if namespace, ok := metadata["namespace"].(string); ok {
		reference.Namespace = &namespace
	}
	switch r.operation {
	case opUpdate:
		r.sent = []string{"patch", "merge"}
		return Step{Patch: &Patch{ObjectReference: reference, Merge: mergePatch(r.old.manifest, manifest)}}
	case opDelete:
		r.sent = []string{"delete"}
		return Step{Delete: &Delete{ObjectReference: reference}}
	default:
		r.sent = []string{"create"}
		return Step{Create: manifest}
	}
}

// mergePatch returns the JSON Merge Patch (RFC 7386) from one mapping to another.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, ok := to[key]; !ok {
			patch[key] = nil
		}
	}
	for key, after := range to {
		before, had := from[key]
		inner, isMapping := after.(map[string]any)
		old, wasMapping := before.(map[string]any)
		switch {
		case had && reflect.DeepEqual(before, after):
		case isMapping && wasMapping:
			patch[key] = mergePatch(old, inner)
		default:
			patch[key] = after
		}
	}
	return patch
}

// describe sets the name and the requirement of a request. Several is true if its case has other
// requests too.
func (r *policyRequest) describe(c PolicyCase, several bool) {
	kind := r.object.node.Text("kind")
	object := r.object.node.Get("metadata").Text("name")
	if object == "" {
		object = strings.TrimSuffix(r.object.node.Get("metadata").Text("generateName"), "-")
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
	case c.Denied != nil:
		result = "is denied"
	case c.Mutated != nil:
		result = "is mutated"
	}
	r.requirement = fmt.Sprintf("%s of %s %s %s.", r.operation, kind, object, result)
	if c.As != nil {
		r.requirement = fmt.Sprintf("%s of %s %s by %s %s.", r.operation, kind, object, c.As.Name, result)
	}
}

// policySet is a set of requests that share one installation: their objects that must exist do
// not exclude each other.
type policySet struct {
	// exists has the objects that exist before the policies, created what is created.
	exists   map[string]fileManifest
	created  map[string]bool
	order    []string
	requests []*policyRequest
}

// needs returns the object that must exist for a request, or nil.
func (r *policyRequest) needs() *fileManifest {
	switch r.operation {
	case opUpdate:
		return r.old
	case opDelete:
		return r.object
	default:
		return nil
	}
}

// accepts reports whether a request can share the installation.
func (s *policySet) accepts(r *policyRequest) bool {
	id := identity(r.object.manifest)
	existing, exists := s.exists[id]
	if needed := r.needs(); needed != nil {
		return !s.created[id] && (!exists || reflect.DeepEqual(existing.manifest, needed.manifest))
	}
	return !exists
}

func (s *policySet) add(r *policyRequest) {
	id := identity(r.object.manifest)
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
			sets = append(sets, &policySet{exists: map[string]fileManifest{}, created: map[string]bool{}})
		}
		sets[at].add(request)
	}
	return sets
}

// scenarios returns a scenario for each request.
func (p *policyTable) scenarios(number int) []located {
	var common Spec
	var prepare []Step
	common.Level, common.Server = framework.Must, p.test.Server
	if p.open {
		common.Isolation = IsolationNone
		_, prepare = p.openNamespaces()
	} else {
		for _, name := range slices.Sorted(maps.Keys(p.namespaces)) {
			common.Namespaces = append(common.Namespaces, Namespace{Name: name, Labels: p.test.Namespaces[name]})
		}
	}
	var out []located
	taken := map[string]int{}
	for i, set := range p.sets() {
		given := p.givenOf(set)
		var manifests []map[string]any
		var files []fileNode
		for _, one := range given {
			manifests, files = append(manifests, one.manifest), append(files, one.fileNode)
		}
		for _, request := range set.requests {
			name := request.name
			if taken[request.name]++; taken[request.name] > 1 {
				name = fmt.Sprintf("%s-%d", request.name, taken[request.name])
			}
			one := located{line: request.line, column: request.column}
			one.APIVersion, one.Kind, one.Metadata.Name = APIVersion, Kind, p.name+"."+name
			one.Spec = common
			one.Spec.Requirement, one.Spec.Given = request.requirement, manifests
			one.Spec.When = append(slices.Clone(prepare), request.step)
			if request.audit {
				one.Spec.Needs = []string{"audit"}
			}
			one.Installation = fmt.Sprintf("%s#%d/%d", p.from.name, number, i)
			one.Line, one.Lines = request.line, slices.Repeat([]int{request.line}, len(prepare)+1)
			one.origin = request.origin(files, p.file, len(prepare))
			out = append(out, one)
		}
	}
	return out
}

// origin returns the positions in the files. Before is the number of steps before the request.
func (r *policyRequest) origin(files []fileNode, file string, before int) *origin {
	mapping := func(name string, value *strictyaml.Node) *strictyaml.Node {
		return &strictyaml.Node{Kind: strictyaml.KindMapping, Line: r.line, Column: r.column, Fields: []strictyaml.Field{{Name: name, Line: r.line, Column: r.column, Value: value}}}
	}
	object := r.object.node
	found := &origin{files: files, stepFiles: map[*strictyaml.Node]string{}}
	if r.object.file != file {
		found.stepFiles[object] = r.object.file
	}
	step := object
	for _, name := range slices.Backward(r.sent) {
		step = mapping(name, step)
	}
	when := &strictyaml.Node{Kind: strictyaml.KindList, Line: r.line, Column: r.column, Items: slices.Repeat([]*strictyaml.Node{step}, before+1)}
	found.root = mapping("spec", mapping("when", when))
	return found
}

// givenOf returns what is installed for a set of requests: the rights of users, the policies and
// what they need, and objects that exist before the policies.
func (p *policyTable) givenOf(set *policySet) []fileManifest {
	at := fileNode{p.file, p.root}
	var out []fileManifest
	if p.open {
		namespaces, _ := p.openNamespaces()
		for _, manifest := range namespaces {
			out = append(out, fileManifest{at, manifest})
		}
	}
	for _, manifest := range rightsOf(set.requests) {
		out = append(out, fileManifest{at, manifest})
	}
	out = append(out, p.given...)
	for _, id := range set.order {
		out = append(out, set.exists[id])
	}
	return out
}
