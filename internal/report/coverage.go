package report

import "fmt"

// Coverage says what the cases of one PolicyTest never decide. Its keys are frozen.
type Coverage struct {
	// Name is the name of the PolicyTest, and Cases the number of its cases that were observed.
	Name  string `json:"name"`
	Cases int    `json:"cases"`
	// Parts is the number of parts of the policies: policies, operations, resources, bindings, params, variables, and booleans in
	// expressions. Decided of them were met, or were true and false, in cases. Unknown of them could not be observed.
	Parts   int `json:"parts"`
	Decided int `json:"decided"`
	Unknown int `json:"unknown,omitempty"`
	// Undecided are the others, and what is unknown. A part that is in another one is left out if it says no more.
	Undecided []Undecided `json:"undecided,omitempty"`
}

// Undecided is a part of a policy that no case decides, or that could not be observed.
type Undecided struct {
	// File, Line and Column are where it is. Line is 0 if that is not known.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Policy is the kind and name of the policy, and Field the field, for a binding or param its own.
	Policy string `json:"policy"`
	Field  string `json:"field"`
	// Never says what never happens, and Hint which case would decide it.
	Never string `json:"never,omitempty"`
	Hint  string `json:"hint,omitempty"`
	// Unknown says why it could not be observed. Empty if it was.
	Unknown string `json:"unknown,omitempty"`
}

// coverage writes what the cases of PolicyTests never decide.
func (p *printer) coverage(all []Coverage) {
	for _, c := range all {
		unknown := ""
		if c.Unknown > 0 {
			unknown = fmt.Sprintf(", %d unknown", c.Unknown)
		}
		p.line("")
		p.line("coverage of the policies of %s by %d cases: %d of %d parts decided%s", printable(c.Name), c.Cases, c.Decided, c.Parts, unknown)
		for _, u := range c.Undecided {
			what := u.Never
			if u.Unknown != "" {
				what = "unknown: " + u.Unknown
			}
			p.line("  %s:%d:%d  %s", printable(u.File), u.Line, u.Column, printable(what))
			p.line("    in %s of %s%s", printable(u.Field), printable(u.Policy), printable(prefixed(": ", u.Hint)))
		}
	}
}

func prefixed(by, text string) string {
	if text == "" {
		return ""
	}
	return by + text
}
