package doctor

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/kinds"
)

// policyRules returns the rules about policies and bindings.
func policyRules() []Rule {
	return []Rule{
		{
			ID: "CF-BLOCK-12", Name: "policy-lets-cluster-start", Level: framework.Must,
			Title:  "A policy does not refuse what the cluster needs to start.",
			Why:    "A policy needs no backend, but refuses requests by an expression, by an error in it, or because its params are missing.",
			When:   "a ValidatingAdmissionPolicy with a binding that has Deny, or a policy with an error and failurePolicy Fail, refuses a request of the system set (see CF-BLOCK-2). An expression that is false is a warning, because the objects are made up",
			Fix:    "exclude kube-system in matchResources of the binding: namespaceSelector with kubernetes.io/metadata.name NotIn [kube-system, kube-node-lease]",
			Source: []string{policyDocs, goodPractices},
			Check:  checkPolicies,
		},
		{
			ID: "CF-REACH-6", Name: "params-are-served", Level: framework.Must,
			Title:  "The paramKind of a policy is served, and its params exist.",
			Why:    "Each request that the policy matches is refused, or with failurePolicy Ignore or parameterNotFoundAction Allow, not checked.",
			When:   "the API server does not serve the paramKind; or the paramRef of a binding names an object that does not exist, and parameterNotFoundAction is Deny",
			Fix:    "install the CustomResourceDefinition and the params before the policy",
			Source: []string{policyDocs + "#parameter-resources"},
			Check:  checkParams,
		},
		{
			ID: "CF-MATCH-8", Name: "binding-selects", Level: framework.Should,
			Title:  "Policies and bindings belong together, and select something.",
			Why:    "A policy without a binding, and a binding without a policy or without a namespace that it matches, do nothing.",
			When:   "no binding names a policy, which is a note; a binding names a policy that does not exist; the namespaceSelector of a binding or policy matches no namespace of the cluster",
			Fix:    "correct policyName, or the selector",
			Source: []string{policyDocs},
			Check:  checkBindings,
		},
		{
			ID: "CF-MATCH-9", Name: "policy-compiles", Level: framework.Must,
			Title:  "The expressions of a policy compile.",
			Why:    "API servers refuse a policy with an expression that does not compile. If one was stored by another version, failurePolicy decides about each request.",
			When:   "a match condition or a validation does not compile in this version of admissiontest",
			Fix:    "correct the expression",
			Source: []string{policyDocs},
			Check:  checkExpressions,
		},
	}
}

// policyObject returns the policy of a kind and name.
func (w *world) policyObject(kind, name string) *object {
	at := slices.IndexFunc(w.policies, func(o *object) bool { return o.GetKind() == kind && o.GetName() == name })
	if at < 0 {
		return nil
	}
	return w.policies[at]
}

// bindingsOf returns the bindings of a policy.
func (w *world) bindingsOf(policy *object) []*object {
	return slices.DeleteFunc(slices.Clone(w.bindings), func(b *object) bool {
		return b.GetKind() != policy.GetKind()+"Binding" || b.text("spec", "policyName") != policy.GetName()
	})
}

func denies(binding *object) bool {
	actions, _, _ := unstructured.NestedStringSlice(binding.Object, "spec", "validationActions")
	return slices.Contains(actions, "Deny")
}

func checkPolicies(c *checker) {
	if len(c.policies) == 0 {
		return
	}
	type refusal struct {
		severity Severity
		texts    []string
		reason   string
	}
	refusals, unknown := map[*object]*refusal{}, map[*object]string{}
	for _, p := range c.systemRequests() {
		all := c.decide(p)
		if all.unknown != "" {
			c.inconclusive(nil, all.unknown)
		}
		for _, f := range all.policies {
			policy, binding := c.policyObject(f.Kind, f.Name), c.bindingObject(f.Kind+"Binding", f.Binding)
			if policy == nil || !c.judged(policy) && (binding == nil || !c.judged(binding)) {
				continue
			}
			severity := Error
			switch {
			case f.Effect == reach.EffectUnknown:
				unknown[policy] = f.Text
				continue
			case f.Effect == reach.EffectInvalid && binding != nil && denies(binding):
				severity = Warning
			case f.Effect != reach.EffectRefused:
				continue
			}
			r := refusals[policy]
			if r == nil || r.severity != severity && severity == Error {
				r = &refusal{severity: severity, reason: f.Text}
				refusals[policy] = r
			}
			if r.severity == severity {
				r.texts = append(r.texts, p.text)
			}
		}
	}
	for _, policy := range c.policies {
		if r := refusals[policy]; r != nil {
			why := ""
			if r.severity == Warning {
				why = "the object of the request is made up"
			}
			c.add(policy, "spec.matchConstraints", Finding{Severity: r.severity, Unknown: why, Request: r.texts[0], More: r.texts[1:], Message: "the policy refuses a request that the cluster needs: " + r.reason})
		} else if why := unknown[policy]; why != "" && len(c.bindingsOf(policy)) > 0 {
			c.inconclusive(policy, why)
		}
	}
}

