package redact_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/golden"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/redact"
)

// review has each place of a value that is not shown. Such a value begins with "hide".
const review = `{
  "header": {"Authorization": "hide-1", "Proxy-Authorization": "hide-2", "Cookie": "hide-3", "Accept": "application/json"},
  "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
  "request": {
    "kind": {"group": "", "version": "v1", "kind": "Secret"},
    "userInfo": {"username": "jane", "groups": ["g"], "extra": {"example.com/a": ["hide-4", "hide-5"]}},
    "object": {
      "kind": "Secret", "type": "Opaque", "data": {"password": "hide-6"}, "stringData": {"pin": "hide-7"},
      "metadata": {"name": "a", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hide-8 {\"kind\":\"Secret\"}", "note": "shown"}}
    },
    "oldObject": {"kind": "SecretList", "items": [{"data": {"password": "hide-9"}}]}
  },
  "response": {"allowed": true, "patch": [{"op": "add", "path": "/data", "value": {"password": "hide-15"}}, {"op": "replace", "path": "/data/pin", "value": "hide-16"}, {"op": "remove", "path": "/x"}]},
  "list": [
    {"kind": "TokenRequest", "spec": {"audiences": ["shown"]}, "status": {"token": "hide-10", "expirationTimestamp": "shown"}},
    {"kind": "TokenReview", "spec": {"token": "hide-11"}, "status": {"authenticated": true, "user": {"username": "u", "extra": {"k": ["hide-12"]}}}},
    {"kind": "SubjectAccessReview", "spec": {"user": "u", "extra": {"k": ["hide-13"]}}},
    {"kind": "CertificateSigningRequest", "spec": {"username": "u", "extra": {"k": ["hide-14"]}}},
    {"kind": "ConfigMap", "data": {"a": "shown", "token": "shown"}, "extra": "shown",
     "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"kind\":\"ConfigMap\"}"}}}
  ]
}`

func decoded(t *testing.T) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(review), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestFields(t *testing.T) {
	fields := decoded(t)
	hidden := redact.Fields(fields)
	text, err := json.MarshalIndent(hidden, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hide") {
		t.Errorf("a value is shown:\n%s", text)
	}
	golden.Compare(t, filepath.Join("testdata", "fields.golden"), string(text)+"\n")
	if !match.Equal(decoded(t), fields) {
		t.Error("the original was changed")
	}
	if redact.Fields(nil) != nil {
		t.Error("Fields(nil) is not nil")
	}
}

func TestText(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl-x_"
	for text, want := range map[string]string{
		"token " + token + " is bad":                                                "token (redacted) is bad",
		`Post "https://a:1/` + redact.NewPathSecret() + `/o/c": EOF`:                `Post "https://a:1/o/c": EOF`,
		`{"path":"/` + redact.NewPathSecret() + `"}`:                                `{"path":""}`,
		"cut https://a:1/at-secret-abc… (cut: 99 characters in all)":                "cut https://a:1… (cut: 99 characters in all)",
		"/at-secrets/validate":                                                      "/at-secrets/validate",
		"part " + token[:30]:                                                        "part (redacted)",
		"Authorization: Bearer abc":                                                 "Authorization: Bearer (redacted)",
		`{"Authorization":["Basic YWJjZA=="]}`:                                      `{"Authorization":["Basic (redacted)"]}`,
		"authorization=abc def":                                                     "authorization=(redacted) def",
		"Bearer 0123456789abcdef.x/y==":                                             "Bearer (redacted)",
		"bearer token is missing":                                                   "bearer token is missing",
		"authorization mode RBAC":                                                   "authorization mode RBAC",
		"a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb": "a\n(redacted)\nb",
		"a -----BEGIN PRIVATE KEY-----\nabc":                                        "a (redacted)",
		"-----BEGIN CERTIFICATE-----\nabc":                                          "-----BEGIN CERTIFICATE-----\nabc",
		"":                                                                          "",
	} {
		t.Run(want, func(t *testing.T) {
			if got := redact.Text(text); got != want {
				t.Errorf("Text(%q) = %q; want %q", text, got, want)
			}
		})
	}
}
