package report

import "slices"

// WithTexts returns the outcome with each text replaced that can repeat what a file, a server or a
// webhook says.
func (o Outcome) WithTexts(replace func(text string) string) Outcome {
	o.Reason, o.NotServed, o.Cause = replace(o.Reason), replace(o.NotServed), replace(o.Cause)
	if o.Evidence != nil {
		evidence := o.Evidence.withTexts(replace)
		o.Evidence = &evidence
	}
	return o
}

func (e Evidence) withTexts(replace func(text string) string) Evidence {
	e.Action, e.Response = replace(e.Action), replace(e.Response)
	e.RefusedBy, e.Details = replace(e.RefusedBy), replace(e.Details)
	e.Causes, e.Warnings = replaced(e.Causes, replace), replaced(e.Warnings, replace)
	e.Decisions = replaced(e.Decisions, func(d Decision) Decision {
		d.Subject, d.Text = replace(d.Subject), replace(d.Text)
		return d
	})
	e.Mismatches = replaced(e.Mismatches, func(m Mismatch) Mismatch {
		m.Path, m.Expected, m.Actual = replace(m.Path), replace(m.Expected), replace(m.Actual)
		return m
	})
	e.Timeline = replaced(e.Timeline, func(t TimelineEntry) TimelineEntry {
		t.Summary, t.Request, t.Answer = replace(t.Summary), replace(t.Request), replace(t.Answer)
		t.Patch = replaced(t.Patch, func(p PatchOperation) PatchOperation {
			p.Path, p.Value = replace(p.Path), replace(p.Value)
			return p
		})
		return t
	})
	return e
}

// replaced returns a copy of a list with each item replaced.
func replaced[T any](list []T, replace func(T) T) []T {
	list = slices.Clone(list)
	for i := range list {
		list[i] = replace(list[i])
	}
	return list
}
