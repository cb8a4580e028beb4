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
func (p *policyTable) expectation(n *document.Node, c PolicyCase, where document.Path) (*Expectation, *document.Node) {
	allowed := c.Denied == nil
	then := &Expectation{Allowed: &allowed, PolicyErrors: true}
	if c.Denied != nil {
		p.refused(n.Get("denied"), *c.Denied, then)
	}
	var object *document.Node
	then.Object, object = p.mutation(n.Get("mutated"), where.Field("mutated"))
	if warned := n.Get("warned"); warned != nil && warned.Value == false {
		then.Warnings = map[string]any{"$not": map[string]any{"$contains": contains(warningBegins)}}
	} else if warned != nil {
		then.Warnings = map[string]any{"$containsAll": partsOf(warned, "")}
	}
	if audited := n.Get("audited"); audited != nil {
		then.Audit = map[string]any{"annotations": p.annotations(audited, where.Field("audited"))}
	}
	return then, object
}

// refused sets who refuses a request, and parts of the message.
func (p *policyTable) refused(n *document.Node, d Denied, then *Expectation) {
	policies := namesOf(p.policies)
	then.RefusedBy = &RefusedBy{Policy: policies, Binding: d.Binding, Error: literal(d.Error)}
	then.Message = literal([]string(d.Message))
	if d.Code != 0 {
		then.Code = OneOrMore[int]{d.Code}
	}
	if d.Reason != "" {
		then.Reason = OneOrMore[string]{d.Reason}
	}
	if d.Policy != "" {
		then.RefusedBy.Policy = []string{d.Policy}
		if !slices.Contains(policies, d.Policy) {
			p.unknownName(n.Get("policy"), "policy", d.Policy, policies)
		}
	}
	if known := namesOf(p.bindings); d.Binding != "" && !slices.Contains(known, d.Binding) {
		p.unknownName(n.Get("binding"), "binding", d.Binding, known)
	}
}

// mutation returns what the object in the response must match, and the manifest that says it.
func (p *policyTable) mutation(n *document.Node, where document.Path) (map[string]any, *document.Node) {
	if n == nil {
		return nil, nil
	}
	p.emptyFields(n, where)
	p.operators(n, where)
	return p.prepared(n, ""), n
}

// contains is the expectation of a part of a string.
func contains(part string) map[string]any { return map[string]any{"$contains": literal(part)} }

// partsOf returns what messages of policies must match, from a string, a map {error: text} for an error of a policy, or
// a list of both. Field is the field of a message, or empty if the message is the text.
func partsOf(n *document.Node, field string) []any {
	parts := []any{}
	for _, item := range n.AsList().Items {
		switch text := item.Get("error"); {
		case text != nil:
			parts = append(parts, map[string]any{"error": contains(text.Raw)})
		case field == "":
			parts = append(parts, contains(item.Raw))
		default:
			parts = append(parts, map[string]any{field: contains(item.Raw)})
		}
	}
	return parts
}

// annotations returns what the annotations of the audit event must match.
func (p *policyTable) annotations(n *document.Node, where document.Path) map[string]any {
	if n.Kind != document.KindMapping || n.Has("error") && len(n.Fields) == 1 {
		return map[string]any{failureKey: map[string]any{"$json": map[string]any{"$containsAll": partsOf(n, "message")}}}
	}
	annotations := map[string]any{}
	for _, entry := range n.Fields {
		policy, key, named := strings.Cut(entry.Name, "/")
		if !named && len(p.policies) > 1 {
			p.Fail(entry.Key, fmt.Sprintf("%s: %s names no policy, and the test has %d policies; expected POLICY/KEY", where, entry.Name, len(p.policies)), "")
			continue
		} else if !named {
			policy, key = p.policies[0].object().GetName(), entry.Name
		}
		var keys []string
		for _, one := range p.policies {
			for _, annotation := range one.Get("spec").List("auditAnnotations") {
				if one.object().GetName() == policy {
					keys = append(keys, annotation.Text("key"))
				}
			}
		}
		if !slices.Contains(keys, key) {
			p.unknownName(entry.Key, "audit annotation of policy "+policy, key, keys)
		}
		p.operators(entry.Value, where.Field(entry.Name))
		p.emptyFields(entry.Value, where.Field(entry.Name))
		annotations["$(policy."+policy+")/"+key] = literal(entry.Value.Plain())
	}
	return annotations
}
