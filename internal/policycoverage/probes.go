package policycoverage

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

const (
	group             = "admissionregistration.k8s.io"
	validatingPolicy  = "ValidatingAdmissionPolicy"
	validatingBinding = validatingPolicy + "Binding"
	mutatingPolicy    = "MutatingAdmissionPolicy"
	mutatingBinding   = mutatingPolicy + "Binding"
)

// policy is a policy of a PolicyTest, with its parts.
type policy struct {
	unstructured.Unstructured
	// index is its index in Spec.Given, and bindings has the indexes of its bindings.
	index    int
	bindings []int
	// conditions is the number of parts at the beginning that are in matchConditions.
	conditions int
	reader
}

// policiesOf returns the policies of a PolicyTest.
func policiesOf(s scenario.Scenario) []*policy {
	var all []*policy
	for i, manifest := range s.Spec.Given {
		u := unescaped(manifest)
		if kind := u.GroupVersionKind(); kind.Group == group && (kind.Kind == validatingPolicy || kind.Kind == mutatingPolicy) {
			p := &policy{Unstructured: u, index: i}
			for j, other := range s.Spec.Given {
				of, _, _ := unstructured.NestedString(other, "spec", "policyName")
				if b := (unstructured.Unstructured{Object: other}); b.GetKind() == u.GetKind()+"Binding" && of == u.GetName() {
					p.bindings = append(p.bindings, j)
				}
			}
			p.readAll()
			all = append(all, p)
		}
	}
	return all
}

// unescaped returns a copy of a manifest in which no string is written as in a scenario, where $$( is $(.
func unescaped(manifest map[string]any) unstructured.Unstructured {
	copied := runtime.DeepCopyJSON(manifest)
	replaced(copied, strings.NewReplacer("$$(", "$("))
	return unstructured.Unstructured{Object: copied}
}

// escape writes each string of a manifest as in a scenario, where $( is $$(.
func escape(manifest map[string]any) { replaced(manifest, strings.NewReplacer("$(", "$$(")) }

// replaced replaces in each string of a value, and returns the value.
func replaced(value any, by *strings.Replacer) any {
	switch value := value.(type) {
	case string:
		return by.Replace(value)
	case map[string]any:
		for name, inner := range value {
			value[name] = replaced(inner, by)
		}
	case []any:
		for i, inner := range value {
			value[i] = replaced(inner, by)
		}
	}
	return value
}

// list returns the maps of a list in the spec.
func (p *policy) list(fields ...string) []map[string]any {
	items, _, _ := unstructured.NestedSlice(p.Object, append([]string{"spec"}, fields...)...)
	var found []map[string]any
	for _, item := range items {
		fields, _ := item.(map[string]any)
		found = append(found, fields)
	}
	return found
}

// readAll collects the parts of all expressions.
func (p *policy) readAll() {
	text := func(fields map[string]any, path ...string) string {
		found, _, _ := unstructured.NestedString(fields, path...)
		return found
	}
	for i, each := range p.list("matchConditions") {
		p.read(fmt.Sprintf("spec.matchConditions[%d].expression", i), "", text(each, "expression"), true, nil)
	}
	for i := range p.parts {
		if names(p.parts[i].text, "namespaceObject") {
			p.parts[i].unknown = "namespaceObject is always null in a matchCondition, and not in a probe"
		}
	}
	p.conditions = len(p.parts)
	for i, each := range p.list("validations") {
		at := fmt.Sprintf("spec.validations[%d].", i)
		p.read(at+"expression", "", text(each, "expression"), true, nil)
		if message := text(each, "messageExpression"); message != "" {
			p.read(at+"messageExpression", "", message, false, []step{{text: text(each, "expression")}})
		}
	}
	for i, each := range p.list("auditAnnotations") {
		p.read(fmt.Sprintf("spec.auditAnnotations[%d].valueExpression", i), "", text(each, "valueExpression"), false, nil)
	}
	for i, each := range p.list("mutations") {
		for _, form := range []string{"applyConfiguration", "jsonPatch"} {
			if of := text(each, form, "expression"); of != "" {
				p.read(fmt.Sprintf("spec.mutations[%d].%s.expression", i, form), "", of, false, nil)
			}
		}
	}
	for i, each := range p.list("variables") {
		p.read(fmt.Sprintf("spec.variables[%d].expression", i), text(each, "name"), text(each, "expression"), false, nil)
	}
	for i := range p.parts {
		if whole := inside(p.parts[i].context, p.parts[i].text); p.GetKind() == mutatingPolicy && names(whole, "") {
			p.parts[i].unknown = "a ValidatingAdmissionPolicy does not know the types of a MutatingAdmissionPolicy"
		}
	}
}

