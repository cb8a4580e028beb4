package reach

import (
	"fmt"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	conditions *conditions
}

func (w *webhookOf) mutates() bool { return w.kind == "MutatingWebhookConfiguration" }

// policy is a policy of either kind, validating or mutating. It implements generic.PolicyAccessor.
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
}

// GetName implements generic.PolicyAccessor.
func (p *policy) GetName() string { return p.name }

// GetNamespace implements generic.PolicyAccessor.
func (p *policy) GetNamespace() string { return "" }

// GetParamKind implements generic.PolicyAccessor.
func (p *policy) GetParamKind() *admissionregistrationv1.ParamKind { return p.spec.ParamKind }

// GetMatchConstraints implements generic.PolicyAccessor.
func (p *policy) GetMatchConstraints() *admissionregistrationv1.MatchResources {
	return p.spec.MatchConstraints
}

// GetFailurePolicy implements generic.PolicyAccessor.
func (p *policy) GetFailurePolicy() *admissionregistrationv1.FailurePolicyType {
	return p.spec.FailurePolicy
}

func (p *policy) mutates() bool { return p.kind == "MutatingAdmissionPolicy" }

func (p *policy) ignores() bool {
	return *p.spec.FailurePolicy == admissionregistrationv1.Ignore
}

// binding is a binding of either kind. It implements generic.BindingAccessor.
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

// GetName implements generic.BindingAccessor.
func (b *binding) GetName() string { return b.name }

// GetNamespace implements generic.BindingAccessor.
func (b *binding) GetNamespace() string { return "" }

// GetPolicyName implements generic.BindingAccessor.
func (b *binding) GetPolicyName() types.NamespacedName {
	return types.NamespacedName{Name: b.spec.PolicyName}
}

// GetParamRef implements generic.BindingAccessor.
func (b *binding) GetParamRef() *admissionregistrationv1.ParamRef { return b.spec.ParamRef }

// GetMatchResources implements generic.BindingAccessor.
func (b *binding) GetMatchResources() *admissionregistrationv1.MatchResources {
	return b.spec.MatchResources
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
	read := runtime.DefaultUnstructuredConverter.FromUnstructured
	switch kind {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		var fields struct {
			Webhooks []admissionregistrationv1.MutatingWebhook `json:"webhooks"`
		}
		if err := read(object.Object, &fields); err != nil {
			return err
		}
		for _, w := range fields.Webhooks {
			setWebhookDefaults(&w)
			a.webhooks = append(a.webhooks, &webhookOf{kind: kind, configuration: name, MutatingWebhook: w})
		}
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		var fields struct {
			Spec policySpec `json:"spec"`
		}
		if err := read(object.Object, &fields); err != nil {
			return err
		}
		if fields.Spec.FailurePolicy == nil {
			fields.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
		}
		setMatchDefaults(fields.Spec.MatchConstraints)
		a.policies = append(a.policies, &policy{kind: kind, name: name, spec: fields.Spec})
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		var fields struct {
			Spec bindingSpec `json:"spec"`
		}
		if err := read(object.Object, &fields); err != nil {
			return err
		}
		setMatchDefaults(fields.Spec.MatchResources)
		a.bindings = append(a.bindings, &binding{kind: kind, name: name, spec: fields.Spec})
	}
	return nil
}

// setWebhookDefaults sets the defaults of the API that matter here
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
func setWebhookDefaults(w *admissionregistrationv1.MutatingWebhook) {
	if w.FailurePolicy == nil {
		w.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	}
	if w.MatchPolicy == nil {
		w.MatchPolicy = ptr.To(admissionregistrationv1.Equivalent)
	}
	if w.NamespaceSelector == nil {
		w.NamespaceSelector = &metav1.LabelSelector{}
	}
	if w.ObjectSelector == nil {
		w.ObjectSelector = &metav1.LabelSelector{}
	}
}

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