// bindingObject returns the binding of a kind and name.
func (w *world) bindingObject(kind, name string) *object {
	at := slices.IndexFunc(w.bindings, func(o *object) bool { return o.GetKind() == kind && o.GetName() == name })
	if at < 0 {
		return nil
	}
	return w.bindings[at]
}

func checkParams(c *checker) {
	for _, policy := range c.policies {
		if !c.judged(policy) {
			continue
		}
		kind := schema.FromAPIVersionAndKind(policy.text("spec", "paramKind", "apiVersion"), policy.text("spec", "paramKind", "kind"))
		if kind.Kind == "" {
			continue
		}
		if c.Of(kind) == nil {
			if !c.complete && !kinds.IsBuiltInGroup(kind.Group) {
				c.inconclusive(policy, fmt.Sprintf("the CustomResourceDefinition of the paramKind, %s %s, is not in the files", kind.GroupVersion(), kind.Kind))
			} else {
				c.add(policy, "spec.paramKind", Finding{Severity: Error, Request: "every request that the policy matches", Message: fmt.Sprintf("the API server does not serve the paramKind, %s %s", kind.GroupVersion(), kind.Kind)})
			}
			continue
		}
		for _, binding := range c.bindingsOf(policy) {
			name, namespace := binding.text("spec", "paramRef", "name"), binding.text("spec", "paramRef", "namespace")
			if name == "" || binding.text("spec", "paramRef", "parameterNotFoundAction") == "Allow" {
				continue
			}
			c.param(binding, kind, namespace, name)
		}
	}
}

// param checks that the param of a binding exists.
func (c *checker) param(binding *object, kind schema.GroupVersionKind, namespace, name string) {
	if c.Of(kind).Namespaced && namespace == "" {
		return // it is the namespace of the request
	}
	found, unknown := c.get(kindKey(kind), namespace, name)
	switch {
	case found != nil:
	case unknown != "":
		c.inconclusive(binding, unknown)
	default:
		c.add(binding, "spec.paramRef", Finding{Severity: Error, Request: "every request that the policy matches", Message: fmt.Sprintf("%s %s does not exist, and parameterNotFoundAction is Deny", kind.Kind, strings.TrimPrefix(namespace+"/"+name, "/"))})
	}
}

func checkBindings(c *checker) {
	for _, policy := range c.policies {
		if !c.judged(policy) {
			continue
		}
		if len(c.bindingsOf(policy)) == 0 {
			c.add(policy, "metadata.name", Finding{Severity: Note, Message: "no binding names the policy: it does nothing"})
		}
		c.selectsNamespace(policy, "spec.matchConstraints.namespaceSelector", "spec", "matchConstraints", "namespaceSelector")
	}
	for _, binding := range c.bindings {
		if !c.judged(binding) {
			continue
		}
		name, kind := binding.text("spec", "policyName"), strings.TrimSuffix(binding.GetKind(), "Binding")
		if c.policyObject(kind, name) == nil {
			if _, unknown := c.get(kind+".admissionregistration.k8s.io", "", name); unknown != "" && len(c.policies) == 0 {
				c.inconclusive(binding, unknown)
			} else {
				c.add(binding, "spec.policyName", Finding{Severity: Warning, Message: fmt.Sprintf("there is no %s %q: the binding does nothing", kind, name)})
			}
		}
		c.selectsNamespace(binding, "spec.matchResources.namespaceSelector", "spec", "matchResources", "namespaceSelector")
	}
}

// selectsNamespace checks that a namespaceSelector matches a namespace of the cluster.
func (c *checker) selectsNamespace(o *object, field string, path ...string) {
	fields, found, _ := unstructured.NestedMap(o.Object, path...)
	if !found || len(fields) == 0 || !c.onCluster {
		return
	}
	var given metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &given); err != nil {
		return // reach.New refuses it
	}
	selector, err := metav1.LabelSelectorAsSelector(&given)
	namespaces, unknown := c.list("Namespace", "")
	switch {
	case err != nil:
		c.add(o, field, Finding{Severity: Error, Message: "the selector is malformed: " + err.Error()})
	case unknown != "":
		c.inconclusive(o, unknown)
	case !slices.ContainsFunc(namespaces, func(n *object) bool { return selector.Matches(labels.Set(n.GetLabels())) }):
		c.add(o, field, Finding{Severity: Warning, Message: "no namespace matches: it applies to no object in a namespace"})
	}
}

func checkExpressions(c *checker) {
	for _, problem := range c.admission.ExpressionErrors() {
		policy := c.policyObject(problem.Kind, problem.Name)
		if problem.Webhook == "" && policy != nil && c.judged(policy) {
			c.add(policy, problem.Field, Finding{Severity: Error, Request: "every request that the policy matches", Message: "the expression does not compile: " + firstLine(problem.Text)})
		}
	}
}
