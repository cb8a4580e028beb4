package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// Severity says how bad a Finding is.
type Severity string

// The severities. A rule of level MUST gives errors, SHOULD warnings, and MAY notes. What is less certain, or has less
// effect, is one step less.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Severities returns all severities, the worst first.
func Severities() []Severity { return []Severity{Error, Warning, Note} }

// AtLeast reports whether a severity is as bad as another one, or worse.
func (s Severity) AtLeast(other Severity) bool { return s.rank() <= other.rank() }

func (s Severity) rank() int { return slices.Index(Severities(), s) }

// lower returns the severity that is a number of steps less, at least Note.
func (s Severity) lower(steps int) Severity {
	return Severities()[min(s.rank()+steps, len(Severities())-1)]
}

// Finding is one violation of a rule.
type Finding struct {
	// Rule is the ID of the rule, Name its long name.
	Rule string `json:"rule"`
	Name string `json:"name"`
	// Severity says how bad it is.
	Severity Severity `json:"severity"`
	// Object is the kind and name of the configuration, policy or binding.
	Object string `json:"object"`
	// Webhook is the name of the webhook in the configuration. Empty if the finding is not about one webhook.
	Webhook string `json:"webhook,omitempty"`
	// File, Line and Column are where the field is in the manifest. Empty for an object of a cluster.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Field is the path of the field: "webhooks[0].timeoutSeconds".
	Field string `json:"field"`
	// Request is a request that is affected: "UPDATE leases/kube-scheduler in kube-system". Empty if the finding is
	// about every request that the webhook or policy matches.
	Request string `json:"request,omitempty"`
	// More are the other affected requests, and the other webhooks of the configuration for which the same holds.
	More []string `json:"more,omitempty"`
	// Message says what can happen.
	Message string `json:"message"`
	// Unknown says why it is not certain. Empty if it is.
	Unknown string `json:"unknown,omitempty"`
	// Fix says what to change. Patch is the change as a JSON Patch of the object, if the change is mechanical. The patches of all
	// findings about an object can be applied one after the other, in any order.
	Fix   string      `json:"fix"`
	Patch []Operation `json:"patch,omitempty"`
	// Source has the addresses of issues, code and documentation.
	Source []string `json:"source"`
	// Fingerprint identifies the finding in a baseline. It depends on the rule, object, webhook and field without indices, not on
	// lines.
	Fingerprint string `json:"fingerprint"`

	exclude  []exclusion
	affected []probe // by a policy
}

// exclusion says that a finding is gone if a webhook leaves out namespaces.
type exclusion struct {
	webhook    *webhook
	namespaces []string
}

// Operation is an operation of a JSON Patch.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Position returns FILE:LINE:COLUMN, or "" for an object of a cluster.
func (f Finding) Position() string {
	if f.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// String returns one line: severity, rule, object, field and message.
func (f Finding) String() string {
	text := fmt.Sprintf("%s %s %s %s: %s", f.Severity, f.Rule, f.Object, f.Field, f.Message)
	if f.Request != "" {
		text += " (" + f.Request + ")"
	}
	return text
}

// identify sets the fingerprint.
func (f *Finding) identify() {
	field := regexp.MustCompile(`[0-9]`).ReplaceAllString(f.Field, "")
	sum := sha256.Sum256([]byte(strings.Join([]string{f.Rule, f.Object, f.Webhook, field, f.Message}, "\x00")))
	f.Fingerprint = hex.EncodeToString(sum[:12])
}

// Undecided is a rule that could not be judged for an object, or does not apply.
type Undecided struct {
	// Rule is the ID of the rule, Level its level.
	Rule  string          `json:"rule"`
	Level framework.Level `json:"level"`
	// Verdict is inconclusive if it was not observed, unsupported if the rule cannot apply, and skipped if the
	// operator did not ask for it.
	Verdict framework.Verdict `json:"verdict"`
	// Object is the kind and name of the configuration, policy or binding. Empty if it holds for all.
	Object string `json:"object,omitempty"`
	// Reason says what is missing.
	Reason string `json:"reason"`
}
