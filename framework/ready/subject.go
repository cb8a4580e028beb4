package ready

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// subject is a webhook, or a policy with one of its bindings.
type subject struct {
	Error

	names   reach.Finding // only the names
	counted string        // its key in the counts, without the outcome
	version string        // of the objects that it consists of
	note    string        // what the type check of the API server says
	shared  bool          // another configuration of the kind has a webhook with this name
	changed bool          // one of the objects was changed since its creation
	// What requests it selects, and the expressions that tell which of these it decides about, or denies.
	rules               []admissionregistrationv1.RuleWithOperations
	objects, namespaces []*metav1.LabelSelector
	variables           map[string]string
	expressions         []string

	since, derived time.Time
	probes         []client.HTTPRequest
	decides        bool                    // about the last dry runs
	unseen, ready  map[*client.Client]bool // on which API servers the probes showed nothing, or that it is ready
}

// configuration is an object of the API group, of any kind.
type configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Webhooks []admissionregistrationv1.MutatingWebhook `json:"webhooks"`
	Spec     struct {
		admissionregistrationv1.ValidatingAdmissionPolicySpec `json:",inline"`

		PolicyName     string                                  `json:"policyName"`
		MatchResources *admissionregistrationv1.MatchResources `json:"matchResources"`
	} `json:"spec"`
	Status admissionregistrationv1.ValidatingAdmissionPolicyStatus `json:"status"`
}

const (
	webhooks = "WebhookConfiguration"
	policies = "AdmissionPolicy"
	binding  = "Binding"
)

// read reads what Wait waits for, and keeps what is known of what did not change.
func (w *waiter) read(ctx context.Context) error {
	if w.subjects == nil { // the kinds of configurations are not known yet
		if err := w.client.Discover(ctx); err != nil {
			return err
		}
	}
	var all []configuration
	for _, kind := range []string{"Validating" + webhooks, "Mutating" + webhooks, "Validating" + policies, "Validating" + policies + binding, "Mutating" + policies, "Mutating" + policies + binding} {
		resource, err := w.client.Resources.Of(schema.GroupVersionKind{Group: admissionregistrationv1.GroupName, Version: "v1", Kind: kind})
		if err != nil || len(w.Webhooks) == 0 && strings.HasSuffix(kind, webhooks) || len(w.Policies) == 0 && strings.Contains(kind, policies) {
			continue // it is not served, or Wait does not wait for it
		}
		list, err := w.client.ListObjects(ctx, resource, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, item := range list.Items {
			var one configuration
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &one); err != nil {
				return err
			}
			one.Kind = kind
			all = append(all, one)
		}
	}
	before := w.subjects
	w.collect(all)
	for i, s := range w.subjects {
		if at := slices.IndexFunc(before, func(old *subject) bool { return old.Subject == s.Subject && old.version == s.version }); at >= 0 {
			w.subjects[i], before[at].note = before[at], s.note
		}
	}
	return nil
}

// collect makes the subjects. What does not exist is one too.
func (w *waiter) collect(all []configuration) {
	w.subjects = nil
	for _, one := range all {
		switch policyKind := strings.TrimSuffix(one.Kind, binding); {
		case strings.HasSuffix(one.Kind, webhooks) && slices.Contains(w.Webhooks, one.Name):
			for _, webhook := range one.Webhooks {
				w.subjects = append(w.subjects, webhookSubject(one, webhook, all))
			}
		case policyKind != one.Kind && slices.Contains(w.Policies, one.Spec.PolicyName):
			at := slices.IndexFunc(all, func(c configuration) bool { return c.Kind == policyKind && c.Name == one.Spec.PolicyName })
			if at >= 0 {
				w.subjects = append(w.subjects, policySubject(all[at], one))
			}
		}
	}
	for kind, names := range map[string][]string{webhooks: w.Webhooks, policies: w.Policies} {
		for _, name := range names {
			if !slices.ContainsFunc(w.subjects, func(s *subject) bool { return s.names.Name == name && strings.HasSuffix(s.names.Kind, kind) }) {
				s := newSubject(reach.Finding{Kind: kind, Name: name})
				s.Reason = "there is no such webhook, or no such policy with a binding"
				w.subjects = append(w.subjects, s)
			}
		}
	}
}

