package rules

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// securityRules returns the rules for callers and content that cannot be trusted.
func securityRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-SEC-1", Name: "tls-is-current", Level: framework.Must,
			Title:  "The server accepts HTTP/1.1 over TLS 1.2 or newer, and refuses TLS 1.0, TLS 1.1 and 3DES.",
			Why:    "Scanners report old versions of TLS, and the API server asks for no other protocol than HTTP/1.1 of most webhooks.",
			Fix:    "Set tls.Config.MinVersion to tls.VersionTLS12, and leave CipherSuites to crypto/tls.",
			Source: []string{"https://github.com/kubernetes-sigs/aws-load-balancer-controller/issues/2531", "https://github.com/kubernetes-sigs/cluster-api-provider-vsphere/issues/1639"},
			Check:  checkTLS,
		},
		{
			ID: "WH-SEC-2", Name: "namespace-of-the-request-decides", Level: framework.Should,
			Title:  "The namespace of the request decides, not the namespace in the object.",
			Why:    "A user who may write in one namespace is otherwise judged by the rules of another. API servers since 1.24 correct the object.",
			Fix:    "Use request.namespace.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/88282", "https://github.com/kubernetes/kubernetes/issues/113952"},
			Check:  checkNamespace,
		},
		{
			ID: "WH-SEC-3", Name: "only-json-reviews-are-answered", Level: framework.Should,
			Title:  "A request without a body, one that is not application/json, and one to an unknown path is not allowed.",
			Why:    "Callers of the port need no credentials. What is not a review from an API server deserves no decision.",
			Fix:    "Refuse another Content-Type with 415, and an empty body with 400. Register the handler at its path only.",
			Source: []string{"https://github.com/grafeas/kritis/pull/298", "https://github.com/kubeedge/kubeedge/pull/7254"},
			Check:  checkCallers,
		},
		{
			ID: "WH-SEC-4", Name: "content-stays-private", Level: framework.Should,
			Title:  "Values of Secrets, environment variables and annotations of other clients are not in messages, warnings and audit annotations, and addresses in the object are not connected to.",
			Why:    "Messages are in logs and events that more people read than the object. A webhook that connects to an address in an object is a proxy into the network of the control plane.",
			Fix:    "Name the field in messages, not its value. Declare Subject.Egress if the webhook is for fetching.",
			Source: []string{"https://github.com/golang/vulndb/issues/3567", "https://github.com/kubernetes/kubernetes/issues/88282"},
			Check:  checkPrivacy,
		},
		{
			ID: "WH-SEC-6", Name: "service-accounts-are-not-exempt", Level: framework.Should,
			Title:  "What is denied for a user is denied for an ordinary service account too.",
			Why:    "Whoever may create pods can use the service accounts of their namespaces. An exemption of all names with system: is one for every service account.",
			Fix:    "Exempt single service accounts by their whole names.",
			Source: []string{"https://github.com/kyverno/kyverno/pull/7225", goodPractices},
			Check:  checkServiceAccounts,
		},
		{
			ID: "WH-SEC-7", Name: "registries-are-compared-as-a-whole", Level: framework.Should,
			Title:  "If the webhook denies images of unknown registries, it denies images of registries whose names are only similar to an allowed one.",
			Why:    "Anybody can have a registry whose name begins with the name of another one, and an image with this name in its path.",
			Fix:    "Compare what is before the first / with the names of the registries.",
			Source: []string{"https://github.com/open-policy-agent/gatekeeper-library/issues/80", "https://github.com/open-policy-agent/gatekeeper-library/pull/529"},
			Check:  func(t *check.T) { checkDoors(t, "the registry of an image, which the webhook must know", nearImages) },
		},
	}
}

func checkTLS(t *check.T) {
	if t.URL == "" {
		t.Unsupported("the Subject is a Handler: TLS belongs to the server at a URL")
	}
	for name, version := range map[string]uint16{"TLS 1.0": tls.VersionTLS10, "TLS 1.1": tls.VersionTLS11} {
		if err := handshake(t, &tls.Config{MinVersion: version, MaxVersion: version, InsecureSkipVerify: true}); err == nil { //nolint:gosec // an old version is what is tested
			t.Errorf("the server accepts %s; want 1.2 or newer", name)
		}
	}
	weak := []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA}
	if err := handshake(t, &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: weak, InsecureSkipVerify: true}); err == nil { //nolint:gosec // an old cipher is what is tested
		t.Errorf("the server accepts 3DES; want AES or ChaCha20")
	}
	err := handshake(t, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, InsecureSkipVerify: true}) //nolint:gosec // other calls verify the certificate
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the server does not accept HTTP/1.1 over TLS 1.2 or newer: %v", err)
	}
	t.Reached()
}

