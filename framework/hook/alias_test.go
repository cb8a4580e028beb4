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

// withAlias registers a Hook with an alias and returns a caller of the alias.
func withAlias(t *testing.T, server *recorder, owner, webhook string, alias hook.Alias) caller {
	t.Helper()
	endpoint, err := server.Register(hook.Hook{
		Owner: owner, Configuration: "c", Webhook: webhook, Phase: framework.Mutating, Alias: alias,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := callerOf(t, endpoint)
	c.url = "https://" + host(t, endpoint.URL) + alias.Path
	c.client.Transport.(*http.Transport).TLSClientConfig.ServerName = alias.ServerName
	return c
}

func TestAlias(t *testing.T) {
	server := start(t)
	first := withAlias(t, server, "o", "first.example.com", hook.Alias{ServerName: "first.o.svc", Path: "/"})
	second := withAlias(t, server, "p", "second.example.com", hook.Alias{ServerName: "second.p.svc", Path: "/"})
	first.call(t)
	second.call(t)
	second.call(t)
	calls := server.Calls("p")
	if len(server.Calls("o")) != 1 || len(calls) != 2 {
		t.Fatalf("got %d calls of one and %d of the other, want 1 and 2", len(server.Calls("o")), len(calls))
	}
	call := calls[0]
	if call.ServerName != "second.p.svc" || call.Path != "/" || !slices.Equal(call.Protocols, []string{"h2", "http/1.1"}) || call.ClientCertificate != "" {
		t.Errorf("got %q %q %q %q, want the name, the path and the protocols of the caller, and no certificate",
			call.ServerName, call.Path, call.Protocols, call.ClientCertificate)
	}
	if call.Connection == "" || call.Connection != calls[1].Connection || call.Connection == server.Calls("o")[0].Connection {
		t.Errorf("got connections %q, %q and %q; want the first two alike", call.Connection, calls[1].Connection, server.Calls("o")[0].Connection)
	}
	server.Unregister("p")
	if got := second.call(t); got.StatusCode != http.StatusNotFound {
		t.Errorf("got %d from a Hook that is unregistered, want 404", got.StatusCode)
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

// If several Hooks share an alias, one of them answers as long as there is one.
func TestSharedAlias(t *testing.T) {
	server := start(t)
	shared := hook.Alias{ServerName: "s.o.svc", Path: "/shared"}
	c := withAlias(t, server, "o", "first.example.com", shared)
	withAlias(t, server, "o", "second.example.com", shared)
	c.call(t)
	withAlias(t, server, "o", "second.example.com", hook.Alias{ServerName: "s.o.svc", Path: "/other"})
	c.call(t)
	if got := server.Calls("o").Webhooks(); !slices.Equal(got, []string{"second.example.com", "first.example.com"}) {
		t.Errorf("got calls of %v, want the last one first, and then the remaining one", got)
	}
}

func TestAliasRefused(t *testing.T) {
	server := start(t)
	withAlias(t, server, "o", "w", hook.Alias{Path: "/o/taken/other"})
	for owner, also := range map[string]hook.Alias{"other": {Path: "/o/taken/other"}, "no slash": {ServerName: "s.o.svc", Path: "x"}, "without owner": {ServerName: "s.o.svc", Path: "/path"}} {
		t.Run(owner, func(t *testing.T) {
			_, err := server.Register(hook.Hook{Owner: owner, Configuration: "c", Webhook: "w", Phase: framework.Mutating, Alias: also})
			if err == nil || !strings.Contains(err.Error(), "path") {
				t.Errorf("got %v, want an error about the path", err)
			}
		})
	}
}
