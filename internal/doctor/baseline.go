package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework"
)

// ErrBaseline marks a file that is no Report.
var ErrBaseline = errors.New("this is no report of doctor")

// ReadReport reads a Report that was written as JSON. It returns an ErrBaseline for anything else.
func ReadReport(text []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBaseline, err)
	}
	if r.Kind != reportKind || r.APIVersion != apiVersion {
		return nil, fmt.Errorf("%w: kind is %q %q, want %q %q: write one with -o json", ErrBaseline, r.APIVersion, r.Kind, apiVersion, reportKind)
	}
	return &r, nil
}

// Accept moves the findings that an earlier Report has too to Suppressed, removes what it could not judge either, and returns the
// findings that are gone. Of findings, only fingerprints count.
func (r *Report) Accept(earlier *Report) (gone []Finding) {
	in := func(all []Finding) func(Finding) bool {
		return func(f Finding) bool {
			return slices.ContainsFunc(all, func(other Finding) bool { return other.Fingerprint == f.Fingerprint })
		}
	}
	gone = slices.DeleteFunc(slices.Clone(earlier.Findings), in(r.Findings))
	before := len(r.NotChecked)
	r.NotChecked = slices.DeleteFunc(r.NotChecked, func(u Undecided) bool {
		return u.Verdict == framework.Inconclusive && slices.Contains(earlier.NotChecked, u)
	})
	r.accepted = before - len(r.NotChecked)
	r.suppress(in(earlier.Findings))
	return gone
}