// handshake returns the error of a TLS handshake. If the server does not answer, the error is context.DeadlineExceeded,
// and the rule cannot be judged.
func handshake(t *check.T, config *tls.Config) error {
	const limit = 3 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	config.ServerName = t.ServerName
	dialer := tls.Dialer{Config: config}
	connection, err := dialer.DialContext(ctx, "tcp", t.Host())
	switch {
	case err == nil:
		_ = connection.Close() // nothing was sent
	case ctx.Err() != nil:
		t.Unobserved("the server did not answer a TLS handshake within %s", limit)
		return ctx.Err()
	}
	return err
}

func checkNamespace(t *check.T) {
	t.EachDecided(func(c check.Case, want check.Decision) {
		if !isCreate(c) || c.Request.Namespace == "" || c.Request.Kind.Kind == "Namespace" {
			return
		}
		got, ok := t.Decide(withObject(c.Request, changed(c.Request.Object, func(u *unstructured.Unstructured) { u.SetNamespace("contract-other") })))
		if !ok {
			return
		}
		t.Reached()
		if text := t.Difference(nameless(want), nameless(got)); text != "" {
			t.Differs("%s with metadata.namespace contract-other in the object: %s", c, text)
		}
	})
	if !t.HasReached() {
		t.Unsupported("no sample that reaches the webhook is the creation of a namespaced object")
	}
}

func checkCallers(t *check.T) {
	eachObject(t, func(c check.Case, _ check.Decision) {
		text := func() *bytes.Reader { return bytes.NewReader(check.Encode(t.Review(c.Request))) }
		calls := map[string]check.Raw{
			"GET without a body": {Method: http.MethodGet}, "PUT without a body": {Method: http.MethodPut}, "DELETE without a body": {Method: http.MethodDelete},
			"a review with Content-Type text/plain": {ContentType: "text/plain", Body: text()},
		}
		if t.HasPath() {
			calls["a review for the path "+unknownPath] = check.Raw{Path: unknownPath, Body: text()}
		}
		for what, raw := range calls {
			a := t.SendRaw(t.Context(), t.Webhook, raw)
			if a.Err != nil {
				t.LogOnce(what + ": " + a.Err.Error())
				continue
			}
			t.Reached()
			if a.NoDecision() == "" && a.Response.Allowed {
				t.Errorf("%s is allowed", what)
			}
		}
	})
}

// unknownPath is a path that no webhook is registered at.
const unknownPath = "/contract-unknown-path"

// canary is the beginning of values that must not appear in an answer.
const canary = "contract-canary-7c1f"

func checkPrivacy(t *check.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Unobserved("listen for connections of the webhook: %v", err)
		return
	}
	var connected atomic.Bool
	server := &http.Server{ReadHeaderTimeout: settle, ConnState: func(net.Conn, http.ConnState) { connected.Store(true) }}
	go func() { _ = server.Serve(listener) }() // it ends with Close
	t.Cleanup(func() { _ = server.Close() })
	for _, c := range t.Cases() {
		if c.Request.Object == nil || c.Request.Subresource != "" {
			continue
		}
		r := withObject(c.Request, changed(c.Request.Object, func(u *unstructured.Unstructured) { plant(u, listener.Addr().String()) }))
		a := t.Send(t.Context(), t.Webhook, r)
		if a.NoDecision() != "" {
			continue
		}
		t.Reached()
		told := append([]string{a.Response.Status.Message}, a.Response.Warnings...)
		for _, value := range a.Response.AuditAnnotations {
			told = append(told, value)
		}
		for _, text := range told {
			if strings.Contains(text, canary) {
				t.Errorf("%s: the answer has a value of the object in a message, warning or audit annotation: %q", c, text)
			}
		}
	}
	pause(t, settle/5) // another goroutine can connect
	if connected.Load() && t.Egress == "" {
		t.Errorf("the webhook connected to an address that is in an object")
	}
}

// plant writes canaries into an object, and an address into an annotation.
func plant(u *unstructured.Unstructured, address string) {
	annotate(u, "contract.example.com/secret", canary+"-annotation")
	annotate(u, "contract.example.com/url", "https://"+address+"/")
	if u.GetKind() == "Secret" {
		data, _, _ := unstructured.NestedStringMap(u.Object, "stringData")
		_ = unstructured.SetNestedStringMap(u.Object, withEntry(data, "contract", canary+"-secret"), "stringData") // its parent is a map
	}
	for _, path := range containerLists(u.Object) {
		containers, _ := valueAt(u.Object, path).([]any)
		for i := range containers {
			addEnv(containerAt(u.Object, path, i), "CONTRACT_SECRET", canary+"-env")
		}
	}
}
