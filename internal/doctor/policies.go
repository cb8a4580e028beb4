package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// policyRules returns the rules about policies and bindings.
func policyRules() []Rule {
	return []Rule{
		{
			ID: "CF-BLOCK-12", Name: "policy-lets-cluster-start", Level: framework.Must,
			Fix:    "exclude kube-system in matchResources of the binding: namespaceSelector with kubernetes.io/metadata.name NotIn [kube-system, kube-node-lease]; leave out requests without a namespace with a matchCondition, or name fewer resources",
			Source: []string{policyDocs, goodPractices},
			Check:  checkPolicies,
		},
		{
			ID: "CF-REACH-6", Name: "params-are-served", Level: framework.Must,
			Fix:    "install the CustomResourceDefinition and the params before the policy",
			Source: []string{policyDocs + "#parameter-resources"},
			Check:  checkParams,
		},
		{
			ID: "CF-MATCH-8", Name: "binding-selects", Level: framework.Should,
			Fix:    "correct policyName, or the selector",
			Source: []string{policyDocs},
			Check:  checkBindings,
		},
		{
			ID: "CF-MATCH-9", Name: "policy-compiles", Level: framework.Must,
			Fix:    "correct the expression",
			Source: []string{policyDocs},
			Check:  checkExpressions,
		},
	}
}

// policy is a policy of either kind, with its bindings. The fields that matter here are the same in both kinds.
type policy struct {
	*object
	spec     admissionregistrationv1.ValidatingAdmissionPolicySpec
	bindings []*binding
}

// binding is a binding of either kind.
type binding struct {
	*object
	spec admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec
}

// judgedPolicies returns the policies that are judged.
func (w *world) judgedPolicies() []*policy {
	return slices.DeleteFunc(slices.Clone(w.policies), func(p *policy) bool { return !w.judged(p.object) })
}

// everyPolicyRequest is the request of a finding about all of them.
const everyPolicyRequest = "every request that the policy matches"

func checkPolicies(c *checker) {
	if len(c.policies) == 0 {
		return
	}
	probes := c.systemRequests()
	for _, p := range probes {
		if unknown := c.decide(p).unknown; unknown != "" {
			c.inconclusive(nil, unknown)
		}
	}
	for _, policy := range c.policies {
		if c.judged(policy.object) || slices.ContainsFunc(policy.bindings, func(b *binding) bool { return c.judged(b.object) }) {
			c.refuses(policy, probes)
		}
	}
}

// refuses checks that a policy does not refuse requests. An error refuses them for certain. The objects are made up, so a validation
// that is false is a warning.
func (c *checker) refuses(policy *policy, probes []probe) {
	certain := Finding{Severity: Error}
	likely := Finding{Severity: Warning, Unknown: "the object of the request is made up"}
	unknown := ""
	for _, p := range probes {
		for _, f := range c.decide(p).findings {
			if f.Kind != policy.GetKind() || f.Name != policy.GetName() {
				continue
			}
			switch {
			case f.Effect == reach.EffectUnknown:
				unknown = f.Text
			case strings.Contains(f.Text, "no such key") && !missingByNature(f.Text, p.Operation):
				unknown = p.text + ", which is made up, lacks a field: " + f.Text
			case f.Effect == reach.EffectRefused:
				certain.affects(p, f.Text)
			case f.Effect == reach.EffectInvalid && c.denies(f):
				likely.affects(p, f.Text)
			}
		}
	}
	switch {
	case certain.Request != "":
		c.add(policy.object, "spec.matchConstraints", certain)
	case likely.Request != "":
		c.add(policy.object, "spec.matchConstraints", likely)
	case unknown != "" && len(policy.bindings) > 0:
		c.inconclusive(policy.object, unknown)
	}
}

// denies reports whether the binding of a validating policy has Deny.
func (w *world) denies(f reach.Finding) bool {
	return slices.ContainsFunc(w.bindings, func(b *binding) bool {
		return b.GetKind() == f.Kind+"Binding" && b.GetName() == f.Binding && slices.Contains(b.spec.ValidationActions, admissionregistrationv1.Deny)
	})
}

// affects adds a request that a policy refuses, the reason of the first, and the fix for all.
func (f *Finding) affects(p probe, reason string) {
	f.affected = append(f.affected, p)
	fix, _ := fixFor(&webhook{}, f.affected)
	f.Fix = strings.Replace(fix, "namespaceSelector", "matchResources.namespaceSelector of the binding", 1)
	if f.Request != "" {
		f.More = append(f.More, p.text)
		return
	}
	f.Request, f.Message = p.text, "the policy refuses a request that the cluster needs: "+reason
}

