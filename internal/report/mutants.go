package report

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// Mutants says which changes of the policies of one PolicyTest its cases do not notice. Its keys are frozen.
type Mutants struct {
	// Name is the name of the PolicyTest.
	Name string `json:"name"`
	// Possible is the number of mutants that the policies have. If not all ran, those at equal distances did. Seed is 0.
	Possible int    `json:"possible"`
	Seed     uint64 `json:"seed"`
	// Noticed is the number of mutants for which a case failed, Refused of those that the API server does not accept, because of a
	// wrong type for instance, and Unjudged of those with which a case could not be judged. Reason is that of the first of these.
	Noticed  int    `json:"noticed"`
	Refused  int    `json:"refused,omitempty"`
	Unjudged int    `json:"unjudged,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Survivors are the mutants with which all cases passed.
	Survivors []Survivor `json:"survivors,omitempty"`
}

// Survivor is a mutant that no case notices.
type Survivor struct {
	// File, Line and Column are where the change is. Line is 0 if that is not known.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Field is the field of the policy or binding. Old and New are the changed part, before and after. New is "" if it is dropped.
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
	// Case has the fields of a case of the PolicyTest that notices the change. It is nil if none was found: then the changed policy
	// possibly means the same.
	Case map[string]any `json:"case,omitempty"`
}

// caseText returns the case as YAML for the list cases, below a line that says what it is.
func (s Survivor) caseText() string {
	text, err := yaml.Marshal([]map[string]any{s.Case})
	if err != nil || s.Case == nil {
		return ""
	}
	return "this case notices it:\n" + string(text)
}

// mutants writes the mutants that no case notices.
func (p *printer) mutants(all []Mutants) {
	for _, m := range all {
		p.line("")
		p.line("mutants of the policies of %s: %d of %d ran: %d noticed, %d survived, %d refused by the API server, %d not judged", printable(m.Name),
			m.Noticed+len(m.Survivors)+m.Refused+m.Unjudged, m.Possible, m.Noticed, len(m.Survivors), m.Refused, m.Unjudged)
		for _, s := range m.Survivors {
			change := s.Old + " -> " + s.New
			if s.New == "" {
				change = "without " + s.Old
			}
			p.line("  %s:%d:%d  %s  (%s)", printable(s.File), s.Line, s.Column, printable(change), printable(s.Field))
			for line := range strings.Lines(s.caseText()) {
				p.line("    %s", printable(strings.TrimRight(line, "\n")))
			}
		}
		if len(m.Survivors) > 0 {
			p.line("  for each survivor, add a case that fails with the change, unless the changed policy means the same")
		}
		if m.Reason != "" {
			p.line("  not judged: %s", printable(m.Reason))
		}
	}
}
