package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
)

// repeat writes parts until the reader has enough, or n parts.
func repeat(w io.Writer, part string, n int) {
	chunk := []byte(strings.Repeat(part, 10_000))
	for ; n > 0; n -= 10_000 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// hostileAnswers are responses that never end.
func hostileAnswers() map[string]func(w http.ResponseWriter) {
	const forever = 1 << 40
	asJSON := func(mediaType, begin, part string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = io.WriteString(w, begin)
			repeat(w, part, forever)
		}
	}
	return map[string]func(http.ResponseWriter){
		"endless":       asJSON("application/json", `{"kind":"APIGroupList","a":"`, "abcdefgh"),
		"endless space": asJSON("application/json", ``, "        "),
		"text":          asJSON("text/plain", "# ", "kubernetes_feature_enabled{name=\"a\"} 1\n"),
		"bomb": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed(`{"kind":"APIGroupList","a":"`))
			for chunk := packed(strings.Repeat("a", 1<<20)); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
	}
}

// packed returns a gzip file. Several of them, one after the other, are one too.
func packed(text string) []byte {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = io.WriteString(writer, text)
	_ = writer.Close()
	return out.Bytes()
}

// Whatever an API server sends, it is read with a limit: the error says which URL, and the limit.
func TestHostileAnswers(t *testing.T) {
	configMaps := Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	asks := map[string]func(c *Client) error{
		"discovery": func(c *Client) error { return c.Discover(t.Context()) },
		"OpenAPI": func(c *Client) error {
			_, err := c.OpenAPI(t.Context(), schema.GroupVersion{Version: "v1"})
			return err
		},
		"list": func(c *Client) error { _, err := c.List(t.Context(), configMaps, "", metav1.ListOptions{}); return err },
		"objects": func(c *Client) error {
			_, err := c.ListObjects(t.Context(), configMaps, metav1.ListOptions{})
			return err
		},
		"get": func(c *Client) error {
			_, err := c.Get(t.Context(), Object{Resource: configMaps, Name: "a"})
			return err
		},
		"metrics": func(c *Client) error { _, err := c.Samples(t.Context(), featureMetric); return err },
		"version": func(c *Client) error { _, err := c.Version(t.Context()); return err },
		"review": func(c *Client) error {
			_, err := c.Missing(t.Context(), []Right{{Verb: "get", Resource: "pods"}})
			return err
		},
		"request under test": func(c *Client) error {
			_, err := c.Send(t.Context(), HTTPRequest{Method: http.MethodGet, Path: "/x"})
			return err
		},
	}
	for answer, write := range hostileAnswers() {
		for ask, do := range asks {
			t.Run(answer+"/"+ask, func(t *testing.T) {
				c := serve(t, func(w http.ResponseWriter, _ *http.Request) { write(w) })
				err := do(c)
				if limit := (*LimitError)(nil); !errors.As(err, &limit) || !strings.Contains(err.Error(), c.Host()) || !strings.Contains(err.Error(), "the limit is 67108864 bytes") {
					t.Errorf("got %.300v, want a LimitError with the host", err)
				}
			})
		}
	}
}

// A response that does not begin, or never ends, is an error after a time, and is not repeated.
func TestSlowAnswers(t *testing.T) {
	for name, begin := range map[string]string{"no header": "", "drips": `{"a":"`} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if begin != "" {
					_, _ = io.WriteString(w, begin)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			})
			c.http.Transport.(*retrying).next = limitedResponses{http.DefaultTransport, 50 * time.Millisecond}
			limit := (*LimitError)(nil)
			if err := c.Discover(t.Context()); !errors.As(err, &limit) || !strings.Contains(err.Error(), "/api: the API server sends too") || !strings.Contains(err.Error(), "the limit is 50ms") {
				t.Errorf("Discover = %v, want a LimitError", err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// Discovery ends with its context.
func TestDiscoverInterrupted(t *testing.T) {
	for _, stopAt := range []string{"/api", "/apis", "/apis/g7.example.com/v1"} {
		t.Run(stopAt, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == stopAt {
					cancel()
					<-r.Context().Done()
					return
				}
				unaggregated(w, r, 1000)
			})
			began := time.Now()
			if err := c.Discover(ctx); !errors.Is(err, context.Canceled) || time.Since(began) > 2*time.Second {
				t.Errorf("Discover = %v after %s, want context.Canceled at once", err, time.Since(began))
			}
		})
	}
}

// unaggregated serves a discovery with n groups, in many responses.
func unaggregated(w http.ResponseWriter, r *http.Request, n int) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/api":
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
	case "/apis":
		_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[{"name":"g0.example.com","versions":[{"version":"v1"}]}`)
		for i := range n - 1 {
			_, _ = fmt.Fprintf(w, `,{"name":"g%d.example.com","versions":[{"version":"v1"}]}`, i+1)
		}
		_, _ = io.WriteString(w, `]}`)
	default:
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","resources":[{"name":"widgets","kind":"Widget","verbs":["get"]}]}`)
	}
}

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