// newSubject returns a subject that consists of objects.
func newSubject(names reach.Finding, parts ...configuration) *subject {
	s := &subject{names: names, since: time.Now(), unseen: map[*client.Client]bool{}, ready: map[*client.Client]bool{}}
	s.Subject, s.Reason = names.Subject(), "nothing is known yet"
	for _, part := range parts {
		s.version += fmt.Sprintf("%s %d ", part.UID, part.Generation)
		s.changed = s.changed || part.Generation > 1
	}
	return s
}

// selects notes which requests a subject is about.
func (s *subject) selects(namespaces, objects *metav1.LabelSelector, rules []admissionregistrationv1.RuleWithOperations, conditions []admissionregistrationv1.MatchCondition) {
	s.namespaces, s.objects, s.rules = append(s.namespaces, namespaces), append(s.objects, objects), append(s.rules, rules...)
	for _, condition := range conditions {
		s.expressions = append(s.expressions, condition.Expression)
	}
}

// webhookSubject returns the subject of a webhook of one of all configurations.
func webhookSubject(one configuration, webhook admissionregistrationv1.MutatingWebhook, all []configuration) *subject {
	s := newSubject(reach.Finding{Kind: one.Kind, Name: one.Name, Webhook: webhook.Name}, one)
	s.counted = key(webhookMetric, map[bool]string{true: "admit", false: "validating"}[strings.HasPrefix(one.Kind, "Mutating")], webhook.Name)
	s.selects(webhook.NamespaceSelector, webhook.ObjectSelector, webhook.Rules, webhook.MatchConditions)
	s.shared = slices.ContainsFunc(all, func(other configuration) bool {
		return other.Kind == one.Kind && other.Name != one.Name && slices.ContainsFunc(other.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return w.Name == webhook.Name })
	})
	return s
}

// policySubject returns the subject of a policy with a binding.
func policySubject(one, binding configuration) *subject {
	s := newSubject(reach.Finding{Kind: one.Kind, Name: one.Name, Binding: binding.Name}, one, binding)
	s.counted, s.variables = key(mutatingMetric, one.Name, binding.Name), map[string]string{}
	if one.Kind == validating {
		s.counted = key(validatingMetric, one.Name, binding.Name)
	}
	for _, match := range []*admissionregistrationv1.MatchResources{one.Spec.MatchConstraints, binding.Spec.MatchResources} {
		all := ptr.Deref(match, admissionregistrationv1.MatchResources{})
		s.selects(all.NamespaceSelector, all.ObjectSelector, nil, nil)
		for _, rule := range all.ResourceRules {
			s.rules = append(s.rules, rule.RuleWithOperations)
		}
	}
	s.selects(nil, nil, nil, one.Spec.MatchConditions)
	for _, variable := range one.Spec.Variables {
		s.variables[variable.Name] = variable.Expression
	}
	for _, validation := range one.Spec.Validations {
		s.expressions = append(s.expressions, validation.Expression)
	}
	if checked := one.Status.TypeChecking; checked != nil {
		for _, warning := range checked.ExpressionWarnings {
			s.note += fmt.Sprintf("; its type check says at %s: %s", warning.FieldRef, warning.Warning)
		}
	}
	return s
}

// derive finds dry runs for each subject that has none. If there are none, the reason says why.
func (w *waiter) derive(ctx context.Context) error {
	for _, s := range w.subjects {
		if len(s.rules) == 0 || len(s.probes) > 0 || time.Since(s.derived) < time.Second {
			continue
		}
		for _, one := range w.servers {
			if w.first[one] == nil && len(w.Webhooks) > 0 {
				w.first[one], _ = counts(ctx, one) // they only save time
			}
		}
		s.derived = time.Now()
		missing, err := w.deriveFor(ctx, s)
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		if err != nil {
			missing = "a right is missing: " + err.Error()
		}
		if s.Unknown = len(s.probes) == 0; s.Unknown {
			s.Reason = "no creation is known that it decides about: " + missing
		}
	}
	return nil
}