func checkParams(c *checker) {
	for _, policy := range c.judgedPolicies() {
		if policy.spec.ParamKind == nil {
			continue
		}
		kind := schema.FromAPIVersionAndKind(policy.spec.ParamKind.APIVersion, policy.spec.ParamKind.Kind)
		switch known := c.Of(kind); {
		case known != nil:
			for _, binding := range policy.bindings {
				c.param(binding, kind, known.Namespaced)
			}
		case !c.complete && !kinds.IsBuiltInGroup(kind.Group):
			c.inconclusive(policy.object, fmt.Sprintf("the CustomResourceDefinition of the paramKind, %s %s, is not in the files", kind.GroupVersion(), kind.Kind))
		default:
			c.add(policy.object, "spec.paramKind", Finding{Severity: Error, Request: everyPolicyRequest, Message: fmt.Sprintf("the API server does not serve the paramKind, %s %s", kind.GroupVersion(), kind.Kind)})
		}
	}
}

// param checks that the param of a binding exists.
func (c *checker) param(binding *binding, kind schema.GroupVersionKind, namespaced bool) {
	ref := ptr.Deref(binding.spec.ParamRef, admissionregistrationv1.ParamRef{})
	if ref.Name == "" || ptr.Deref(ref.ParameterNotFoundAction, "") == admissionregistrationv1.AllowAction || namespaced && ref.Namespace == "" {
		return // without a namespace, it is that of the request
	}
	switch found, unknown := c.get(kindKey(kind), ref.Namespace, ref.Name); {
	case found != nil:
	case unknown != "":
		c.inconclusive(binding.object, unknown)
	default:
		c.add(binding.object, "spec.paramRef", Finding{Severity: Error, Request: everyPolicyRequest, Message: fmt.Sprintf("%s %s does not exist, and parameterNotFoundAction is Deny", kind.Kind, strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))})
	}
}

func checkBindings(c *checker) {
	for _, policy := range c.judgedPolicies() {
		switch {
		case len(policy.bindings) > 0:
		case c.onCluster:
			c.add(policy.object, "metadata.name", Finding{Severity: Note, Message: "no binding names the policy: it does nothing"})
		default:
			c.inconclusive(policy.object, "no binding in the files names the policy")
		}
		c.selects(policy.object, "spec.matchConstraints.namespaceSelector", policy.spec.MatchConstraints)
	}
	for _, binding := range c.bindings {
		if !c.judged(binding.object) {
			continue
		}
		if !slices.ContainsFunc(c.policies, func(p *policy) bool { return slices.Contains(p.bindings, binding) }) {
			c.withoutPolicy(binding)
		}
		c.selects(binding.object, "spec.matchResources.namespaceSelector", binding.spec.MatchResources)
	}
}

// withoutPolicy adds that a binding names no policy that is known. Files need not have every policy, but one with nearly the same name is
// the one that is meant.
func (c *checker) withoutPolicy(binding *binding) {
	kind, name := strings.TrimSuffix(binding.GetKind(), "Binding"), binding.spec.PolicyName
	near := slices.ContainsFunc(c.policies, func(p *policy) bool {
		return p.GetKind() == kind && suggest.Nearest(name, []string{p.GetName()}) != ""
	})
	if !c.onCluster && !near {
		c.inconclusive(binding.object, fmt.Sprintf("%s %s is not in the files", kind, name))
		return
	}
	c.add(binding.object, "spec.policyName", Finding{Severity: Warning, Message: fmt.Sprintf("there is no %s %q: the binding does nothing", kind, name)})
}

// selects checks that the namespaceSelector of a policy or binding matches a namespace of the cluster.
func (c *checker) selects(o *object, field string, match *admissionregistrationv1.MatchResources) {
	if c.onCluster && match != nil && len(requirements(match.NamespaceSelector)) > 0 && !c.selectsNamespace(match.NamespaceSelector) {
		c.add(o, field, Finding{Severity: Warning, Message: "no namespace matches: it applies to no object in a namespace"})
	}
}

func checkExpressions(c *checker) {
	for _, problem := range c.broken {
		for _, policy := range c.judgedPolicies() {
			if problem.Webhook == "" && policy.GetKind() == problem.Kind && policy.GetName() == problem.Name {
				c.add(policy.object, problem.Field, Finding{Severity: Error, Request: everyPolicyRequest, Message: "the expression does not compile: " + firstLine(problem.Text)})
			}
		}
	}
}
