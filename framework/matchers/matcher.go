package matchers

import (
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/onsi/gomega/format"
	"github.com/onsi/gomega/types"
)

// result is the value that a matcher checks.
type result struct {
	framework.Result
	// plugin is nil for a framework.Result.
	plugin *harness.Result
}

// resultOf converts the argument of Expect.
func resultOf(actual any) (result, error) {
	switch r := actual.(type) {
	case harness.Result:
		return result{r.Result, &r}, nil
	case *harness.Result:
		if r != nil {
			return result{r.Result, r}, nil
		}
	case framework.Result:
		return result{Result: r}, nil
	case *framework.Result:
		if r != nil {
			return result{Result: *r}, nil
		}
	}
	return result{}, fmt.Errorf("expected a harness.Result or a framework.Result, got %T", actual)
}

// errNoPlugin is the error of a matcher that needs a harness.Result.
const errNoPlugin = misuseError("only a harness.Result, of a plugin in this process, has this")

// matcher is a check of a Result and its texts.
type matcher struct {
	// expected completes "expected the request to ".
	expected string
	match    func(result) (bool, error)
	// detail, if set, returns what differs in a Result that does not match.
	detail func(result) string
}

var _ types.GomegaMatcher = &matcher{}

// Match implements types.GomegaMatcher.
func (m *matcher) Match(actual any) (bool, error) {
	r, err := resultOf(actual)
	if err != nil {
		return false, err
	}
	return m.match(r)
}

// FailureMessage implements types.GomegaMatcher.
func (m *matcher) FailureMessage(actual any) string {
	return m.text(actual, "Expected the request to ")
}

// NegatedFailureMessage implements types.GomegaMatcher.
func (m *matcher) NegatedFailureMessage(actual any) string {
	return m.text(actual, "Expected the request not to ")
}

func (m *matcher) text(actual any, begin string) string {
	r, err := resultOf(actual)
	if err != nil {
		return err.Error()
	}
	lines := []string{begin + m.expected}
	if m.detail != nil {
		if detail := m.detail(r); detail != "" {
			lines = append(lines, detail)
		}
	}
	return strings.Join(append(lines, format.IndentString(r.describe(), 1)), "\n")
}

func (r result) describe() string {
	if r.plugin != nil {
		return r.plugin.String()
	}
	text := fmt.Sprintf("actual:   %d %s", r.Status.Code, r.Status.Reason)
	if r.Status.Message != "" {
		text += ": " + r.Status.Message
	}
	for _, warning := range r.Warnings {
		text += "\nwarning:  " + warning
	}
	return text
}

// misuseError is the error of a matcher that cannot check its argument.
type misuseError string

func (r misuseError) Error() string { return string(r) }
