package envtest

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// It is known that other clients hold so many connections that the API server may have to wait with its audit events.
func TestManyConnectionsToAudit(t *testing.T) {
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
	var open []net.Conn
	for range processes.FewConnections + 1 {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", sink.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		open = append(open, connection)
	}
	for a.limit.Full() == 0 {
		time.Sleep(time.Millisecond) //nolint:forbidigo // until the receiver has accepted them
	}
	for _, connection := range open {
		_ = connection.Close()
	}
	deliver("afterwards")
}

// The body of a JSON patch is a list, and no object.
func TestAuditOfJSONPatch(t *testing.T) {
	a := &Audit{}
	err := a.add([]byte(`{"items":[{"auditID":"a","level":"RequestResponse","annotations":{"a":"b"},"requestObject":[{"op":"remove","path":"/spec"}],"responseObject":{"kind":"Pod"}}]}`))
	if event, wrong := a.Event(t.Context(), "a"); err != nil || wrong != nil || event.RequestObject != nil || event.ResponseObject["kind"] != "Pod" || event.Annotations["a"] != "b" {
		t.Errorf("got %v, %v, %v", event, err, wrong)
	}
}
