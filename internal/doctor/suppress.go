package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
)

// IgnoreAnnotation suppresses rules for a configuration, policy or binding:
//
//	admissiontest.dev/ignore: "CF-BLOCK-5: the backend is slow (until 2027-01-01)"
//
// Several are on lines of their own, or separated by semicolons. A reason is required, the date is not.
const IgnoreAnnotation = "admissiontest.dev/ignore"

func suppressionRules() []Rule {
	return []Rule{{
		ID: "CF-SEM-7", Name: "suppressions-are-current", Level: framework.Should,
		Fix:    `write RULE: REASON (until YYYY-MM-DD), or remove the annotation`,
		Source: []string{"https://github.com/admissiontest/admissiontest/blob/main/docs/doctor.md"},
		Check:  func(*checker) {}, // suppress checks it, when all findings are known
	}}
}

// suppression returns the rule of one part of an annotation, and what is wrong with the part.
func suppression(text string, now time.Time) (id, problem string) {
	found := regexp.MustCompile(`^(CF-[A-Z]+-[0-9]+)\s*:\s*(.*?)\s*(?:\(until ([0-9]{4}-[0-9]{2}-[0-9]{2})\))?$`).FindStringSubmatch(text)
	if found == nil {
		return "", fmt.Sprintf("%q is not RULE: REASON (until YYYY-MM-DD)", text)
	}
	id = found[1]
	until, err := time.Parse(time.DateOnly, found[3])
	switch {
	case !slices.ContainsFunc(All(), func(r Rule) bool { return r.ID == id }):
		problem = fmt.Sprintf("there is no rule %s", id)
	case found[2] == "":
		problem = fmt.Sprintf("the suppression of %s has no reason", id)
	case found[3] == "":
	case err != nil:
		problem = fmt.Sprintf("%s is no date", found[3])
	case !now.Before(until):
		problem = fmt.Sprintf("the suppression of %s expired on %s", id, found[3])
	}
	return id, problem
}

// suppress moves the findings that annotations suppress, and adds findings about annotations.
func (w *world) suppress(input *Input, rules []Rule, report *Report) {
	report.merged = map[[6]string]int{} // suppressions change the indices
	for _, o := range w.given {
		for _, text := range strings.FieldsFunc(o.GetAnnotations()[IgnoreAnnotation], func(r rune) bool { return r == '\n' || r == ';' }) {
			if text = strings.TrimSpace(text); text == "" {
				continue
			}
			id, problem := suppression(text, input.Now)
			selected := slices.ContainsFunc(rules, func(r Rule) bool { return r.ID == id })
			if problem == "" && !report.suppressRule(id, o.String()) && selected {
				problem = fmt.Sprintf("%s has no finding that it could suppress", id)
			}
			at := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == "CF-SEM-7" })
			if problem != "" && at >= 0 {
				c := &checker{world: w, input: input, rule: rules[at], report: report}
				c.add(o, "metadata.annotations["+IgnoreAnnotation+"]", Finding{Severity: Warning, Message: problem})
			}
		}
	}
}

// suppressRule suppresses a rule for an object. It reports whether there is something to suppress.
func (r *Report) suppressRule(id, object string) bool {
	before := len(r.Findings) + len(r.NotChecked)
	r.suppress(func(f Finding) bool { return f.Rule == id && f.Object == object })
	r.NotChecked = slices.DeleteFunc(r.NotChecked, func(u Undecided) bool { return u.Rule == id && u.Object == object })
	return len(r.Findings)+len(r.NotChecked) < before
}

// suppress moves findings to Suppressed.
func (r *Report) suppress(which func(Finding) bool) {
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		suppressed := which(f)
		if suppressed {
			r.Suppressed = append(r.Suppressed, f)
		}
		return suppressed
	})
	r.summarize()
}
