package hook_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

func TestPlaces(t *testing.T) {
	server := start(t)
	places, err := server.Places()
	if err != nil {
		t.Fatal(err)
	}
	var faults []hook.Fault
	for _, place := range places {
		faults = append(faults, place.Fault)
		endpoint, err := server.Register(hook.Hook{
			Owner: "o", Configuration: "c", Webhook: "w" + string(place.Fault), Phase: framework.Mutating,
			Script: hook.Script{Replies: []hook.Reply{{Fault: place.Fault}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if endpoint.Port != place.Port || endpoint.Path != "/o/c/w"+string(place.Fault) {
			t.Errorf("fault %q: got port %d and path %s, want port %d and the path of the hook", place.Fault, endpoint.Port, endpoint.Path, place.Port)
		}
		var dialer net.Dialer
		connection, err := dialer.DialContext(t.Context(), "tcp", place.Address)
		if refused := place.Fault == hook.Refused; (err != nil) != refused {
			t.Errorf("dial %s of fault %q: got %v, want refused: %t", place.Address, place.Fault, err, refused)
		}
		if err == nil {
			connection.Close()
		}
	}
	want := []hook.Fault{hook.NoFault, hook.Refused, hook.TLSWrongCA, hook.TLSExpired, hook.TLSWrongName, hook.TLSHang}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	again, err := server.Places()
	if diff := cmp.Diff(places, again); diff != "" || err != nil {
		t.Errorf("second call: error %v, (-want +got):\n%s", err, diff)
	}
}

func TestPlacesOfUnspecifiedAddress(t *testing.T) {
	server, err := hook.Start(t.Context(), hook.Options{Address: "0.0.0.0:0", AdvertiseHost: "example.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	places, err := server.Places()
	if err != nil {
		t.Fatal(err)
	}
	if host, _, err := net.SplitHostPort(places[0].Address); !net.ParseIP(host).IsLoopback() || err != nil {
		t.Errorf("got %s, want an address of loopback", places[0].Address)
	}
}

// valid reports why a certificate served at an address is not valid for a name.
func valid(t *testing.T, server *hook.Server, address, name string) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(server.CABundle())
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name}}
	connection, err := dialer.DialContext(t.Context(), "tcp", address)
	if err == nil {
		connection.Close()
	}
	return err
}

func TestNamesOfCertificates(t *testing.T) {
	server, err := hook.Start(t.Context(), hook.Options{Names: []string{"first.example.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	places, err := server.Places()
	if err != nil {
		t.Fatal(err)
	}
	if err := valid(t, server, places[0].Address, "first.example.svc"); err != nil {
		t.Error(err)
	}
	if valid(t, server, places[0].Address, "second.example.svc") == nil {
		t.Error("valid for a name that nobody gave")
	}
	if err := server.AddNames("second.example.svc"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first.example.svc", "second.example.svc", "localhost"} {
		for _, place := range places {
			if place.Fault == hook.TLSHang {
				continue // no certificate is seen there
			}
			err := valid(t, server, place.Address, name)
			if fine := place.Fault == hook.NoFault || place.Fault == hook.TLSWrongCA; (err == nil) != fine {
				t.Errorf("%s where the fault is %q: got %v, want valid: %t", name, place.Fault, err, fine)
			}
		}
	}
}
