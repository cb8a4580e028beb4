package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
)

// atOnce is a backoff of three attempts without a pause.
func atOnce() wait.Backoff { return wait.Backoff{Duration: time.Millisecond, Steps: 3} }

// hijack closes the connection of a request without a response.
func hijack(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

// Administrative requests are repeated; requests under test never are.
func TestTransientFailures(t *testing.T) {
	const created = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"u"}}`
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, code)
		}
	}
	for name, test := range map[string]struct {
		fail  func(http.ResponseWriter)
		fails int64
		want  int64 // requests
		bad   bool
	}{
		"overloaded":       {status(429), 2, 3, false},
		"not available":    {status(503), 1, 2, false},
		"timeout":          {status(504), 1, 2, false},
		"lost":             {hijack, 2, 3, false},
		"for too long":     {hijack, 100, 3, true},
		"refused for good": {status(403), 1, 1, true},
		"refused after a restart": {func() func(http.ResponseWriter) {
			var times atomic.Int64
			return func(w http.ResponseWriter) {
				if times.Add(1) == 1 {
					hijack(w)
				} else {
					status(403)(w)
				}
			}
		}(), 2, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			var bodies atomic.Int64
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body := make([]byte, 1024)
				if n, _ := r.Body.Read(body); strings.Contains(string(body[:n]), "name") {
					bodies.Add(1)
				}
				if requests.Add(1) <= test.fails {
					test.fail(w)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				fmt.Fprint(w, created)
			})
			o := Object{Resource: configMaps(), Namespace: "default", Name: "a"}
			_, err := c.Create(t.Context(), o, manifest("a", nil))
			if (err != nil) != test.bad || requests.Load() != test.want || bodies.Load() != test.want {
				t.Errorf("got %v after %d requests with %d bodies, want an error: %t, after %d", err, requests.Load(), bodies.Load(), test.bad, test.want)
			}
			requests.Store(0)
			if _, _ = c.Send(t.Context(), HTTPRequest{Method: http.MethodPost, Path: "/api/v1/namespaces/default/configmaps", Body: []byte("{}")}); requests.Load() != 1 {
				t.Errorf("a request under test was sent %d times, want once", requests.Load())
			}
		})
	}
}

// A request without a response in time is no end of the limit of Poll.
func TestPollWithoutResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Poll(t.Context(), Later, time.Minute, func() (bool, error) {
			return false, fmt.Errorf("%w: %w", framework.ErrNoResponse, context.DeadlineExceeded)
		})
		if !errors.Is(err, framework.ErrNoResponse) || errors.Is(err, framework.ErrTimeout) {
			t.Errorf("got %v; want that there is no response", err)
		}
	})
}
