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
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"refused":          {refused, true},
		"wrapped":          {fmt.Errorf("dial: %w", refused), true},
		"gone and refused": {errors.Join(gone, refused), true},
		"gone":             {gone, false},
		"gone and another": {errors.Join(gone, errors.New("x")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := minor.IsUpgradeFailure(test.err); got != test.want {
				t.Errorf("IsUpgradeFailure(%v) = %t, want %t", test.err, got, test.want)
			}
		})
	}
	if minor.IsUpgradeFailure(nil) {
		t.Error("IsUpgradeFailure(nil) = true, want false")
	}
}
