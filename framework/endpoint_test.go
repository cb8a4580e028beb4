package framework_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
)

func TestEndpointValidate(t *testing.T) {
	for address, want := range map[string]string{
		"":                          "",
		"https://127.0.0.1:9443":    "",
		"https://h/prefix/":         "",
		"http://127.0.0.1:9443":     "is not an https URL",
		"127.0.0.1:9443":            "want https://HOST:PORT",
		"https:///mutate":           "is not an https URL",
		"https://h?timeout=1s":      "more than a host, a port and a path",
		"https://user@127.0.0.1":    "more than a host, a port and a path",
		"https://127.0.0.1:9443#no": "more than a host, a port and a path",
	} {
		t.Run(address, func(t *testing.T) {
			err := framework.Endpoint{URL: address}.Validate()
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: got %v, want a part %q", address, err, want)
			}
		})
	}
	if err := (framework.Endpoint{CABundle: []byte("none")}).Validate(); err == nil || !strings.Contains(err.Error(), "no certificate; want PEM") {
		t.Errorf("CA bundle: got %v", err)
	}
}
