package ready

import (
	"context"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// subject is a webhook, or a policy with one of its bindings.
type subject struct {
	Error

	names   reach.Finding // only the names
	counted string        // its key in the counts, without the outcome
	version string        // of the objects that it consists of
	rules   []admissionregistrationv1.RuleWithOperations
	labels  map[string]string // an objectSelector that they match
	policy  *configuration
	shared  bool // another configuration of the kind has a webhook with this name
	silent  bool // responses do not show what a policy denies
	// created is when the last of the objects was created. It is zero if one was changed since.
	created, since, derived time.Time

	probes []client.HTTPRequest
	turn   int
	unseen map[string]bool // what an API server accepted without a trace
	ready  map[*client.Client]bool
}

// configuration is an object of the API group, of any kind.
type configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Webhooks []admissionregistrationv1.MutatingWebhook `json:"webhooks"`
	Spec     struct {
		admissionregistrationv1.ValidatingAdmissionPolicySpec `json:",inline"`

		PolicyName        string                                     `json:"policyName"`
		ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
	} `json:"spec"`
}

const (
	webhooks = "WebhookConfiguration"
	policies = "AdmissionPolicy"
	binding  = "Binding"
)

// read reads what Wait waits for, and keeps what is known of what did not change.
func (w *waiter) read(ctx context.Context) error {
	var manifests []map[string]any
	var all []configuration
	resources := []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
	if len(w.Webhooks) == 0 {
		resources = resources[2:]
	} else if len(w.Policies) == 0 {
		resources = resources[:2]
	}
	wanted := slices.Concat(w.Webhooks, w.Policies)
	for _, resource := range resources {
		for _, version := range []string{"v1", "v1beta1"} {
			of := schema.GroupVersionResource{Group: admissionregistrationv1.GroupName, Version: version, Resource: resource}
			list, err := w.ListObjects(ctx, client.Resource{GroupVersionResource: of}, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			for _, item := range list.Items {
				var one configuration
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &one); err != nil {
					return err
				}
				all = append(all, one)
				if slices.Contains(wanted, one.Name) || slices.Contains(wanted, one.Spec.PolicyName) {
					manifests = append(manifests, item.Object)
				}
			}
			break
		}
	}
	before := w.subjects
	w.collect(all)
	for i, s := range w.subjects {
		s.Subject = s.names.Subject()
		if at := slices.IndexFunc(before, func(old *subject) bool { return old.Subject == s.Subject && old.version == s.version }); at >= 0 {
			w.subjects[i] = before[at]
		}
	}
	return w.derive(ctx, manifests)
}

// collect makes the subjects. What does not exist is one too.
func (w *waiter) collect(all []configuration) {
	w.subjects = nil
	for _, one := range all {
		switch policyKind := strings.TrimSuffix(one.Kind, binding); {
		case strings.HasSuffix(one.Kind, webhooks) && slices.Contains(w.Webhooks, one.Name):
			for _, webhook := range one.Webhooks {
				s := newSubject(reach.Finding{Kind: one.Kind, Name: one.Name, Webhook: webhook.Name}, one)
				s.rules, s.counted = webhook.Rules, key(webhookMetric, map[bool]string{true: "admit", false: "validating"}[strings.HasPrefix(one.Kind, "Mutating")], webhook.Name)
				if webhook.ObjectSelector != nil {
					s.labels = webhook.ObjectSelector.MatchLabels
				}
				s.shared = slices.ContainsFunc(all, func(other configuration) bool {
					return other.Kind == one.Kind && other.Name != one.Name && slices.ContainsFunc(other.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return w.Name == webhook.Name })
				})
				w.subjects = append(w.subjects, s)
			}
		case policyKind != one.Kind && slices.Contains(w.Policies, one.Spec.PolicyName):
			at := slices.IndexFunc(all, func(c configuration) bool { return c.Kind == policyKind && c.Name == one.Spec.PolicyName })
			if at >= 0 {
				w.subjects = append(w.subjects, policySubject(&all[at], one))
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
	s := &subject{names: names, since: time.Now(), unseen: map[string]bool{}, ready: map[*client.Client]bool{}}
	s.Reason = "nothing is known yet"
	changed := false
	for _, part := range parts {
		s.version += part.ResourceVersion + " "
		changed = changed || part.Generation > 1
		if part.CreationTimestamp.After(s.created) {
			s.created = part.CreationTimestamp.Time
		}
	}
	if changed {
		s.created = time.Time{}
	}
	return s
}

// policySubject returns the subject of a policy with a binding.
func policySubject(one *configuration, binding configuration) *subject {
	s := newSubject(reach.Finding{Kind: one.Kind, Name: one.Name, Binding: binding.Name}, *one, binding)
	s.counted, s.silent = key(mutatingMetric, one.Name, binding.Name), true
	if one.Kind == validating {
		s.policy, s.counted = one, key(validatingMetric, one.Name, binding.Name)
		s.silent = slices.Equal(binding.Spec.ValidationActions, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit})
	}
	constraints := one.Spec.MatchConstraints
	if constraints == nil {
		return s
	}
	if constraints.ObjectSelector != nil {
		s.labels = constraints.ObjectSelector.MatchLabels
	}
	for _, rule := range constraints.ResourceRules {
		s.rules = append(s.rules, rule.RuleWithOperations)
	}
	return s
}
