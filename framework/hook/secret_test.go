package hook_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// A client that knows the address, the owner and the names of a Hook, but not the secret,
// is no API server.
func TestRequestsWithoutTheSecret(t *testing.T) {
	server := start(t)
	c := register(t, server, "o")
	right := c.url
	scheme, rest, _ := strings.Cut(right, "://")
	address, path, _ := strings.Cut(rest, "/")
	secret, name, _ := strings.Cut(path, "/")
	if len(secret) < 26 {
		t.Fatalf("the secret %q has fewer than 128 bits", secret)
	}
	for _, wrong := range []string{name, strings.Repeat("A", len(secret)) + "/" + name, strings.ToUpper(secret) + "/" + name, secret} {
		c.url = scheme + "://" + address + "/" + wrong
		if got := c.call(t); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", wrong, got.StatusCode)
		}
	}
	if calls, foreign := server.Calls("o"), server.Strangers().Requests; len(calls) != 0 || foreign != 4 {
		t.Errorf("got %d calls and %d foreign requests, want 0 and 4", len(calls), foreign)
	}
	c.url = scheme + "://" + address + "/" + secret + "/x/../" + name
	if got := c.call(t); got.StatusCode != http.StatusNotFound || server.Strangers().Requests != 4 {
		t.Errorf("an unknown path with the secret: got %d and %d foreign requests, want 404 and 4 as before", got.StatusCode, server.Strangers().Requests)
	}
	c.url = right
	c.call(t)
	if calls := server.Calls("o"); len(calls) != 1 || strings.Contains(calls[0].Path, secret) {
		t.Errorf("got %v, want one call, whose path does not have the secret", calls)
	}
	other := register(t, start(t), "o")
	if strings.Contains(other.url, secret) {
		t.Error("two servers have the same secret")
	}
}

// A body that no API server sends is not kept in memory.
func TestLargeBodyIsRefused(t *testing.T) {
	server := start(t)
	c := register(t, server, "o")
	body := append([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"`), bytes.Repeat([]byte("a"), 9<<20)...)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url, bytes.NewReader(append(body, `"}}`...)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.client.Do(request)
	if err == nil {
		response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("got %d, want 400 for a body of 9 MiB", response.StatusCode)
		}
	}
	if calls := server.Calls("o"); len(calls) != 1 || calls[0].Review != nil || !strings.Contains(calls[0].Answer, "too large") {
		t.Errorf("got %v, want one call without a review, refused as too large", calls)
	}
}
