package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Defaults of the API (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
const (
	defaultTimeout     = 10
	defaultServicePort = 443
)

// webhook is a webhook of a configuration. MutatingWebhook has the fields of ValidatingWebhook too.
type webhook struct {
	admissionregistrationv1.MutatingWebhook
	configuration *object
	index         int
	mutates       bool
	fails         bool // failurePolicy is Fail
	timeout       int32
	backend       *backend // nil for a URL
}

// key identifies the webhook in Findings of package reach.
func (h *webhook) key() string {
	return h.configuration.GetKind() + " " + h.configuration.GetName() + " " + h.Name
}

// field returns the path of a field of the webhook.
func (h *webhook) field(path string) string {
	return fmt.Sprintf("webhooks[%d].%s", h.index, path)
}

// pointer returns the JSON pointer of a field of the webhook.
func (h *webhook) pointer(path string) string { return fmt.Sprintf("/webhooks/%d/%s", h.index, path) }

// address identifies what the API server calls, without the path.
func (h *webhook) address() string {
	if h.backend != nil {
		return h.backend.String()
	}
	return ptr.Deref(h.ClientConfig.URL, "")
}

// exact reports whether matchPolicy is Exact.
func (h *webhook) exact() bool {
	return h.MatchPolicy != nil && *h.MatchPolicy == admissionregistrationv1.Exact
}

// readWebhooks adds the webhooks of a configuration.
func (w *world) readWebhooks(o *object) error {
	var fields struct {
		Webhooks []admissionregistrationv1.MutatingWebhook `json:"webhooks"`
	}
	text, err := json.Marshal(o.Object)
	if err == nil {
		err = json.Unmarshal(text, &fields) // its error names the field, except for base64
	}
	if err != nil {
		return errors.New(strings.Replace(err.Error(), "illegal base64", "a caBundle is not in base64, or a placeholder: illegal base64", 1))
	}
	for i, one := range fields.Webhooks {
		for _, selector := range []*metav1.LabelSelector{one.NamespaceSelector, one.ObjectSelector} {
			if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
				return fmt.Errorf("webhooks[%d]: %w", i, err)
			}
		}
		for j, rule := range one.Rules {
			if len(rule.Operations) == 0 {
				return fmt.Errorf("webhooks[%d].rules[%d] has no operations", i, j)
			}
		}
		h := &webhook{
			MutatingWebhook: one, configuration: o, index: i, mutates: o.GetKind() == "MutatingWebhookConfiguration",
			fails:   one.FailurePolicy == nil || *one.FailurePolicy == admissionregistrationv1.Fail,
			timeout: ptr.Deref(one.TimeoutSeconds, defaultTimeout),
		}
		if service := one.ClientConfig.Service; service != nil {
			h.backend = w.backendOf(service.Namespace, service.Name)
		}
		w.webhooks = append(w.webhooks, h)
	}
	return nil
}

// hasWildcard reports whether a part of a rule has a *.
func hasWildcard(text string) bool { return slices.Contains([]rune(text), '*') }

// operations returns the operations of a rule.
func operations(rule admissionregistrationv1.RuleWithOperations) []string {
	var all []string
	for _, operation := range rule.Operations {
		if operation == admissionregistrationv1.OperationAll {
			return []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}
		}
		all = append(all, string(operation))
	}
	return all
}
