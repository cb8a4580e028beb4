package envtest

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Connections of other clients do not keep the API server from delivering audit events.
func TestStrangersAtAudit(t *testing.T) {
	a, err := startAudit(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.close() }()
	config, err := os.ReadFile(a.flags["audit-webhook-config-file"])
	if err != nil {
		t.Fatal(err)
	}
	sink, err := url.Parse(regexp.MustCompile(`http://[^"]*`).FindString(string(config)))
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(id string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, sink.String(), strings.NewReader(`{"items":[{"auditID":"`+id+`"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if _, err := a.Event(t.Context(), id); err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("got %s and %v", response.Status, err)
		}
	}
	deliver("before")
	for range a.strangers.Limit() + 10 {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", sink.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
	}
	deliver("beside")
	if a.strangers.Closed() == 0 || a.strangers.Lost() == 0 {
		t.Errorf("closed %d and lost %d connections, want some", a.strangers.Closed(), a.strangers.Lost())
	}
}
