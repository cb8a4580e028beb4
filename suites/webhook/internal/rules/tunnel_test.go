package rules_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
)

// tunnel returns the address of a tunnel to a server that is like a slow port-forward: it takes all that is sent, and forwards
// it when nothing has come for 200 ms.
func tunnel(t *testing.T, to net.Addr) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	carry := func(from net.Conn) {
		defer from.Close()
		into, err := net.Dial(to.Network(), to.String())
		if err != nil {
			return
		}
		defer into.Close()
		go func() {
			_, _ = io.Copy(from, into)
			_ = from.Close()
		}()
		chunk := make([]byte, 64<<10)
		for ended := false; !ended; {
			var taken []byte
			for {
				_ = from.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				n, err := from.Read(chunk)
				taken = append(taken, chunk[:n]...)
				if err != nil {
					ended = !errors.Is(err, os.ErrDeadlineExceeded)
					break
				}
			}
			if _, err := into.Write(taken); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go carry(from)
		}
	}()
	return "https://" + listener.Addr().String()
}

// TestBodyThroughTunnel: what a tunnel takes of a body is not what the webhook reads.
func TestBodyThroughTunnel(t *testing.T) {
	t.Parallel()
	hangs := func(_ *httptest.Server, end <-chan struct{}) { <-end }
	for name, test := range map[string]struct {
		fault  fault
		large  func(server *httptest.Server, end <-chan struct{}) // what the server does first with a body of unknown length
		want   framework.Verdict
		reason string
	}{
		"sound":     {want: framework.Pass},
		"unlimited": {fault: fault{unlimited: true}, want: framework.Fail, reason: "not refused before half of it was read"},
		"closes":    {large: func(*httptest.Server, <-chan struct{}) { panic(http.ErrAbortHandler) }, want: framework.Pass},
		"hangs":     {large: hangs, want: framework.Inconclusive, reason: "it did not answer within"},
		"ends": {
			large: func(server *httptest.Server, _ <-chan struct{}) {
				_ = server.Listener.Close()
				panic(http.ErrAbortHandler)
			},
			want: framework.Inconclusive, reason: "Post ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, end := soundSubject(test.fault), make(chan struct{})
			handler, server := s.Handler, (*httptest.Server)(nil)
			server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength < 0 && test.large != nil {
					test.large(server, end)
				}
				handler.ServeHTTP(w, r)
			}))
			t.Cleanup(func() {
				close(end)
				server.Close()
			})
			s = at(server, s)
			s.URL = tunnel(t, server.Listener.Addr())
			if o := checkOne(t, s, "WH-ROBUST-2", 2*time.Minute); o.Verdict != test.want || !strings.Contains(o.Reason, test.reason) {
				t.Errorf("got %s (%s), want %s (%s)", o.Verdict, o.Reason, test.want, test.reason)
			}
		})
	}
}
