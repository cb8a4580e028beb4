package client

import (
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
)

// On a cluster with several API servers, SendToAll asks on new connections until one of the responses lacks something.
func TestSendToAll(t *testing.T) {
	for name, test := range map[string]struct {
		others, lackingFrom int // the number of the request from which on the responses lack something
		sent                int
		missing             string
	}{
		"one":                  {1, 100, 1, ""},
		"several":              {2, 100, 1 + freshConnections, ""},
		"the first lacks":      {2, 1, 1, "x"},
		"another server lacks": {2, 5, 5, "x, on a new connection"},
	} {
		t.Run(name, func(t *testing.T) {
			var others []*server
			for range test.others {
				others = append(others, startServer(t, answerVersion))
			}
			balancer := withSlices(t, others...)
			var mu sync.Mutex
			connections := map[string]bool{}
			answer := balancer.Config.Handler
			balancer.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				connections[r.RemoteAddr] = true
				mu.Unlock()
				answer.ServeHTTP(w, r)
			})
			c, err := New(&rest.Config{Host: balancer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: balancer.ca()}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if message := c.FindReplicas(t.Context()); (message != "") != (test.others > 1) {
				t.Errorf("message %q", message)
			}
			sent := 0
			_, missing, err := c.SendToAll(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/version"}, func(framework.Result) string {
				if sent++; sent >= test.lackingFrom {
					return "x"
				}
				return ""
			})
			mu.Lock()
			defer mu.Unlock()
			if sent != test.sent || missing != test.missing || err != nil || len(connections) < sent {
				t.Errorf("sent %d on %d connections, missing %q, %v; want %d, %q", sent, len(connections), missing, err, test.sent, test.missing)
			}
		})
	}
}
