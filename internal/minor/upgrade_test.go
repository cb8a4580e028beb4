package minor_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/admissiontest/admissiontest/internal/minor"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
)

func TestIsUpgradeFailure(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	dialer, err := portforward.NewSPDYOverWebsocketDialer(address, &rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, _, refused := dialer.Dial("v1")
	server.Close()
	_, _, gone := dialer.Dial("v1")
	if refused == nil || gone == nil {
		t.Fatalf("dial = %v, and without a server %v; want two errors", refused, gone)
	}
	for err, want := range map[error]bool{
		refused:                            true,
		fmt.Errorf("dial: %w", refused):    true,
		errors.Join(gone, refused):         true,
		gone:                               false,
		errors.Join(gone, errors.New("x")): false,
	} {
		if got := minor.IsUpgradeFailure(err); got != want {
			t.Errorf("IsUpgradeFailure(%v) = %t, want %t", err, got, want)
		}
	}
	if minor.IsUpgradeFailure(nil) {
		t.Error("IsUpgradeFailure(nil) = true, want false")
	}
}
