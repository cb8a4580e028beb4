package matchers

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RejectMatcher matches a refusal. Make it with BeRejected. Each method returns a matcher with one
// more condition.
type RejectMatcher struct {
	reason   metav1.StatusReason
	code     int32
	mentions []string
	resource *schema.GroupResource
	name     string
	causes   []metav1.StatusCause
}

var _ types.GomegaMatcher = &RejectMatcher{}

// WithCode adds the condition that the Status has this HTTP code.
func (m RejectMatcher) WithCode(code int32) *RejectMatcher { m.code = code; return &m }

// Mentioning adds the condition that the message contains each of these texts.
func (m RejectMatcher) Mentioning(texts ...string) *RejectMatcher {
	m.mentions = append(append([]string{}, m.mentions...), texts...)
	return &m
}

// For adds the condition that the details of the Status have this group, resource and name.
func (m RejectMatcher) For(resource schema.GroupResource, name string) *RejectMatcher {
	m.resource, m.name = &resource, name
	return &m
}

// WithCause adds the condition that the Status has a cause of this type for this field.
func (m RejectMatcher) WithCause(causeType metav1.CauseType, field string) *RejectMatcher {
	m.causes = append(append([]metav1.StatusCause{}, m.causes...), metav1.StatusCause{Type: causeType, Field: field})
	return &m
}

// Match implements types.GomegaMatcher.
func (m *RejectMatcher) Match(actual any) (bool, error) {
	r, err := resultOf(actual)
	return err == nil && m.missing(r) == "", err
}

// FailureMessage implements types.GomegaMatcher.
func (m *RejectMatcher) FailureMessage(actual any) string { return m.words().FailureMessage(actual) }

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *RejectMatcher) NegatedFailureMessage(actual any) string {
	return m.words().NegatedFailureMessage(actual)
}

func (m *RejectMatcher) words() *matcher {
	expected := "be rejected as " + cmp.Or(string(m.reason), "Unknown")
	if m.code != 0 {
		expected += fmt.Sprintf(", with code %d", m.code)
	}
	for _, text := range m.mentions {
		expected += fmt.Sprintf(", mentioning %q", text)
	}
	if m.resource != nil {
		expected += fmt.Sprintf(", for %s %q", m.resource, m.name)
	}
	for _, cause := range m.causes {
		expected += fmt.Sprintf(", with cause %s of field %s", cause.Type, cause.Field)
	}
	return &matcher{expected: expected, detail: func(r result) string {
		if missing := m.missing(r); missing != "" {
			return "but " + missing
		}
		return ""
	}}
}

// missing returns the first condition that a Result does not meet, or "".
func (m *RejectMatcher) missing(r result) string {
	status := r.Status
	details := status.Details
	if details == nil {
		details = &metav1.StatusDetails{}
	}
	switch {
	case r.Allowed():
		return "it was admitted"
	case status.Reason != m.reason:
		return "the reason is " + cmp.Or(string(status.Reason), "Unknown")
	case m.code != 0 && status.Code != m.code:
		return fmt.Sprintf("the code is %d", status.Code)
	case m.resource != nil && (details.Group != m.resource.Group || details.Kind != m.resource.Resource || details.Name != m.name):
		return fmt.Sprintf("its details are about %s %q", schema.GroupResource{Group: details.Group, Resource: details.Kind}, details.Name)
	}
	for _, text := range m.mentions {
		if !strings.Contains(status.Message, text) {
			return fmt.Sprintf("the message does not mention %q", text)
		}
	}
	for _, wanted := range m.causes {
		found := false
		for _, cause := range details.Causes {
			found = found || cause.Type == wanted.Type && cause.Field == wanted.Field
		}
		if !found {
			return fmt.Sprintf("no cause is %s of field %s", wanted.Type, wanted.Field)
		}
	}
	return ""
}
