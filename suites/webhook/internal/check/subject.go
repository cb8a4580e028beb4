// Package check prepares a Subject of the webhook suite, sends AdmissionReviews to its webhooks, and applies their
// answers. The rules are in package rules.
package check

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
)

// Kind is whether a webhook mutates.
type Kind string

// The kinds of webhooks.
const (
	Mutating   Kind = "mutating"
	Validating Kind = "validating"
)

// Subject describes the webhooks to check. The fields of it and of the types below are documented in suites/webhook.
type Subject struct {
	Name           string
	Handler        http.Handler
	URL            string
	CA             []byte
	ServerName     string
	Replicas       []string
	Process        []string
	Configurations []Manifest
	Kind           Kind
	Allow, Reject  []Sample
	Untouched      []Sample
	Volatile       []string
	Enforced       []string
	NameSensitive  string
	Egress         string
	Tokens         *Issuer
	Effects        func() any
	Stall          func() (resume func())
	APIServer      APIServer
}

// Manifest is a Kubernetes object, or a file with objects. Set one of the fields.
type Manifest struct {
	File   string
	Object runtime.Object
}

// Sample is an object, and what the webhooks must do with it. Set File or Object.
type Sample struct {
	Manifest
	Operation   string
	Subresource string
	Old         Manifest
	Versions    []Manifest
	User        framework.User
	Message     string
	Fix         string
}

// Files returns a Manifest for each file that matches one of the patterns of path/filepath.Glob. A pattern that
// matches nothing is a file that cannot be read, which is reported.
func Files(patterns ...string) []Manifest {
	var all []Manifest
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			names = []string{pattern}
		}
		for _, name := range names {
			all = append(all, Manifest{File: name})
		}
	}
	return all
}

// name returns a name of the manifest for messages.
func (m Manifest) name() string {
	if m.File != "" {
		return m.File
	}
	return fmt.Sprintf("%T", m.Object)
}

// SampleFiles is Files for samples, with one object in each file. A file NAME.fix.yaml is the Fix of NAME.yaml.
func SampleFiles(patterns ...string) []Sample {
	var all []Sample
	for _, each := range Files(patterns...) {
		if !strings.HasSuffix(each.File, ".fix.yaml") {
			all = append(all, Sample{Manifest: each})
		}
	}
	return slices.Clip(all)
}
