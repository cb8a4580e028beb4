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
		Title:  "A suppression names a rule, has a reason, has not expired, and suppresses something.",
		Why:    "Otherwise it is not known whether the risk is still accepted.",
		When:   "the annotation " + IgnoreAnnotation + " is malformed, names an unknown rule, has expired, or the rule has no finding",
		Fix:    `write RULE: REASON (until YYYY-MM-DD), or remove the annotation`,
		Source: []string{"https://github.com/admissiontest/admissiontest/blob/main/docs/doctor.md"},
		Check:  func(*checker) {}, // suppress checks it, when all findings are known
	}}
}

// suppression is one part of an annotation.
type suppression struct {
	rule, reason string
	until        time.Time
	problem      string
}

func ignorePattern() *regexp.Regexp {
	return regexp.MustCompile(`^(CF-[A-Z]+-[0-9]+)\s*:\s*(.*?)\s*(?:\(until ([0-9]{4}-[0-9]{2}-[0-9]{2})\))?$`)
}

// suppressionsOf reads the annotation of an object.
func suppressionsOf(o *object, now time.Time) []suppression {
	var all []suppression
	for _, text := range strings.FieldsFunc(o.GetAnnotations()[IgnoreAnnotation], func(r rune) bool { return r == '\n' || r == ';' }) {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		found := ignorePattern().FindStringSubmatch(text)
		if found == nil {
			all = append(all, suppression{problem: fmt.Sprintf("%q is not RULE: REASON (until YYYY-MM-DD)", text)})
			continue
		}
		s := suppression{rule: found[1], reason: found[2]}
		switch {
		case !slices.ContainsFunc(All(), func(r Rule) bool { return r.ID == s.rule }):
			s.problem = fmt.Sprintf("there is no rule %s", s.rule)
		case s.reason == "":
			s.problem = fmt.Sprintf("the suppression of %s has no reason", s.rule)
		case found[3] != "":
			until, err := time.Parse(time.DateOnly, found[3])
			if s.until = until; err != nil {
				s.problem = fmt.Sprintf("%s is no date", found[3])
			} else if !now.Before(until) {
				s.problem = fmt.Sprintf("the suppression of %s expired on %s", s.rule, found[3])
			}
		}
		all = append(all, s)
	}
	return all
}

// suppress moves the findings that annotations suppress, and adds findings about annotations.
func (w *world) suppress(input *Input, report *Report) {
	report.merged = map[[5]string]int{} // suppressions change the indices
	at := slices.IndexFunc(report.Rules, func(r Rule) bool { return r.ID == "CF-SEM-7" })
	for _, o := range slices.Concat(w.byKind[validatingConfigurations], w.byKind[mutatingConfigurations], w.policies, w.bindings) {
		if !w.judged(o) {
			continue
		}
		for _, s := range suppressionsOf(o, input.Now) {
			used := false
			if s.problem == "" {
				report.Findings = slices.DeleteFunc(report.Findings, func(f Finding) bool {
					if f.Rule != s.rule || f.Object != o.String() {
						return false
					}
					used = true
					report.Suppressed = append(report.Suppressed, f)
					return true
				})
				report.Undecided = slices.DeleteFunc(report.Undecided, func(u Undecided) bool {
					suppressed := u.Rule == s.rule && u.Object == o.String()
					used = used || suppressed
					return suppressed
				})
			}
			checked := slices.ContainsFunc(report.Rules, func(r Rule) bool { return r.ID == s.rule })
			if s.problem == "" && !used && checked {
				s.problem = fmt.Sprintf("%s has no finding that it could suppress", s.rule)
			}
			if s.problem != "" && at >= 0 {
				c := &checker{world: w, input: input, rule: report.Rules[at], report: report}
				c.add(o, "metadata.annotations["+IgnoreAnnotation+"]", Finding{Severity: Warning, Message: s.problem})
			}
		}
	}
}
