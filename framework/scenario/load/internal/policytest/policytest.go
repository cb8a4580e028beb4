package policytest

import (
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/files"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/manifests"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// policyTable reads one PolicyTest and makes scenarios of it.
type policyTable struct {
	*decode.Decoder
	from *files.File
	test scenario.PolicyTest
	root *strictyaml.Node
	// name is how the names of the scenarios begin.
	name string
	// read has the manifests of each file that was read.
	read map[string][]manifests.Manifest
	// given is what every case needs: policies, bindings, params, as the API server gets them.
	given []fileManifest
	// policies and bindings are those of the test.
	policies, bindings []policyRef
	// open is true if the policies are not narrowed.
	open bool
	// namespaces are the names of the namespaces that the test uses.
	namespaces map[string]bool
	requests   []*policyRequest
}

// fileManifest is a manifest in a file, and as the engine gets it.
type fileManifest struct {
	manifests.Manifest
	shipped map[string]any
}

// policyRef is a policy, or a binding with the name of its policy.
type policyRef struct {
	fileManifest
	kind, name, policy string
}

// Scenarios returns the scenarios of a PolicyTest. From is its file. Structs has the structs of a PolicyTest. With errors, no scenario is returned.
func Scenarios(from *files.File, root *strictyaml.Node, structs grammar.Structs) ([]scenario.Scenario, []*scenario.Error) {
	p := &policyTable{
		Decoder: &decode.Decoder{File: from.Name, Structs: structs, Document: reflect.TypeFor[scenario.PolicyTest]()},
		from:    from, root: root, read: map[string][]manifests.Manifest{}, namespaces: map[string]bool{},
	}
	p.Struct(root, reflect.ValueOf(&p.test).Elem(), nil)
	p.Enum(root, "apiVersion", []string{scenario.APIVersion})
	p.Enum(root, "isolation", []string{string(scenario.IsolationNone)})
	p.nameTest()
	p.open = p.test.Isolation == scenario.IsolationNone || p.asksForNames()
	p.listedNamespaces()
	p.readGiven("policies")
	p.readGiven("params")
	p.checkBindings()
	if cases := root.Get("cases"); cases != nil && cases.Kind == strictyaml.KindList && len(cases.Items) == 0 {
		p.Fail(cases, "cases is empty; expected at least one case", "")
	}
	for i, item := range root.List("cases") {
		if i < len(p.test.Cases) && item.Kind == strictyaml.KindMapping {
			p.readCase(item, p.test.Cases[i], decode.Root("cases").Item(i))
		}
	}
	if len(p.Errors) > 0 {
		return nil, p.Errors
	}
	return p.scenarios(), p.Errors
}

// nameTest sets the name of the test: the given one, or that of the folder and the file.
func (p *policyTable) nameTest() {
	if node := p.root.Get("metadata").Get("name"); node != nil {
		if p.name = node.Raw; node.Kind == strictyaml.KindText && !decode.IsSlug("x."+node.Raw) {
			p.Fail(node, fmt.Sprintf("metadata.name is %s; expected lower-case words separated by dots", strictyaml.Quote(node.Raw)), didYouMeanSlug(node.Raw))
		}
		return
	}
	base := path.Base(filepath.ToSlash(p.from.Name))
	folder := p.from.Area
	p.name = decode.SlugWord(strings.TrimSuffix(base, path.Ext(base)))
	if folder = decode.SlugWord(folder); folder != "" && folder != p.name {
		p.name = strings.Trim(folder+"."+p.name, ".")
	}
	if p.name == "" {
		p.name = "input"
	}
}

func didYouMeanSlug(text string) string {
	if word := decode.SlugWord(text); word != "" {
		return fmt.Sprintf("did you mean %q?", word)
	}
	return ""
}

// manifests returns the manifests of a field that is of type Manifests.
func (p *policyTable) manifests(n *strictyaml.Node, where *decode.Place) []manifests.Manifest {
	if n == nil || n.Kind == strictyaml.KindRefused {
		return nil
	}
	if n.Kind == strictyaml.KindNull || n.Kind == strictyaml.KindList && len(n.Items) == 0 {
		p.Fail(n, fmt.Sprintf("%s is empty; expected a file or a Kubernetes manifest", where), "")
		return nil
	}
	var out []manifests.Manifest
	single := n.Kind != strictyaml.KindList
	for i, item := range n.AsList().Items {
		at := where
		if !single {
			at = where.Item(i)
		}
		switch item.Kind {
		case strictyaml.KindText:
			out = append(out, p.fromFile(item, at)...)
		case strictyaml.KindMapping:
			p.Manifest(item, at)
			out = append(out, manifests.Manifest{File: p.File, Node: item})
		case strictyaml.KindRefused:
		default:
			p.Fail(item, fmt.Sprintf("%s is %s; expected a file or a Kubernetes manifest", at, item.Describe()), "")
		}
	}
	return out
}

// fromFile returns the manifests that FILE, FILE#NAME or FILE#KIND/NAME names.
func (p *policyTable) fromFile(at *strictyaml.Node, where *decode.Place) []manifests.Manifest {
	name, fragment, selects := strings.Cut(at.Raw, "#")
	all, known := p.read[name]
	if !known {
		plain := *at
		plain.Raw = name
		all = manifests.Read(p.Decoder, p.from, &plain, where)
		p.read[name] = all
	}
	if !selects || len(all) == 0 {
		return all
	}
	kind, object, both := strings.Cut(fragment, "/")
	if !both {
		kind, object = "", fragment
	}
	var found []manifests.Manifest
	var names []string
	for _, one := range all {
		is := one.Node.Get("metadata").Text("name")
		names = append(names, is)
		if is == object && (kind == "" || kind == one.Node.Text("kind")) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 1:
		return found
	case len(found) > 1 && kind == "":
		p.Fail(at, fmt.Sprintf("%s %s: the file has %d manifests of that name; expected one", where, strictyaml.Quote(at.Raw), len(found)),
			fmt.Sprintf("write %s#%s/%s", name, found[0].Node.Text("kind"), object))
	default:
		p.Fail(at, fmt.Sprintf("%s %s: the file has no such manifest; expected FILE#NAME or FILE#KIND/NAME", where, strictyaml.Quote(at.Raw)), decode.DidYouMean(object, names))
	}
	return nil
}

// readGiven reads the manifests of policies or params.
func (p *policyTable) readGiven(field string) {
	where := decode.Root(field)
	for _, one := range p.manifests(p.root.Get(field), where) {
		group, _, _ := strings.Cut(one.Node.Text("apiVersion"), "/")
		kind := one.Node.Text("kind")
		manifest := p.shipped(one, "")
		given := fileManifest{one, manifest}
		if group != admissionGroup {
			p.given = append(p.given, given)
			continue
		}
		ref := policyRef{given, kind, one.Node.Get("metadata").Text("name"), ""}
		switch {
		case strings.HasSuffix(kind, "AdmissionPolicy"):
			p.policies = append(p.policies, ref)
		case strings.HasSuffix(kind, "AdmissionPolicyBinding"):
			ref.policy = one.Node.Get("spec").Text("policyName")
			p.renameParamNamespace(manifest)
			p.bindings = append(p.bindings, ref)
		default:
			inner := decode.Decoder{File: one.File}
			inner.Fail(one.Node, fmt.Sprintf("a %s in %s; expected policies and bindings", kind, where), "write a Scenario for webhooks")
			p.Errors = append(p.Errors, inner.Errors...)
			continue
		}
		p.given = append(p.given, given)
	}
	if n := p.root.Get(field); field == "policies" && n != nil && len(p.policies) == 0 && len(p.Errors) == 0 {
		p.Fail(n, "policies has no policy; expected a ValidatingAdmissionPolicy or MutatingAdmissionPolicy", "")
	}
}

const admissionGroup = "admissionregistration.k8s.io"

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
			inner := decode.Decoder{File: binding.File}
			inner.Fail(nodeAt(binding.Node, "spec", "policyName"), fmt.Sprintf("%s %s is for %s %s, which the test does not have; expected one of %s",
				binding.kind, binding.name, of, strictyaml.Quote(binding.policy), strings.Join(names, ", ")), decode.DidYouMean(binding.policy, names))
			p.Errors = append(p.Errors, inner.Errors...)
		}
	}
	for _, policy := range p.policies {
		if !bound[policy.kind+" "+policy.name] {
			p.bind(policy)
		}
	}
}

