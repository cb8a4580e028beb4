package policy_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// written returns manifests in a file.
func written(t *testing.T, text string) policy.Manifests {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.Files(file)
}

const comparedPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  validations:
  - expression: EXPRESSION
    message: images come from our registry
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
`

const podOf = `{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {automountServiceAccountToken: false, containers: [{name: a, image: IMAGE}]}}`

func policyOf(name, expression string) string {
	return strings.NewReplacer("NAME", name, "EXPRESSION", expression).Replace(comparedPolicy)
}

// TestDifferences: a policy that forgets init containers, or that compares with a shorter prefix, differs from the first one. Nothing is
// compared with a webhook that does not decide, or that says something else each time.
func TestDifferences(t *testing.T) {
	whole := `"object.spec.containers.all(c, c.image.startsWith('r.example.com/')) && object.spec.?initContainers.orValue([]).all(c, c.image.startsWith('r.example.com/'))"`
	side := func(name, expression string) policy.Subject {
		return policy.Subject{Policies: written(t, policyOf(name, expression))}
	}
	samples := side("images", whole)
	samples.Good = written(t, strings.NewReplacer("NAME", "good", "IMAGE", "r.example.com/a").Replace(podOf))
	samples.Bad = []policy.Bad{{Object: written(t, strings.NewReplacer("NAME", "bad", "IMAGE", "other/a").Replace(podOf)), Denied: "our registry"}}
	var answers atomic.Int64
	for name, test := range map[string]struct {
		other policy.Subject
		want  string // a part of the only difference; empty means none
		none  bool   // nothing is compared
	}{
		"same":                 {side("others", whole), "", false},
		"init containers":      {side("others", `"object.spec.containers.all(c, c.image.startsWith('r.example.com/'))"`), "initContainers", false},
		"shorter":              {side("others", `"(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.image.startsWith('r.example.com'))"`), "r.example.com", false},
		"other annotations":    {policy.Subject{Policies: written(t, strings.Replace(policyOf("others", whole), "  validations:", "  auditAnnotations: [{key: seen, valueExpression: \"'b'\"}]\n  validations:", 1))}, "seen: b", false},
		"a webhook that fails": {webhookOf(t, func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusInternalServerError) }), "", true},
		"other messages": {webhookOf(t, func(w http.ResponseWriter, uid string) {
			answered := answers.Add(1)
			fmt.Fprintf(w, `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": %q, "allowed": false, "status": {"message": "answer %d"}}}`, uid, answered)
		}), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := policy.Differences(t.Context(), samples, test.other)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(found.Sum(), found.Dropped, found.Unsteady, found.Compared)
			for _, each := range found.Differences {
				t.Log(each, each.Like, each.Case)
			}
			text := fmt.Sprintf("%v %v", found.Differences, found.Unsteady)
			if (len(found.Differences) > 0) != (test.want != "") || len(found.Differences) > 2 || (len(found.Unsteady) > 0) != test.none || (found.Sum() == 0) != test.none || !strings.Contains(text, test.want) {
				t.Errorf("got %s, want %q in it", text, test.want)
			}
		})
	}
}

// webhookOf returns a webhook that is called for every request, and answers one with a uid.
func webhookOf(t *testing.T, answer func(w http.ResponseWriter, uid string)) policy.Subject {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct{ Request struct{ UID string } }
		_ = json.NewDecoder(r.Body).Decode(&review)
		answer(w, review.Request.UID)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return policy.Subject{Endpoints: map[string]framework.Endpoint{"a/a": {URL: server.URL, CABundle: ca}}, Policies: written(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: all}
webhooks:
- name: all.example.com
  clientConfig: {service: {namespace: a, name: a}}
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
`)}
}

// TestCompareNothing: Compare fails if nothing is compared, in another process.
func TestCompareNothing(t *testing.T) {
	if os.Getenv("COMPARE_NOTHING") != "" {
		policy.Compare(t, subject(t, manifest("images")), webhookOf(t, func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusBadGateway) }))
		return
	}
	helper := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCompareNothing$")
	helper.Env = append(os.Environ(), "COMPARE_NOTHING=yes")
	if out, err := helper.CombinedOutput(); err == nil || !strings.Contains(string(out), "nothing was compared: ") {
		t.Errorf("got %v: %s", err, out)
	}
}
