package engine

import (
	"github.com/admissiontest/admissiontest/internal/redact"
)

// What a report does not show is hidden where a text is made of values: see judge.Judge and package evidence.
// The texts of errors are left, in which a server, a webhook or a file repeats them.

// newSecrets returns an empty set, or nil if everything is shown.
func (r *run) newSecrets() *redact.Set {
	if r.options.ShowSecrets {
		return nil
	}
	return &redact.Set{}
}

// noteSecrets returns a set for the values that the outcome of a scenario of that name does not show, and
// remembers it for texts.
func (r *run) noteSecrets(name string) *redact.Set {
	secrets := r.newSecrets()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secrets == nil {
		r.secrets = map[string]*redact.Set{}
	}
	r.secrets[name] = secrets
	return secrets
}

// texts returns what replaces each text in the outcome of a scenario before anything else gets it: the report
// and the progress. A text does not have what is not shown, and has the names that the user wrote instead of
// those that the run has made of them.
func (r *run) texts(name string) func(text string) string {
	r.mu.Lock()
	secrets, c := r.secrets[name], r.cases[name]
	r.mu.Unlock()
	if secrets == nil {
		secrets = r.newSecrets() // the scenario was not read
	}
	if c == nil {
		return secrets.Text
	}
	names := c.Names()
	return func(text string) string { return names(secrets.Text(text)) }
}
