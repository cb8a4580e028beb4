package engine

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/admissiontest/admissiontest/internal/runid"
)

// The refusals of policies and webhooks name them
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go,
// pkg/admission/plugin/webhook/errors/statuserror.go).
var (
	refusedByPolicy  = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding`)
	refusedByWebhook = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
)

// nothingAboutAdmission returns why a failure says nothing about what the scenario tests, or
// "": it is one of the infrastructure, or another client's policy or webhook refused. An API
// server without other clients that names a wrong one is at fault.
func (c *scenarioCase) nothingAboutAdmission(f *failure) string {
	if cause := f.infrastructure(); cause != "" || c.target.Optional().Confined == nil {
		return cause
	}
	message := ""
	if f.err != nil {
		message = f.err.Error()
	} else if len(f.mismatches) > 0 {
		message = f.result.Status.Message
	}
	if found := refusedByPolicy.FindStringSubmatch(message); found != nil && !c.mentions(found[1]) {
		return fmt.Sprintf("a policy of another client refused the request: %s", found[1])
	}
	if found := refusedByWebhook.FindStringSubmatch(message); found != nil && !c.mentions(found[1]) {
		return fmt.Sprintf("a webhook of another client refused the request: %s", found[1])
	}
	return ""
}

// mentions reports whether a policy or webhook can be one of the scenario: its name has the
// ID of the scenario, or is in its manifests or expectations.
func (c *scenarioCase) mentions(name string) bool {
	if runid.Has(name, c.id) {
		return true
	}
	text, err := json.Marshal([]any{c.given, c.scenario.Spec})
	return err != nil || strings.Contains(string(text), name)
}
