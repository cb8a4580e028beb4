package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// What kube-apiserver says about policies (k8s.io/apiserver/pkg/admission/plugin/policy).
const (
	warningBegins = "Validation failed for ValidatingAdmissionPolicy"
	failureKey    = "validation.policy.admission.k8s.io/validation_failure"
)

// expectation returns the expectation of a case, and the manifest that says what the object must match, if there
// is one. Without another expectation, the request is allowed.
func (p *policyTable) expectation(n *document.Node, c PolicyCase, where *document.Path) (*Expectation, *document.Node) {
	yes, no := true, false
	then := &Expectation{Allowed: &yes, PolicyErrors: true}
	denied := n.Get("denied")
	if c.Denied != nil {
		then.Allowed = &no
		then.RefusedBy, then.Message = p.refusal(denied, *c.Denied, where.Field("denied"))
	}
	var object *document.Node
	then.Object, object = p.mutation(n.Get("mutated"), where.Field("mutated"))
	then.Warnings = warnings(n.Get("warned"))
	then.Audit = p.auditEvent(n.Get("audited"), where.Field("audited"))
	return then, object
}

// refusal returns who refuses a request, and parts of the message.
func (p *policyTable) refusal(n *document.Node, d Denied, where *document.Path) (*RefusedBy, []string) {
	known := func(field, name string, refs []policyRef) {
		var names []string
		for _, ref := range refs {
			if names = append(names, ref.name); ref.name == name {
				return
			}
		}
		p.Fail(n.Find([]any{field}), fmt.Sprintf("%s.%s is %s, which the test does not have; expected one of %s", where, field, document.Quote(name), strings.Join(names, ", ")), document.DidYouMean(name, names))
	}
	policies := []string{d.Policy}
	if d.Policy != "" {
		known("policy", d.Policy, p.policies)
	} else {
		policies = nil
		for _, policy := range p.policies {
			policies = append(policies, policy.name)
		}
	}
	if d.Binding != "" {
		known("binding", d.Binding, p.bindings)
	}
	by := &RefusedBy{Policy: policies, Binding: d.Binding, Error: literal(d.Error)}
	return by, literal([]string(d.Message))
}

// mutation returns what the object in the response must match, and the manifest that says it.
func (p *policyTable) mutation(n *document.Node, where *document.Path) (map[string]any, *document.Node) {
	if n == nil || !n.Valid() || n.Refused() {
		return nil, nil
	}
	object := n
	if n.Kind == document.KindText {
		found := p.fromFile(n, where)
		if len(found) == 0 {
			return nil, object
		}
		if len(found) > 1 {
			p.Fail(n, fmt.Sprintf("%s: the file has %d manifests; expected one", where, len(found)), "write FILE#NAME")
		}
		object = found[0]
		p.operators(object, where)
	} else {
		p.expected(n, where)
	}
	return p.prepared(object, ""), object
}

// warnings returns what the warnings must match.
func warnings(n *document.Node) any {
	if n == nil {
		return nil
	}
	if n.Value == false {
		return map[string]any{"$not": map[string]any{"$contains": map[string]any{"$contains": warningBegins}}}
	}
	parts := []any{}
	for _, part := range partsOf(n) {
		if part.isError {
			parts = append(parts, map[string]any{"error": part.contains})
		} else {
			parts = append(parts, part.contains)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return map[string]any{"$containsAll": parts}
}

// part is a part of the message of a policy.
type part struct {
	contains map[string]any
	// isError is true for a part of an error of the policy.
	isError bool
}

// partsOf returns the parts of messages and errors in a string, a map {error: text}, or a list of both.
func partsOf(n *document.Node) []part {
	var out []part
	for _, item := range n.AsList().Items {
		if text := item.Get("error"); text != nil {
			out = append(out, part{map[string]any{"$contains": literal(text.Raw)}, true})
		} else {
			out = append(out, part{map[string]any{"$contains": literal(item.Raw)}, false})
		}
	}
	return out
}

// auditEvent returns what the audit event must match.
func (p *policyTable) auditEvent(n *document.Node, where *document.Path) map[string]any {
	if n == nil {
		return nil
	}
	annotations := map[string]any{}
	if n.Kind != document.KindMapping {
		var failures []any
		for _, part := range partsOf(n) {
			field := "message"
			if part.isError {
				field = "error"
			}
			failures = append(failures, map[string]any{field: part.contains})
		}
		if len(failures) > 0 {
			annotations[failureKey] = map[string]any{"$json": map[string]any{"$containsAll": failures}}
		}
		return map[string]any{"annotations": annotations}
	}
	for _, entry := range n.Fields {
		policy, key, named := strings.Cut(entry.Name, "/")
		if !named {
			key = entry.Name
			if len(p.policies) == 1 {
				policy = p.policies[0].name
			} else if len(p.policies) > 1 {
				p.Fail(entry.Key, fmt.Sprintf("%s: %s names no policy, and the test has %d policies; expected POLICY/KEY", where, entry.Name, len(p.policies)), "write "+p.policies[0].name+"/"+entry.Name)
			}
		} else if keys := p.auditKeys(policy); keys == nil {
			p.Fail(entry.Key, fmt.Sprintf("%s: the test has no policy %s; expected KEY, or POLICY/KEY", where, document.Quote(policy)), "")
		}
		if keys := p.auditKeys(policy); keys != nil && !slices.Contains(keys, key) {
			p.Fail(entry.Key, fmt.Sprintf("%s: policy %s has no audit annotation %s; expected a key of its spec.auditAnnotations", where, policy, document.Quote(key)),
				document.SuggestOrList(key, keys, "it has none"))
		}
		p.expected(entry.Value, where.Field(entry.Name))
		annotations["$(policy."+policy+")/"+key] = literal(entry.Value.Plain())
	}
	return map[string]any{"annotations": annotations}
}

// auditKeys returns the keys of the audit annotations of a policy. Nil means that the test has no such policy.
func (p *policyTable) auditKeys(name string) []string {
	var keys []string
	for _, policy := range p.policies {
		if policy.name != name {
			continue
		}
		if keys == nil {
			keys = []string{}
		}
		for _, annotation := range policy.Node.Get("spec").List("auditAnnotations") {
			keys = append(keys, annotation.Text("key"))
		}
	}
	return keys
}
