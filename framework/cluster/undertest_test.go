package cluster

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/google/go-cmp/cmp"
)

func TestEndpointValidate(t *testing.T) {
	for address, want := range map[string]string{
		"":                          "",
		"https://127.0.0.1:9443":    "",
		"https://h/prefix/":         "",
		"http://127.0.0.1:9443":     "is no https URL",
		"127.0.0.1:9443":            "want https://HOST:PORT",
		"https:///mutate":           "is no https URL",
		"https://h?timeout=1s":      "more than a host, a port and a path",
		"https://user@127.0.0.1":    "more than a host, a port and a path",
		"https://127.0.0.1:9443#no": "more than a host, a port and a path",
	} {
		err := Endpoint{URL: address}.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want a part %q", address, err, want)
		}
	}
	if err := (Endpoint{CABundle: []byte("none")}).Validate(); err == nil || !strings.Contains(err.Error(), "no certificate; want PEM") {
		t.Errorf("CA bundle: got %v", err)
	}
}

func TestRedirect(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	target := &Target{}
	if err := target.SetEndpoints(map[string]Endpoint{
		"a/url": {URL: "https://127.0.0.1:1/", CABundle: bundle}, "a/ca": {CABundle: bundle},
	}); err != nil {
		t.Fatal(err)
	}
	service := func(name string) map[string]any {
		return map[string]any{"namespace": "a", "name": name, "path": "/mutate", "port": int64(8443)}
	}
	for name, test := range map[string]struct {
		given map[string]any
		keeps []string
		url   string
	}{
		"another":             {map[string]any{"service": service("other")}, []string{"service"}, ""},
		"URL":                 {map[string]any{"service": service("url")}, []string{"caBundle", "url"}, "https://127.0.0.1:1/mutate"},
		"CA alone":            {map[string]any{"service": service("ca")}, []string{"caBundle", "service"}, ""},
		"CA of its own":       {map[string]any{"service": service("ca"), "caBundle": "b3du"}, []string{"caBundle", "service"}, ""},
		"CA to be filled in":  {map[string]any{"service": service("ca"), "caBundle": "Cg=="}, []string{"caBundle", "service"}, ""},
		"CA that is no text":  {map[string]any{"service": service("ca"), "caBundle": nil}, []string{"caBundle", "service"}, ""},
		"URL without a place": {map[string]any{"service": map[string]any{"namespace": "a", "name": "url"}}, []string{"caBundle", "url"}, "https://127.0.0.1:1"},
	} {
		before := mustJSON(test.given)
		got := target.redirect(test.given)
		var keys []string
		for _, key := range []string{"caBundle", "service", "url"} {
			if _, ok := got[key]; ok {
				keys = append(keys, key)
			}
		}
		if diff := cmp.Diff(test.keeps, keys); diff != "" {
			t.Errorf("%s: fields (-want +got)\n%s", name, diff)
		}
		if address, _ := got["url"].(string); address != test.url {
			t.Errorf("%s: url %q, want %q", name, address, test.url)
		}
		if own := got["caBundle"] == "b3du"; own != (name == "CA of its own") {
			t.Errorf("%s: caBundle %v", name, got["caBundle"])
		}
		if after := mustJSON(test.given); string(after) != string(before) {
			t.Errorf("%s: the manifest itself became %s", name, after)
		}
	}
	if err := target.SetEndpoints(map[string]Endpoint{"a/b": {URL: "http://h"}}); err == nil || !strings.Contains(err.Error(), "use endpoint of Service a/b") {
		t.Errorf("SetEndpoints = %v", err)
	}
}

// What an API server says of a call tells whether there was an answer.
func TestUnderTestMissing(t *testing.T) {
	const call = `Internal error occurred: failed calling webhook "n0.ready.admissiontest.dev": `
	for message, want := range map[string]string{
		call + `failed to call webhook: Post "https://127.0.0.1:1/mutate?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused`: "dial tcp 127.0.0.1:1: connect: connection refused",
		call + `failed to call webhook: Post "https://s.n.svc:443/?timeout=5s": service "s" not found`:                                   `service "s" not found`,
		call + `failed to call webhook: the server could not find the requested resource`:                                                "",
		call + `received invalid webhook response: expected response.uid="x", got ""`:                                                    "",
		`admission webhook "n0.ready.admissiontest.dev" denied the request: no ConfigMaps`:                                               "",
		`admission webhook "somebody.example.com" denied the request`:                                                                    `admission webhook "somebody.example.com" denied the request`,
	} {
		if got := (underTest{}).missing(framework.Result{Status: metav1.Status{Code: 500, Message: message}}, 0); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
	allowed := framework.Result{Status: metav1.Status{Code: 201}}
	if got := (underTest{}).missing(allowed, 0); !strings.Contains(got, "does not act yet") {
		t.Errorf("without the mark: got %q", got)
	}
	allowed.Warnings = []string{readyMark}
	if got := (underTest{}).missing(allowed, 0); got != "" {
		t.Errorf("with the mark: got %q", got)
	}
}
