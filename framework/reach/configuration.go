package reach

import (
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// group is the API group of webhook configurations and policies.
const group = "admissionregistration.k8s.io"

// Admission is an admission configuration: webhook configurations, policies and bindings. Make an
// Admission with New. Its methods are safe for concurrent use.
type Admission struct {
	webhooks []*webhookOf
	policies []*policy
	bindings []*binding
}

// webhookOf is one webhook. MutatingWebhook has the fields of ValidatingWebhook too.
type webhookOf struct {
	kind, configuration string
	admissionregistrationv1.MutatingWebhook
	match      *admissionregistrationv1.MatchResources // its rules and selectors in the form of a policy's
	conditions *conditions
}

func (w *webhookOf) mutates() bool { return w.kind == "MutatingWebhookConfiguration" }

// policy is a policy of either kind, validating or mutating.
type policy struct {
	kind, name string
	spec       policySpec
	compiled   *expressions
}

type policySpec struct {
	ParamKind        *admissionregistrationv1.ParamKind         `json:"paramKind"`
	MatchConstraints *admissionregistrationv1.MatchResources    `json:"matchConstraints"`
	MatchConditions  []admissionregistrationv1.MatchCondition   `json:"matchConditions"`
	FailurePolicy    *admissionregistrationv1.FailurePolicyType `json:"failurePolicy"`
	Variables        []admissionregistrationv1.Variable         `json:"variables"`
	Validations      []admissionregistrationv1.Validation       `json:"validations"`
	AuditAnnotations []admissionregistrationv1.AuditAnnotation  `json:"auditAnnotations"`
	Mutations        []admissionregistrationv1beta1.Mutation    `json:"mutations"` // v1 has it since 1.36
}

func (p *policy) mutates() bool { return p.kind == "MutatingAdmissionPolicy" }

func (p *policy) ignores() bool {
	return *p.spec.FailurePolicy == admissionregistrationv1.Ignore
}

// binding is a binding of either kind.
type binding struct {
	kind, name string
	spec       bindingSpec
}

type bindingSpec struct {
	PolicyName        string                                     `json:"policyName"`
	ParamRef          *admissionregistrationv1.ParamRef          `json:"paramRef"`
	MatchResources    *admissionregistrationv1.MatchResources    `json:"matchResources"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

// New reads webhook configurations, policies and bindings, as in your manifests or as an API server
// returns them. A field that is not set gets the API's default. New ignores objects of other API
// groups. It returns an error for a manifest that cannot be read.
func New(manifests []map[string]any) (*Admission, error) {
	a := &Admission{}
	for _, manifest := range manifests {
		object := unstructured.Unstructured{Object: manifest}
		if object.GroupVersionKind().Group != group {
			continue
		}
		if err := a.add(object); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	var err error
	shared := sync.OnceValues(newCompiler)
	for _, w := range a.webhooks {
		if w.conditions, err = compileConditions(w.MatchConditions, shared); err != nil {
			return nil, err
		}
	}
	for _, p := range a.policies {
		if p.compiled, err = compilePolicy(p.spec); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *Admission) add(object unstructured.Unstructured) error {
	kind, name := object.GetKind(), object.GetName()
	var fields struct {
		Webhooks []admissionregistrationv1.MutatingWebhook `json:"webhooks"`
	}
	var policyOf struct {
		Spec policySpec `json:"spec"`
	}
	var bindingOf struct {
		Spec bindingSpec `json:"spec"`
	}
	read := func(into any) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
	}
	switch kind {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		if err := read(&fields); err != nil {
			return err
		}
		for _, w := range fields.Webhooks {
			if w.FailurePolicy == nil {
				w.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
			}
			a.webhooks = append(a.webhooks, &webhookOf{kind: kind, configuration: name, MutatingWebhook: w, match: resourcesOf(w)})
		}
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		if err := read(&policyOf); err != nil {
			return err
		}
		spec := policyOf.Spec
		if spec.FailurePolicy == nil {
			spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
		}
		setMatchDefaults(spec.MatchConstraints)
		a.policies = append(a.policies, &policy{kind: kind, name: name, spec: spec})
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		if err := read(&bindingOf); err != nil {
			return err
		}
		setMatchDefaults(bindingOf.Spec.MatchResources)
		a.bindings = append(a.bindings, &binding{kind: kind, name: name, spec: bindingOf.Spec})
	}
	return nil
}

// setMatchDefaults sets the defaults of the API that matter here
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
func setMatchDefaults(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	if m.MatchPolicy == nil {
		m.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	}
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	if m.ObjectSelector == nil {
		m.ObjectSelector = &metav1.LabelSelector{}
	}
}
