package scenario

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// policyTable reads one PolicyTest and makes scenarios of it.
type policyTable struct {
	*decoder
	test PolicyTest
	root *document.Node
	// name is how the names of the scenarios begin.
	name string
	// read has the manifests of each file that was read.
	read map[string][]*document.Node
	// given is what every case needs: policies, bindings, params, as the API server gets them.
	given []fileManifest
	// policies and bindings are the policies and bindings of the test.
	policies, bindings []policyRef
	// open is true if the policies are not narrowed.
	open bool
	// namespaces are the names of the namespaces that the test uses.
	namespaces map[string]bool
	requests   []*policyRequest
	// checked is the contract, or nil.
	checked *Contract
}

// fileManifest is a manifest in a file, and as the engine gets it.
type fileManifest struct {
	*document.Node
	prepared map[string]any
}

// policyRef is a policy, or a binding with the name of its policy.
type policyRef struct {
	fileManifest
	kind, name, policy string
}

// policyTest returns the scenarios of a PolicyTest: one with all its cases, or several if objects of the cases
// exclude each other. A policy without a binding gets one. With problems, no scenario is returned.
func (r reader) policyTest(root *document.Node) ([]Scenario, []document.Problem) {
	p := &policyTable{decoder: r.decoder(), root: root, read: map[string][]*document.Node{}, namespaces: map[string]bool{}}
	p.Decode(root, r.format.schema, &p.test)
	p.nameTest()
	p.open = p.test.Isolation == IsolationNone || p.asksForNames()
	p.listedNamespaces()
	p.readGiven("policies")
	p.readGiven("params")
	p.checkBindings()
	for i, item := range root.List("cases") {
		if i < len(p.test.Cases) && item.Kind == document.KindMapping {
			p.readCase(item, p.test.Cases[i], document.Root("cases").Item(i))
		}
	}
	p.compare()
	p.checkServers(r.options.AllowServerFlags)
	if len(p.Problems) == 0 {
		p.checked = p.contract()
	}
	if len(p.Problems) > 0 {
		return nil, p.Problems
	}
	return p.scenarios(), nil
}

// nameTest sets the name of the test: the given one, or that of the folder and the file.
func (p *policyTable) nameTest() {
	if node := p.root.Get("metadata").Get("name"); node != nil {
		p.name = node.Raw
		return
	}
	base := path.Base(filepath.ToSlash(p.from.Name))
	folder := p.from.Area
	p.name = slugWord(strings.TrimSuffix(base, path.Ext(base)))
	if folder = slugWord(folder); folder != "" && folder != p.name {
		p.name = strings.Trim(folder+"."+p.name, ".")
	}
	if p.name == "" {
		p.name = "input"
	}
}

// manifests returns the manifests of a field that is of type Manifests.
func (p *policyTable) manifests(n *document.Node, where *document.Path) []*document.Node {
	if n == nil || n.Refused() {
		return nil
	}
	var out []*document.Node
	single := n.Kind != document.KindList
	for i, item := range n.AsList().Items {
		at := where
		if !single {
			at = where.Item(i)
		}
		switch item.Kind {
		case document.KindText:
			out = append(out, p.fromFile(item, at)...)
		case document.KindMapping:
			p.manifest(item, at)
			out = append(out, item)
		}
	}
	return out
}

// fromFile returns the manifests that FILE, FILE#NAME or FILE#KIND/NAME names.
func (p *policyTable) fromFile(at *document.Node, where *document.Path) []*document.Node {
	name, fragment, selects := strings.Cut(at.Raw, "#")
	all, known := p.read[name]
	if !known {
		plain := *at
		plain.Raw = name
		all = p.readManifests(&plain, where)
		p.read[name] = all
	}
	if !selects || len(all) == 0 {
		return all
	}
	kind, object, both := strings.Cut(fragment, "/")
	if !both {
		kind, object = "", fragment
	}
	var found []*document.Node
	var names []string
	for _, one := range all {
		is := one.Get("metadata").Text("name")
		names = append(names, is)
		if is == object && (kind == "" || kind == one.Text("kind")) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 1:
		return found
	case len(found) > 1 && kind == "":
		p.Fail(at, fmt.Sprintf("%s %s: the file has %d manifests of that name; expected one", where, document.Quote(at.Raw), len(found)),
			fmt.Sprintf("write %s#%s/%s", name, found[0].Text("kind"), object))
	default:
		p.Fail(at, fmt.Sprintf("%s %s: the file has no such manifest; expected FILE#NAME or FILE#KIND/NAME", where, document.Quote(at.Raw)), document.DidYouMean(object, names))
	}
	return nil
}

// readGiven reads the manifests of policies or params.
func (p *policyTable) readGiven(field string) {
	where := document.Root(field)
	for _, one := range p.manifests(p.root.Get(field), where) {
		group, _, _ := strings.Cut(one.Text("apiVersion"), "/")
		kind := one.Text("kind")
		manifest := p.prepared(one, "")
		given := fileManifest{one, manifest}
		if group != "admissionregistration.k8s.io" {
			p.given = append(p.given, given)
			continue
		}
		ref := policyRef{given, kind, one.Get("metadata").Text("name"), ""}
		switch {
		case strings.HasSuffix(kind, "AdmissionPolicy"):
			p.policies = append(p.policies, ref)
		case strings.HasSuffix(kind, "AdmissionPolicyBinding"):
			ref.policy = one.Get("spec").Text("policyName")
			p.renameParamNamespace(manifest)
			p.bindings = append(p.bindings, ref)
		default:
			p.Fail(one, fmt.Sprintf("a %s in %s; expected policies and bindings", kind, where), "write a Scenario for webhooks")
			continue
		}
		p.given = append(p.given, given)
	}
	if n := p.root.Get(field); field == "policies" && n != nil && len(p.policies) == 0 && len(p.Problems) == 0 {
		p.Fail(n, "policies has no policy; expected a ValidatingAdmissionPolicy or MutatingAdmissionPolicy", "")
	}
}

