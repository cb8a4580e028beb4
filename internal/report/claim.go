package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Conformance is what an API server's claim to a profile is worth.
type Conformance string

// The values of Conformance. Every MUST passed and nothing is missing; no MUST failed, but something is missing;
// a MUST failed.
const (
	Conformant    Conformance = "conformant"
	Partial       Conformance = "partial"
	NotConformant Conformance = "not"
)

// String returns the words for people: "not" alone says nothing.
func (c Conformance) String() string {
	if c == NotConformant {
		return "not conformant"
	}
	return string(c)
}

// Claim is the claim of an API server to a profile. docs/conformance.md has the rules.
type Claim struct {
	// Profile is the name of the profile. Kubernetes is the minor version of the API server, "1.37"; empty if it is not
	// known.
	Profile    string      `json:"profile"`
	Kubernetes string      `json:"kubernetes,omitempty"`
	Verdict    Conformance `json:"verdict"`
	// Requirements is how many requirements the profile has for the minor version, and Passed how many passed.
	Requirements int `json:"requirements"`
	Passed       int `json:"passed"`
	// Failed are the requirements that failed and count: each MUST, or every requirement of a profile without a
	// MUST. NotMet are the others that failed or are unsupported.
	Failed []string `json:"failed,omitempty"`
	NotMet []string `json:"notMet,omitempty"`
	// Missing says why the claim is only partial: "12 unsupported".
	Missing []string `json:"missing,omitempty"`
}

// String is one line: "profile webhooks of Kubernetes 1.37: partial, 250 of 262 requirements passed: 12 unsupported".
func (c Claim) String() string {
	text := fmt.Sprintf("profile %s of Kubernetes %s: %s, %d of %d requirements passed", c.Profile, c.Kubernetes, c.Verdict, c.Passed, c.Requirements)
	var more []string
	if len(c.Failed) > 0 {
		more = append(more, fmt.Sprintf("%d failed", len(c.Failed)))
	}
	if len(c.NotMet) > 0 {
		more = append(more, fmt.Sprintf("%d not met that do not count", len(c.NotMet)))
	}
	if more = append(more, c.Missing...); len(more) > 0 {
		text += ": " + strings.Join(more, ", ")
	}
	return text
}

// WriteBadge writes a badge of a claim in the JSON that https://shields.io/badges/endpoint-badge reads.
func WriteBadge(out io.Writer, c Claim) error {
	colors := map[Conformance]string{Conformant: "brightgreen", Partial: "yellow", NotConformant: "red"}
	message := c.Verdict.String()
	if c.Kubernetes != "" {
		message += ", " + c.Kubernetes
	}
	return json.NewEncoder(out).Encode(map[string]any{
		"schemaVersion": 1, "label": "Kubernetes admission: " + c.Profile, "message": message, "color": colors[c.Verdict],
	})
}
