package hook_test

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// at makes a Hook of an owner that answers at an Address too, and a caller by it.
func at(t *testing.T, server *hook.Server, owner, webhook string, also hook.Address) caller {
	t.Helper()
	endpoint, err := server.Register(hook.Hook{
		Owner: owner, Configuration: "c", Webhook: webhook, Phase: framework.Mutating, Also: also,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := callerOf(t, endpoint)
	c.url = "https://" + host(t, endpoint.URL) + also.Path
	c.client.Transport.(*http.Transport).TLSClientConfig.ServerName = also.ServerName
	return c
}

func TestAddress(t *testing.T) {
	server := start(t)
	first := at(t, server, "o", "first.example.com", hook.Address{ServerName: "first.ns.svc", Path: "/"})
	second := at(t, server, "p", "second.example.com", hook.Address{ServerName: "second.ns.svc", Path: "/"})
	first.call(t)
	second.call(t)
	second.call(t)
	calls := server.Calls("p")
	if len(server.Calls("o")) != 1 || len(calls) != 2 {
		t.Fatalf("got %d calls of one and %d of the other, want 1 and 2", len(server.Calls("o")), len(calls))
	}
	call := calls[0]
	if call.ServerName != "second.ns.svc" || call.Path != "/" || !slices.Equal(call.Protocols, []string{"h2", "http/1.1"}) || call.ClientCertificate != "" {
		t.Errorf("got %q %q %q %q, want the name, the path and the protocols of the caller, and no certificate",
			call.ServerName, call.Path, call.Protocols, call.ClientCertificate)
	}
	if call.Connection == "" || call.Connection != calls[1].Connection || call.Connection == server.Calls("o")[0].Connection {
		t.Errorf("got connections %q, %q and %q; want the first two alike", call.Connection, calls[1].Connection, server.Calls("o")[0].Connection)
	}
	server.Forget("p")
	if got := second.call(t); got.StatusCode != http.StatusNotFound {
		t.Errorf("got %d from a Hook that was forgotten, want 404", got.StatusCode)
	}
}

func TestClientCertificate(t *testing.T) {
	server := start(t)
	c := register(t, server, "o")
	c.client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{selfSigned(t)}
	c.call(t)
	if got := server.Calls("o")[0].ClientCertificate; got != "CN=caller" {
		t.Errorf("got %q, want the subject of the caller's certificate", got)
	}
}

// Of Hooks that share an Address one answers as long as one is there.
func TestSharedAddress(t *testing.T) {
	server := start(t)
	shared := hook.Address{ServerName: "s.ns.svc", Path: "/shared"}
	c := at(t, server, "o", "first.example.com", shared)
	at(t, server, "o", "second.example.com", shared)
	c.call(t)
	at(t, server, "o", "second.example.com", hook.Address{ServerName: "s.ns.svc", Path: "/other"})
	c.call(t)
	if got := framework.Trace(server.Calls("o")).Webhooks(); !slices.Equal(got, []string{"second.example.com", "first.example.com"}) {
		t.Errorf("got calls of %v, want the last one's and then the one's that is left", got)
	}
}

func TestAddressRefused(t *testing.T) {
	server := start(t)
	at(t, server, "o", "w", hook.Address{Path: "/taken"})
	for owner, also := range map[string]hook.Address{"other": {Path: "/taken"}, "no slash": {ServerName: "s.ns.svc", Path: "x"}} {
		_, err := server.Register(hook.Hook{Owner: owner, Configuration: "c", Webhook: "w", Phase: framework.Mutating, Also: also})
		if err == nil || !strings.Contains(err.Error(), "path") {
			t.Errorf("%s: got %v, want an error about the path", owner, err)
		}
	}
}
