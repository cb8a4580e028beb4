package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// given is what every case needs: policies, bindings, params, as the API server gets them. Policies and
	// bindings are the policies and bindings under test.
	given, policies, bindings []fileManifest
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

// object returns the manifest as the engine gets it.
func (m fileManifest) object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: m.prepared}
}

// namesOf returns the names of manifests.
func namesOf(all []fileManifest) []string {
	var names []string
	for _, one := range all {
		names = append(names, one.object().GetName())
	}
	return names
}

// policyTest returns the scenarios of a PolicyTest: one with all its cases, or several if objects of the cases
// exclude each other. A policy without a binding gets one. With problems, no scenario is returned.
func (d *decoder) policyTest(root *document.Node, options LoadOptions) []Scenario {
	if !d.isFormat(root) {
		return nil
	}
	p := &policyTable{decoder: d, root: root, read: map[string][]*document.Node{}, namespaces: map[string]bool{}}
	d.Decode(root, &p.test)
	p.nameTest()
	p.open = p.test.Isolation == IsolationNone || p.asksForNames()
	for name, labels := range p.test.Namespaces {
		p.namespaces[name] = true
		if p.open && isSystemNamespace(name) && len(labels) > 0 {
			d.Fail(root.Get("namespaces").Get(name), "the policies are not narrowed, and every API server has the namespace "+name+"; expected labels of other namespaces only", "")
		}
	}
	p.readGiven("policies")
	p.readGiven("params")
	if len(d.Problems) > 0 {
		return nil
	}
	p.bindAll()
	for i, item := range root.List("cases") {
		p.readCase(item, p.test.Cases[i], document.Path("cases").Item(i))
	}
	d.compare()
	d.checkServers(options.AllowServerFlags)
	if len(d.Problems) == 0 {
		p.checked = p.contract(options.Samples)
	}
	if len(d.Problems) > 0 {
		return nil
	}
	return p.scenarios()
}

// nameTest sets the name of the test: the given one, or that of the folder and the file.
func (p *policyTable) nameTest() {
	if p.test.Metadata != nil {
		p.name = p.test.Metadata.Name
		return
	}
	base := path.Base(filepath.ToSlash(p.from.Name))
	p.name = slugWord(strings.TrimSuffix(base, path.Ext(base)))
	if folder := slugWord(p.from.Area); folder != "" && folder != p.name {
		p.name = strings.Trim(folder+"."+p.name, ".")
	}
	p.name = cmp.Or(p.name, "input")
}

