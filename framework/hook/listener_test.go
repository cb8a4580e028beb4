package hook_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestPlaces(t *testing.T) {
	server := start(t)
	listeners, err := server.Listeners()
	if err != nil {
		t.Fatal(err)
	}
	var faults []hook.Fault
	for _, listener := range listeners {
		faults = append(faults, listener.Fault)
		endpoint, err := server.Register(hook.Hook{
			Owner: "o", Configuration: "c", Webhook: "w" + string(listener.Fault), Phase: framework.Mutating,
			Script: hook.Script{Replies: []hook.Reply{{Fault: listener.Fault}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if endpoint.Port != listener.Port || !strings.HasSuffix(endpoint.Path, "/o/c/w"+string(listener.Fault)) {
			t.Errorf("fault %q: got port %d and path %s, want port %d and the path of the hook", listener.Fault, endpoint.Port, endpoint.Path, listener.Port)
		}
		var dialer net.Dialer
		connection, err := dialer.DialContext(t.Context(), "tcp", listener.Address)
		if refused := listener.Fault == hook.Refused; (err != nil) != refused {
			t.Errorf("dial %s of fault %q: got %v, want refused: %t", listener.Address, listener.Fault, err, refused)
		}
		if err == nil {
			connection.Close()
		}
	}
	want := []hook.Fault{hook.NoFault, hook.Refused, hook.TLSWrongCA, hook.TLSExpired, hook.TLSWrongName, hook.TLSHang}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	again, err := server.Listeners()
	if diff := cmp.Diff(listeners, again); diff != "" || err != nil {
		t.Errorf("second call: error %v, (-want +got):\n%s", err, diff)
	}
}

func TestPlacesOfUnspecifiedAddress(t *testing.T) {
	server, err := hook.Start(t.Context(), hook.Options{Address: "0.0.0.0:0", AdvertiseHost: "example.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	listeners, err := server.Listeners()
	if err != nil {
		t.Fatal(err)
	}
	if host, _, err := net.SplitHostPort(listeners[0].Address); !net.ParseIP(host).IsLoopback() || err != nil {
		t.Errorf("got %s, want an address of loopback", listeners[0].Address)
	}
}

// valid reports why a certificate served at an address is not valid for a name.
func valid(t *testing.T, server *hook.Server, address, name string) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.Address().CABundle)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	if err == nil {
		connection.Close()
	}
	return err
}

func TestNamesOfCertificates(t *testing.T) {
	server := start(t)
	listeners, err := server.Listeners()
	if err != nil {
		t.Fatal(err)
	}
	const address = "192.0.2.7" // a client that calls an address sends no name
	if valid(t, server.Server, listeners[0].Address, address) == nil {
		t.Error("valid for an address that was not given")
	}
	server.AddNames(address)
	for _, name := range []string{address, "any.example.svc", "localhost"} {
		t.Run(name, func(t *testing.T) {
			for _, listener := range listeners {
				if listener.Fault == hook.TLSHang {
					continue // no certificate is seen there
				}
				err := valid(t, server.Server, listener.Address, name)
				if fine := listener.Fault == hook.NoFault || listener.Fault == hook.TLSWrongCA; (err == nil) != fine {
					t.Errorf("%s where the fault is %q: got %v, want valid: %t", name, listener.Fault, err, fine)
				}
			}
		})
	}
}
