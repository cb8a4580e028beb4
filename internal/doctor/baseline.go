package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// Accept moves the findings that an earlier Report has too to Suppressed, and returns the findings that are
// gone. Only fingerprints count.
func (r *Report) Accept(earlier *Report) (gone []Finding) {
	in := func(all []Finding) func(Finding) bool {
		return func(f Finding) bool {
			return slices.ContainsFunc(all, func(other Finding) bool { return other.Fingerprint == f.Fingerprint })
		}
	}
	gone = slices.DeleteFunc(slices.Clone(earlier.Findings), in(r.Findings))
	r.suppress(in(earlier.Findings))
	return gone
}