// slugWord returns a string as a word of a scenario's name: lower-case letters, digits and single
// hyphens.
func slugWord(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// manifests returns the manifests of a field that is of type Manifests.
func (p *policyTable) manifests(n *document.Node, where document.Path) []*document.Node {
	if n == nil {
		return nil
	}
	var out []*document.Node
	for i, item := range n.AsList().Items {
		at := where
		if n.Kind == document.KindList {
			at = where.Item(i)
		}
		if item.Kind == document.KindText {
			out = append(out, p.fromFile(item, at)...)
			continue
		}
		p.manifest(item, at)
		out = append(out, item)
	}
	return out
}

// fromFile returns the manifests that FILE, FILE#NAME or FILE#KIND/NAME names.
func (p *policyTable) fromFile(at *document.Node, where document.Path) []*document.Node {
	name, fragment, selects := strings.Cut(at.Raw, "#")
	all, known := p.read[name]
	if !known {
		all = p.readManifests(name, at, where)
		p.read[name] = all
	}
	if !selects || len(all) == 0 {
		return all
	}
	var found []*document.Node
	var names []string
	for _, one := range all {
		is := one.Get("metadata").Text("name")
		names = append(names, is)
		if fragment == is || fragment == one.Text("kind")+"/"+is {
			found = append(found, one)
		}
	}
	if len(found) == 1 {
		return found
	}
	hint := ""
	if len(found) == 0 {
		hint = document.DidYouMean(fragment, names)
	}
	p.Fail(at, fmt.Sprintf("%s %s: the file has %d such manifests; expected one, as FILE#NAME or FILE#KIND/NAME", where, document.Quote(at.Raw), len(found)), hint)
	return nil
}

// readGiven reads the manifests of policies or params.
func (p *policyTable) readGiven(field string) {
	where := document.Path(field)
	for _, one := range p.manifests(p.root.Get(field), where) {
		given := fileManifest{one, p.prepared(one, "")}
		kind := given.object().GroupVersionKind()
		switch {
		case kind.Group != "admissionregistration.k8s.io":
		case strings.HasSuffix(kind.Kind, "AdmissionPolicy"):
			p.policies = append(p.policies, given)
		case strings.HasSuffix(kind.Kind, "AdmissionPolicyBinding"):
			ref := []string{"spec", "paramRef", "namespace"}
			if name, _, _ := unstructured.NestedString(given.prepared, ref...); name != "" {
				_ = unstructured.SetNestedField(given.prepared, p.namespace(name), ref...) // it is there
			}
			p.bindings = append(p.bindings, given)
		default:
			p.Fail(one, fmt.Sprintf("a %s in %s; expected policies and bindings", kind.Kind, where), "write a Scenario for webhooks")
		}
		p.given = append(p.given, given)
	}
	if field == "policies" && len(p.policies) == 0 && len(p.Problems) == 0 {
		p.Fail(p.root.Get(field), "policies has no policy; expected a ValidatingAdmissionPolicy or MutatingAdmissionPolicy", "")
	}
}

// bindAll reports bindings without a policy, and adds a binding for each policy without one.
func (p *policyTable) bindAll() {
	bound := map[string]bool{}
	for _, binding := range p.bindings {
		of, kind := binding.Get("spec").Text("policyName"), strings.TrimSuffix(binding.Text("kind"), "Binding")
		bound[kind+" "+of] = true
		if !slices.ContainsFunc(p.policies, func(policy fileManifest) bool { return policy.Text("kind") == kind && policy.object().GetName() == of }) {
			p.unknownName(binding.Find("spec", "policyName"), kind, of, namesOf(p.policies))
		}
	}
	for _, policy := range p.policies {
		if !bound[policy.Text("kind")+" "+policy.object().GetName()] {
			p.bind(policy)
		}
	}
}

// bind adds a binding for a policy that has none: it denies, and binds the one parameter of the
// policy's kind.
func (p *policyTable) bind(policy fileManifest) {
	name := policy.object().GetName()
	spec := map[string]any{"policyName": name}
	if policy.Text("kind") == "ValidatingAdmissionPolicy" {
		spec["validationActions"] = []any{"Deny"}
	}
	if kind := policy.Get("spec").Get("paramKind"); kind != nil {
		params := slices.DeleteFunc(slices.Clone(p.given), func(one fileManifest) bool {
			return one.Text("kind") != kind.Text("kind") || one.Text("apiVersion") != kind.Text("apiVersion")
		})
		if len(params) != 1 {
			p.Fail(kind, fmt.Sprintf("%s %s has a paramKind, no binding, and %d params of that kind; expected a binding, or exactly one object of that kind in params", policy.Text("kind"), name, len(params)),
				"add a binding with paramRef to the policies of the test")
			return
		}
		ref := map[string]any{"name": params[0].object().GetName(), "parameterNotFoundAction": "Deny"}
		if namespace := params[0].object().GetNamespace(); namespace != "" {
			ref["namespace"] = namespace
		}
		spec["paramRef"] = ref
	}
	binding := fileManifest{policy.Node, map[string]any{
		"apiVersion": policy.Text("apiVersion"), "kind": policy.Text("kind") + "Binding",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
	p.given, p.bindings = append(p.given, binding), append(p.bindings, binding)
}

// namespaceName is the form of the short name of a namespace. With the ID of the scenario, it is a DNS label of at most 63
// characters.
const namespaceName = `^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`

var isNamespaceName = regexp.MustCompile(namespaceName)

// prepared returns a manifest as the engine gets it: without placeholders, and in a namespace of
// the test. Namespace is the default for a manifest without one; empty means the namespace of the scenario.
func (p *policyTable) prepared(n *document.Node, namespace string) map[string]any {
	manifest, _ := literal(n.Plain()).(map[string]any)
	if named := n.Get("metadata").Text("namespace"); named != "" {
		namespace = named
		if !isNamespaceName.MatchString(named) {
			p.Fail(n.Find("metadata", "namespace"), document.Quote(named)+" is not a valid name for a namespace of the test; expected at most 40 lower-case letters, digits and hyphens", "")
		}
	}
	if namespace != "" {
		object := unstructured.Unstructured{Object: manifest}
		object.SetNamespace(p.namespace(namespace))
	}
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

// literal returns a copy of a value in which no text is a placeholder.
func literal[T any](value T) T {
	return withStrings(value, func(text string) string { return strings.ReplaceAll(text, "$(", "$$(") })
}

// asksForNamespace matches what asks for the name of a namespace in a policy or binding: in CEL,
// and the label that has the name.
var asksForNamespace = regexp.MustCompile(`namespaceObject\.metadata\.name|request\.namespace|bject\.metadata\.namespace|kubernetes\.io/metadata\.name`)

// asksForNames reports whether the names of namespaces matter: a policy or binding asks for them,
// and the test has namespaces. Then the policies cannot be narrowed to namespaces with
// other names.
func (p *policyTable) asksForNames() bool {
	asks := slices.ContainsFunc(p.manifests(p.root.Get("policies"), "policies"), func(one *document.Node) bool {
		text, err := json.Marshal(one.Get("spec").Plain())
		return err == nil && asksForNamespace.Match(text)
	})
	return asks && (len(p.test.Namespaces) > 0 || slices.ContainsFunc(p.root.List("cases"), func(n *document.Node) bool {
		return n.Has("namespace") || slices.ContainsFunc(p.manifests(n.Get("object"), "object"), func(one *document.Node) bool {
			return one.Get("metadata").Has("namespace")
		})
	}))
}

// isSystemNamespace reports whether every API server has a namespace of that name.
func isSystemNamespace(name string) bool {
	return slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, name)
}

// namespaceManifest returns a Namespace.
func namespaceManifest(name string, labels map[string]string) map[string]any {
	object := unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("Namespace")
	object.SetName(name)
	object.SetLabels(labels)
	return object.Object
}
