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
	for _, u := range r.NotChecked {
		fmt.Fprintf(&out, "%-12s  %s  %s\n  %s\n\n", u.Verdict, u.Rule, u.Object, u.Reason)
	}
	s := r.Summary
	fmt.Fprintf(&out, "%d webhooks, %d policies: %d errors, %d warnings, %d notes, %d suppressed, %d inconclusive\n", r.Webhooks, r.Policies, s.Errors, s.Warnings, s.Notes, s.Suppressed, s.Inconclusive)
	return out.String()
}

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
	for _, more := range f.More {
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
	// Suppressed are the others, and the pairs of a rule and an object that could not be judged in an earlier report either.
	Suppressed int `json:"suppressed"`
	// Inconclusive is the number of pairs of a rule and an object that could not be judged.
	Inconclusive int `json:"inconclusive"`
}

// summarize sets the Summary, and the patches that depend on what else is found.
func (r *Report) summarize() {
	r.setPatches()
	count := map[Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	inconclusive := 0
	for _, u := range r.NotChecked {
		if u.Verdict == framework.Inconclusive {
			inconclusive++
		}
	}
	r.Summary = Summary{count[Error], count[Warning], count[Note], len(r.Suppressed) + r.accepted, inconclusive}
}
