package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// baselineKind is the kind of a Baseline.
const baselineKind = "DoctorBaseline"

// Baseline has the findings that are accepted for now, so that only new ones count.
type Baseline struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Findings   []Accepted `json:"findings"`
}

// Accepted is a finding of a Baseline. Only the fingerprint counts.
type Accepted struct {
	Fingerprint string `json:"fingerprint"`
	Rule        string `json:"rule"`
	Object      string `json:"object"`
	Webhook     string `json:"webhook,omitempty"`
	Message     string `json:"message"`
}

// ErrBaseline marks a file that is no Baseline.
var ErrBaseline = errors.New("this is no baseline of doctor")

// ReadBaseline reads what Report.Baseline returned, as JSON. It returns an ErrBaseline for anything else.
func ReadBaseline(text []byte) (Baseline, error) {
	var b Baseline
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("%w: %w", ErrBaseline, err)
	}
	if b.Kind != baselineKind || b.APIVersion != "admissiontest.dev/v1alpha1" {
		return b, fmt.Errorf("%w: kind is %q %q, want %q %q: write one with --write-baseline", ErrBaseline, b.APIVersion, b.Kind, "admissiontest.dev/v1alpha1", baselineKind)
	}
	return b, nil
}

// Baseline returns the findings of the report.
func (r *Report) Baseline() Baseline {
	b := Baseline{APIVersion: "admissiontest.dev/v1alpha1", Kind: baselineKind, Findings: []Accepted{}}
	for _, f := range r.Findings {
		b.Findings = append(b.Findings, Accepted{f.Fingerprint, f.Rule, f.Object, f.Webhook, f.Message})
	}
	return b
}

// Accept moves the findings of a Baseline to Suppressed, and returns the accepted ones that are gone.
func (r *Report) Accept(b Baseline) (gone []Accepted) {
	found := map[string]bool{}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
		accepted := slices.ContainsFunc(b.Findings, func(a Accepted) bool { return a.Fingerprint == f.Fingerprint })
		if accepted {
			found[f.Fingerprint] = true
			r.Suppressed = append(r.Suppressed, f)
		}
		return accepted
	})
	for _, a := range b.Findings {
		if !found[a.Fingerprint] {
			gone = append(gone, a)
		}
	}
	return gone
}
