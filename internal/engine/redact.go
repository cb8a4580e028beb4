package engine

import (
	"github.com/admissiontest/admissiontest/internal/redact"
)

// What a report does not show is hidden where a string is made of values: see judge.Judge and package evidence.
// The texts of errors are left, in which a server, a webhook or a file repeats them.

// texts returns what replaces each text in the outcome of a scenario before anything else gets it: the report
// and the progress. A string does not have what is not shown, and has the names that the user wrote instead of
// those that the run has made of them.
func (r *run) texts(name string) func(text string) string {
	r.mu.Lock()
	c := r.cases[name]
	r.mu.Unlock()
	if c == nil { // the scenario was not read
		return redact.Text
	}
	return c.Texts()
}
