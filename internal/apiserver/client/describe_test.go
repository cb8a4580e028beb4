package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
)

// The version is read again while the API server is overloaded, as often as its backoff says.
func TestVersionOfOverloadedServer(t *testing.T) {
	for name, test := range map[string]struct {
		fail     func(http.ResponseWriter)
		failures int
		want     string
	}{
		"429":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, 2, "v1.36.3"},
		"502":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, 2, "v1.36.3"},
		"no response": {hijack, 2, "v1.36.3"},
		"always 429":  {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, 100, ": 429"},
		"401":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, 1, ": 401"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if requests++; requests <= test.failures {
					test.fail(w)
					return
				}
				_, _ = fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
			})
			got, err := c.Version(t.Context())
			if answer := fmt.Sprint(got, err); !strings.Contains(answer, test.want) || requests != min(test.failures+1, 3) && test.want != ": 401" {
				t.Errorf("got %s after %d requests; want %s", answer, requests, test.want)
			}
		})
	}
}

// An API server without metrics does not serve them: nothing failed.
func TestMetricsThatAreNotServed(t *testing.T) {
	for code, want := range map[int]bool{http.StatusNotFound: true, http.StatusForbidden: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
			_, err := c.Samples(t.Context(), pluginMetric)
			if got := errors.Is(err, framework.ErrNotServed); err == nil || got != want {
				t.Errorf("%d: got %v; ErrNotServed %t, want %t", code, err, got, want)
			}
		})
	}
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err := serve(t, func(http.ResponseWriter, *http.Request) {}).Samples(late, pluginMetric); !errors.Is(err, framework.ErrNoResponse) {
		t.Errorf("too late: got %v, want an ErrNoResponse", err)
	}
}