// checkBindings reports bindings without a policy, and adds a binding for each policy without
// one.
func (p *policyTable) checkBindings() {
	var names []string
	for _, policy := range p.policies {
		names = append(names, policy.name)
	}
	bound := map[string]bool{}
	for _, binding := range p.bindings {
		of := strings.TrimSuffix(binding.kind, "Binding")
		bound[of+" "+binding.policy] = true
		if !slices.ContainsFunc(p.policies, func(policy policyRef) bool { return policy.kind == of && policy.name == binding.policy }) && len(names) > 0 {
			p.Fail(binding.Node.Find([]any{"spec", "policyName"}), fmt.Sprintf("%s %s is for %s %s, which the test does not have; expected one of %s",
				binding.kind, binding.name, of, document.Quote(binding.policy), strings.Join(names, ", ")), document.DidYouMean(binding.policy, names))
		}
	}
	for _, policy := range p.policies {
		if !bound[policy.kind+" "+policy.name] {
			p.bind(policy)
		}
	}
}

// bind adds a binding for a policy that has none: it denies, and binds the one parameter of the
// policy's kind.
func (p *policyTable) bind(policy policyRef) {
	spec := map[string]any{"policyName": policy.name}
	if policy.kind == "ValidatingAdmissionPolicy" {
		spec["validationActions"] = []any{"Deny"}
	}
	if kind := policy.Node.Get("spec").Get("paramKind"); kind != nil {
		var params []fileManifest
		for _, one := range p.given {
			if one.Text("kind") == kind.Text("kind") && one.Text("apiVersion") == kind.Text("apiVersion") {
				params = append(params, one)
			}
		}
		if len(params) != 1 {
			p.Fail(kind, fmt.Sprintf("%s %s has a paramKind, no binding, and %d params of that kind; expected a binding, or exactly one object of that kind in params", policy.kind, policy.name, len(params)),
				"add a binding with paramRef to the policies of the test")
			return
		}
		metadata, _ := params[0].prepared["metadata"].(map[string]any)
		ref := map[string]any{"name": metadata["name"], "parameterNotFoundAction": "Deny"}
		if namespace, ok := metadata["namespace"]; ok {
			ref["namespace"] = namespace
		}
		spec["paramRef"] = ref
	}
	p.given = append(p.given, fileManifest{policy.Node, map[string]any{
		"apiVersion": policy.Node.Text("apiVersion"), "kind": policy.kind + "Binding",
		"metadata": map[string]any{"name": policy.name}, "spec": spec,
	}})
	p.bindings = append(p.bindings, policyRef{policy.fileManifest, policy.kind + "Binding", policy.name, policy.name})
}

// prepared returns a manifest as the engine gets it: without placeholders, and in a namespace of
// the test. Namespace is the default for a manifest without one; empty means the namespace of the scenario.
func (p *policyTable) prepared(n *document.Node, namespace string) map[string]any {
	manifest, _ := literal(n.Plain()).(map[string]any)
	metadata, _ := manifest["metadata"].(map[string]any)
	if named := n.Get("metadata").Text("namespace"); named != "" {
		namespace = named
		p.checkNamespace(named, n.Find([]any{"metadata", "namespace"}))
	}
	if namespace == "" {
		return manifest
	}
	if metadata == nil {
		metadata = map[string]any{}
		manifest["metadata"] = metadata
	}
	metadata["namespace"] = p.namespace(namespace)
	return manifest
}

// namespace returns the name of a namespace of the test on the API server.
func (p *policyTable) namespace(name string) string {
	p.namespaces[name] = true
	if p.open {
		return name
	}
	return "$(namespace." + name + ")"
}

// listedNamespaces reads the field namespaces.
func (p *policyTable) listedNamespaces() {
	list := p.root.Get("namespaces")
	if list == nil || list.Kind != document.KindMapping {
		return
	}
	for _, entry := range list.Fields {
		p.namespaces[entry.Name] = true
	}
}

// checkNamespace checks the name of a namespace that is at a position in a file.
func (p *policyTable) checkNamespace(name string, at *document.Node) {
	if !isNamespace(name) {
		p.Fail(at, document.Quote(name)+" is not a valid name for a namespace of the test; expected at most 40 lower-case letters, digits and hyphens", "")
	}
}

// renameParamNamespace makes a binding take its parameters from a namespace of the test.
func (p *policyTable) renameParamNamespace(binding map[string]any) {
	spec, _ := binding["spec"].(map[string]any)
	ref, _ := spec["paramRef"].(map[string]any)
	if name, _ := ref["namespace"].(string); name != "" {
		ref["namespace"] = p.namespace(name)
	}
}

// literal returns a copy of a value in which no text is a placeholder.
func literal[T any](value T) T {
	return withStrings(value, func(text string) string { return strings.ReplaceAll(text, "$(", "$$(") })
}