// probe is a ValidatingAdmissionPolicy that never denies and whose warnings say which values parts of a policy have.
type probe struct {
	of *policy
	// number is the number of the policy in the test.
	number int
	// conditions is true for the parts of matchConditions: then the probe has none itself.
	conditions bool
	observes   []observation
}

// observation is what one part, or one reference, needs.
type observation struct {
	part        int // -1 for a reference
	validations []any
}

// split returns a probe without observations, and one for each observation.
func (p *probe) split() []*probe {
	bare := *p
	bare.observes = nil
	all := []*probe{&bare}
	for i := range p.observes {
		one := *p
		one.observes = p.observes[i : i+1]
		all = append(all, &one)
	}
	return all
}

// mostInProbes limits the parts that are observed with one request: each has a warning of about 110 characters, or an error, and
// an API server cuts warnings after 4096.
const mostInProbes = 16

// probes returns the probes of a policy with a number: one for its matchConditions, and then those for what follows.
func (p *policy) probes(number int) []*probe {
	conditions, decisions := []*probe{{of: p, number: number, conditions: true}}, []*probe{{of: p, number: number}}
	add := func(all []*probe, at int, validations ...any) []*probe {
		last := all[len(all)-1]
		if len(last.observes) == mostInProbes {
			last = &probe{of: p, number: number, conditions: last.conditions}
			all = append(all, last)
		}
		last.observes = append(last.observes, observation{at, validations})
		return all
	}
	for i, each := range p.parts {
		if each.unknown != "" {
			continue
		}
		both := []any{
			map[string]any{"expression": each.witness(true), "message": fmt.Sprintf("%dt", i)},
			map[string]any{"expression": each.witness(false), "message": fmt.Sprintf("%df", i)},
		}
		if i < p.conditions {
			conditions = add(conditions, i, both...)
		} else {
			decisions = add(decisions, i, both...)
		}
	}
	for i, each := range p.references {
		if len(each.context) > 0 {
			decisions = add(decisions, -1, map[string]any{"expression": inside(each.context, "false"), "message": fmt.Sprintf("%dr", i)})
		}
	}
	return append(conditions, decisions...)
}

// Messages of the validation that is always false: which request a probe was evaluated for.
const (
	matched   = "at" // the rules and selectors match
	evaluated = "do" // and the matchConditions are true
)

// manifests returns the probe and its bindings, with the indexes of the given bindings in their names.
func (p *probe) manifests(given []map[string]any, unique int) []map[string]any {
	name := fmt.Sprintf("p%d-%d", p.number, unique)
	spec, _, _ := unstructured.NestedMap(p.of.Object, "spec")
	probeSpec := map[string]any{"failurePolicy": "Fail"}
	for _, field := range []string{"matchConstraints", "paramKind", "variables"} {
		if value, ok := spec[field]; ok {
			probeSpec[field] = value
		}
	}
	word := evaluated
	if p.conditions {
		word = matched
	} else if conditions, ok := spec["matchConditions"]; ok {
		probeSpec["matchConditions"] = conditions
	}
	param := "''"
	if _, ok := spec["paramKind"]; ok {
		param = "(params == null ? '' : (has(params.metadata.namespace) ? params.metadata.namespace : '') + '/' + params.metadata.name)"
	}
	request := fmt.Sprintf("'%s ' + request.operation + ' ' + request.resource.group + '/' + request.resource.resource + "+
		"(has(request.subResource) && request.subResource != '' ? '/' + request.subResource : '') + ' ' + %s", word, param)
	validations := []any{map[string]any{"expression": "false", "message": word, "messageExpression": request}}
	for _, each := range p.observes {
		validations = append(validations, each.validations...)
	}
	probeSpec["validations"] = validations
	manifest := map[string]any{
		"apiVersion": group + "/v1", "kind": validatingPolicy, "metadata": map[string]any{"name": name}, "spec": probeSpec,
	}
	manifest = runtime.DeepCopyJSON(manifest) // other copies have the same validations
	escape(manifest)
	all := []map[string]any{manifest}
	for _, at := range p.of.bindings {
		binding := runtime.DeepCopyJSON(given[at])
		binding["apiVersion"], binding["kind"] = group+"/v1", validatingBinding
		binding["metadata"] = map[string]any{"name": fmt.Sprintf("b%d-%d", at, unique)}
		of, _, _ := unstructured.NestedMap(binding, "spec")
		of["policyName"], of["validationActions"] = name, []any{"Warn"}
		binding["spec"] = of
		all = append(all, binding)
	}
	return all
}
