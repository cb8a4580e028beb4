package doctor

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// Text returns a report for people: the findings, what could not be judged, and a summary.
func (r *Report) Text() string {
	var out strings.Builder
	for _, f := range r.Findings {
		f.write(&out)
	}
	for _, u := range r.Undecided {
		if u.Verdict == framework.Inconclusive {
			fmt.Fprintf(&out, "%-12s  %s  %s\n  %s\n\n", u.Verdict, u.Rule, u.Object, u.Reason)
		}
	}
	for _, u := range r.Undecided {
		if u.Verdict != framework.Inconclusive {
			fmt.Fprintf(&out, "%-12s  %s  %s\n", u.Verdict, u.Rule, u.Reason)
		}
	}
	s := r.Summary()
	fmt.Fprintf(&out, "%d webhooks, %d policies: %d errors, %d warnings, %d notes, %d suppressed, %d inconclusive\n", r.Webhooks, r.Policies, s.Errors, s.Warnings, s.Notes, s.Suppressed, s.Inconclusive)
	return out.String()
}

// mostMore is the number of further requests that are printed.
const mostMore = 4

func (f Finding) write(out *strings.Builder) {
	fmt.Fprintf(out, "%s  %s %s  %s  %s\n", f.Severity, f.Rule, f.Name, f.Object, f.Field)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %-8s  %s\n", label, strings.ReplaceAll(text, "\n", "\n            "))
		}
	}
	line("at", f.Position())
	line("webhook", f.Webhook)
	line("request", f.Request)
	for i, more := range f.More {
		if i == mostMore && len(f.More) > mostMore+1 && !strings.Contains(more, " -> ") {
			line("and", fmt.Sprintf("%d more", len(f.More)-i))
			break
		}
		line("and", more)
	}
	line("what", f.Message)
	line("unknown", f.Unknown)
	line("fix", f.Fix)
	if len(f.Patch) > 0 {
		patch, err := json.Marshal(f.Patch)
		if err == nil {
			line("patch", string(patch))
		}
	}
	line("source", f.Source[0])
	out.WriteString("\n")
}

// Summary has the numbers of a report.
type Summary struct {
	// Errors, Warnings and Notes are the findings that nothing suppresses.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
	// Suppressed are the others.
	Suppressed int `json:"suppressed"`
	// Inconclusive is the number of pairs of a rule and an object that could not be judged.
	Inconclusive int `json:"inconclusive"`
}

// Summary returns the numbers of the report.
func (r *Report) Summary() Summary {
	s := Summary{Suppressed: len(r.Suppressed)}
	for _, f := range r.Findings {
		switch f.Severity {
		case Error:
			s.Errors++
		case Warning:
			s.Warnings++
		default:
			s.Notes++
		}
	}
	for _, u := range r.Undecided {
		if u.Verdict == framework.Inconclusive {
			s.Inconclusive++
		}
	}
	return s
}

// Document is a Report as JSON. Its keys are frozen.
type Document struct {
	APIVersion     string      `json:"apiVersion"`
	Kind           string      `json:"kind"`
	Configurations int         `json:"configurations"`
	Webhooks       int         `json:"webhooks"`
	Policies       int         `json:"policies"`
	Rules          []string    `json:"rules"`
	Summary        Summary     `json:"summary"`
	Findings       []Finding   `json:"findings"`
	Suppressed     []Finding   `json:"suppressed"`
	NotChecked     []Undecided `json:"notChecked"`
}

// Document returns the report for JSON.
func (r *Report) Document() Document {
	d := Document{
		APIVersion: "admissiontest.dev/v1alpha1", Kind: "DoctorReport", Configurations: r.Configurations, Webhooks: r.Webhooks, Policies: r.Policies, Summary: r.Summary(),
		Rules: []string{}, Findings: append([]Finding{}, r.Findings...), Suppressed: append([]Finding{}, r.Suppressed...), NotChecked: append([]Undecided{}, r.Undecided...),
	}
	for _, rule := range r.Rules {
		d.Rules = append(d.Rules, rule.ID)
	}
	return d
}