// nodeAt returns the node at a path, or the last one on it that exists.
func nodeAt(n *strictyaml.Node, names ...string) *strictyaml.Node {
	for _, name := range names {
		next := n.Get(name)
		if next == nil {
			break
		}
		n = next
	}
	return n
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
			if one.Node.Text("kind") == kind.Text("kind") && one.Node.Text("apiVersion") == kind.Text("apiVersion") {
				params = append(params, one)
			}
		}
		if len(params) != 1 {
			inner := decode.Decoder{File: policy.File}
			inner.Fail(kind, fmt.Sprintf("%s %s has a paramKind, no binding, and %d params of that kind; expected a binding, or exactly one object of that kind in params", policy.kind, policy.name, len(params)),
				"add a binding with paramRef to the policies of the test")
			p.Errors = append(p.Errors, inner.Errors...)
			return
		}
		metadata, _ := params[0].shipped["metadata"].(map[string]any)
		ref := map[string]any{"name": metadata["name"], "parameterNotFoundAction": "Deny"}
		if namespace, ok := metadata["namespace"]; ok {
			ref["namespace"] = namespace
		}
		spec["paramRef"] = ref
	}
	p.given = append(p.given, fileManifest{policy.Manifest, map[string]any{
		"apiVersion": policy.Node.Text("apiVersion"), "kind": policy.kind + "Binding",
		"metadata": map[string]any{"name": policy.name}, "spec": spec,
	}})
	p.bindings = append(p.bindings, policyRef{policy.fileManifest, policy.kind + "Binding", policy.name, policy.name})
}

