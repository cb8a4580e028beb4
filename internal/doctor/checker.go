package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// everyRequest is the request of a finding about all of them.
const everyRequest = "every request that the webhook matches"

// checker checks one rule.
type checker struct {
	*world
	input  *Input
	rule   Rule
	report *Report
}

// severity returns the severity for the level of the rule: one step less for a webhook with failurePolicy Ignore, and for what is
// not certain.
func (c *checker) severity(h *webhook, unknown string) Severity {
	steps := 0
	if h != nil && !h.fails {
		steps++
	}
	if unknown != "" {
		steps++
	}
	return Severities()[slices.Index(framework.Levels(), c.rule.Level)].lower(steps)
}

// add adds a finding about a field of an object. Message and Severity are required. The same finding about another webhook of the
// same configuration is added to the first.
func (c *checker) add(o *object, field string, f Finding) {
	f.Rule, f.Name, f.Object, f.Field, f.Source = c.rule.ID, c.rule.Name, o.String(), field, c.rule.Source
	if f.Fix == "" {
		f.Fix = c.rule.Fix
	}
	key := [6]string{f.Rule, f.Object, f.Message, f.Request, f.Fix, string(f.Severity)}
	if at, same := c.report.merged[key]; same && f.Webhook != "" && c.report.Findings[at].Webhook != f.Webhook {
		first := &c.report.Findings[at]
		first.More = append(first.More, "webhook "+f.Webhook)
		first.Patch, first.exclude = append(first.Patch, f.Patch...), append(first.exclude, f.exclude...)
		return
	}
	if o.manifest != nil {
		f.File = o.manifest.File
		f.Line, f.Column = o.manifest.Position(field)
	}
	c.report.merged[key] = len(c.report.Findings)
	f.identify()
	c.report.Findings = append(c.report.Findings, f)
}

// webhook adds a finding about a field of a webhook.
func (c *checker) webhook(h *webhook, field string, f Finding) {
	f.Webhook = h.Name
	c.add(h.configuration, h.field(field), f)
}

// requests adds a finding about the probes for which a webhook is called, unless there are none.
func (c *checker) requests(h *webhook, field string, probes []probe, f Finding) {
	called, unknown := c.reached(h, probes)
	if len(called) == 0 {
		return
	}
	f.Unknown, f.Request = unknown, called[0].text
	f.Severity = cmp.Or(f.Severity, c.severity(h, unknown))
	for _, p := range called[1:] {
		if !slices.Contains(f.More, p.text) {
			f.More = append(f.More, p.text)
		}
	}
	fix, namespaces := fixFor(h, called)
	if len(namespaces) > 0 {
		f.exclude = []exclusion{{h, namespaces}}
		if f.Fix != "" {
			f.Fix = fix + "; or " + f.Fix
		}
	}
	if _, or, also := strings.Cut(c.rule.Fix, "], or "); f.Fix == "" && strings.HasPrefix(c.rule.Fix, byName) {
		if f.Fix = fix; also {
			f.Fix += ", or " + or
		}
	}
	c.webhook(h, field, f)
}

// undecided adds that the rule cannot be judged for an object, once.
func (c *checker) undecided(verdict framework.Verdict, o *object, reason string) {
	u := Undecided{Rule: c.rule.ID, Level: c.rule.Level, Verdict: verdict, Reason: reason}
	if o != nil {
		u.Object = o.String()
	}
	if !slices.Contains(c.report.NotChecked, u) {
		c.report.NotChecked = append(c.report.NotChecked, u)
	}
}

func (c *checker) inconclusive(o *object, reason string) {
	c.undecided(framework.Inconclusive, o, reason)
}

// waits describes what happens to a request while the webhook does not answer.
func waits(h *webhook) string {
	if h.fails {
		return "is refused while the webhook does not answer (failurePolicy Fail)"
	}
	return fmt.Sprintf("waits up to %d s while the webhook does not answer, although failurePolicy is Ignore", h.timeout)
}

// chosen returns the webhooks whose configurations are judged: all, or only the ones in files if there are files and a
// cluster.
func (w *world) chosen() []*webhook {
	return slices.DeleteFunc(slices.Clone(w.webhooks), func(h *webhook) bool { return !w.judged(h.configuration) })
}

// each checks each webhook that is judged.
func each(check func(*checker, *webhook)) func(*checker) {
	return func(c *checker) {
		for _, h := range c.chosen() {
			check(c, h)
		}
	}
}

// judged reports whether findings about an object are reported.
func (w *world) judged(o *object) bool {
	return o.manifest != nil || !w.hasFiles
}

// quote joins names.
func quote(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(all, ", ")
}