// shipped returns a manifest as the engine gets it: without placeholders, and in a namespace of
// the test. Namespace is the default for a manifest without one; empty means the namespace of the scenario.
func (p *policyTable) shipped(n manifests.Manifest, namespace string) map[string]any {
	manifest, _ := literal(n.Node.Plain()).(map[string]any)
	metadata, _ := manifest["metadata"].(map[string]any)
	if named := n.Node.Get("metadata").Text("namespace"); named != "" {
		namespace = named
		inner := decode.Decoder{File: n.File}
		p.checkNamespace(&inner, named, nodeAt(n.Node, "metadata", "namespace"))
		p.Errors = append(p.Errors, inner.Errors...)
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
	if list == nil || list.Kind != strictyaml.KindMapping {
		return
	}
	for i := range list.Fields {
		entry := &list.Fields[i]
		p.checkNamespace(p.Decoder, entry.Name, &strictyaml.Node{Line: entry.Line, Column: entry.Column})
		p.NoOwnLabels(entry.Value, decode.Root("namespaces").Field(entry.Name))
		p.namespaces[entry.Name] = true
	}
}

// checkNamespace checks the name of a namespace that stands at a place in a file.
func (p *policyTable) checkNamespace(in *decode.Decoder, name string, at *strictyaml.Node) {
	if !decode.IsNamespace(name) {
		in.Fail(at, fmt.Sprintf("%s is not a valid name for a namespace of the test; expected at most %d lower-case letters, digits and hyphens", strictyaml.Quote(name), decode.MaxNamespaceName), "")
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
func literal(value any) any {
	switch value := value.(type) {
	case string:
		return strings.ReplaceAll(value, "$(", "$$(")
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = literal(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			out[strings.ReplaceAll(key, "$(", "$$(")] = literal(item)
		}
		return out
	default:
		return value
	}
}
