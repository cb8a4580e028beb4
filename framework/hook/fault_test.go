package hook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// TestFaultsOfTheAnswer shows what a caller gets in whole.
func TestFaultsOfTheAnswer(t *testing.T) {
	for fault, want := range map[hook.Fault]struct {
		code int
		body func(string) bool
	}{
		hook.HTTP404:           {404, is("404 page not found\n")},
		hook.HTTP500:           {500, has(`"allowed":true`)},
		hook.Redirect:          {302, has(`"allowed":true`)},
		hook.Empty:             {200, is("")},
		hook.NotJSON:           {200, func(body string) bool { return body != "" && !json.Valid([]byte(body)) }},
		hook.NoResponse:        {200, is(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`)},
		hook.WrongUID:          {200, hasNot(`"uid":"u-1"`)},
		hook.WrongKind:         {200, hasNot(`"kind":"AdmissionReview"`)},
		hook.WrongVersion:      {200, has(`"apiVersion":"admission.k8s.io/v1beta1"`)},
		hook.PatchWithoutType:  {200, both(has(`"patch":"`), hasNot("patchType"))},
		hook.UnknownPatchType:  {200, both(has(`"patch":"`), hasNot(`"JSONPatch"`))},
		hook.MalformedPatch:    {200, both(has(`"patch":"ey`), has(`"JSONPatch"`))}, // an object in base64
		hook.InapplicablePatch: {200, both(has(`"patch":"W3`), has(`"JSONPatch"`))}, // a list in base64
	} {
		t.Run(string(fault), func(t *testing.T) {
			server := start(t)
			c := register(t, server, "o", hook.Reply{Fault: fault}, hook.Reply{})
			got := c.call(t)
			if got.StatusCode != want.code || !want.body(string(got.body)) {
				t.Errorf("got %d %q, want %d and the body that the fault says", got.StatusCode, got.body, want.code)
			}
			if got.Header.Get("Location") != "" {
				t.Errorf("got Location %q, want none", got.Header.Get("Location"))
			}
			if sound := c.call(t); sound.StatusCode == want.code && want.body(string(sound.body)) {
				t.Errorf("a sound answer passes for the fault: %q", sound.body)
			}
			calls := server.Calls("o")
			if calls[0].Answer != string(fault) || calls[0].Finished.IsZero() {
				t.Errorf("got answer %q finished %v, want the fault's name and a time", calls[0].Answer, calls[0].Finished)
			}
		})
	}
}

func TestWrongVersionOfBeta(t *testing.T) {
	got, err := register(t, start(t), "o", hook.Reply{Fault: hook.WrongVersion}).post(t.Context(), review(v1beta1, "u"))
	if err != nil || got.review(t)["apiVersion"] != v1 {
		t.Errorf("got %q, %v; want v1 for v1beta1", got.body, err)
	}
}

func TestReset(t *testing.T) {
	server := start(t)
	_, err := register(t, server, "o", hook.Reply{Fault: hook.Reset}).post(t.Context(), review(v1, "u"))
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a connection reset", err)
	}
	if calls := server.Calls("o"); len(calls) != 1 || calls[0].Answer != "reset" || calls[0].Finished.IsZero() {
		t.Errorf("got %+v, want one call answered with reset", calls)
	}
}

// TestEndless shows that what never ends does end when the caller gives up, when
// the owner is forgotten and when the Server closes.
func TestEndless(t *testing.T) {
	for _, reply := range []hook.Reply{
		{Fault: hook.Hang}, {Fault: hook.Slow}, {Delay: hook.Duration(time.Hour)}, {Barrier: "b", BarrierSize: 2},
	} {
		for name, end := range map[string]func(*recorder, context.CancelFunc){
			"caller": func(_ *recorder, giveUp context.CancelFunc) { giveUp() },
			"forget": func(server *recorder, _ context.CancelFunc) { server.Unregister("o") },
			"close":  func(server *recorder, _ context.CancelFunc) { _ = server.Close() },
		} {
			t.Run(name+"/"+string(reply.Fault)+reply.Barrier, func(t *testing.T) {
				server := start(t)
				c := register(t, server, "o", reply)
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				done := make(chan error, 1)
				go func() {
					_, err := c.post(ctx, review(v1, "u"))
					done <- err
				}()
				until(t, "the call arrives", func() bool { return len(server.Calls("o")) == 1 })
				if call := server.Calls("o")[0]; !call.Finished.IsZero() {
					t.Errorf("got finished %v, want an open call", call.Finished)
				}
				end(server, giveUp)
				select {
				case err := <-done:
					answered := name == "forget" && reply.Fault == hook.NoFault
					if (err == nil) != answered {
						t.Errorf("got error %v, want an answer: %t", err, answered)
					}
				case <-time.After(patience):
					t.Fatal("the call did not end")
				}
				if name == "caller" {
					until(t, "the call is finished", func() bool { return !server.Calls("o")[0].Finished.IsZero() })
				}
			})
		}
	}
}

// TestSlow shows that the header comes at once and the body byte by byte.
func TestSlow(t *testing.T) {
	c := register(t, start(t), "o", hook.Reply{Fault: hook.Slow})
	ctx, giveUp := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(review(v1, "u")))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("got %d, want 200", response.StatusCode)
	}
	buffer := make([]byte, 100)
	if n, err := response.Body.Read(buffer); n != 1 || err != nil || buffer[0] != '{' {
		t.Errorf("got %d bytes, %v; want one at a time", n, err)
	}
	giveUp()
	if _, err := io.Copy(io.Discard, response.Body); err == nil {
		t.Error("got the end of the body, want none")
	}
}

func TestOversize(t *testing.T) {
	server := start(t)
	c := register(t, server, "o", hook.Reply{Fault: hook.Oversize})
	response, err := c.client.Post(c.url, "application/json", bytes.NewReader(review(v1, "u")))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	size, err := io.Copy(io.Discard, response.Body)
	if err != nil || size < 8<<20 {
		t.Errorf("got %d bytes, %v; want 8 MiB and more", size, err)
	}
	// A caller that stops reading early is none of the Server's trouble.
	response, err = c.client.Post(c.url, "application/json", bytes.NewReader(review(v1, "u")))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	until(t, "the call is finished", func() bool { return !server.Calls("o")[1].Finished.IsZero() })
}

// TestFaultsOfTheConnection shows what a caller gets before it can send anything,
// and that a sound Hook of the same Server is not touched by it.
func TestFaultsOfTheConnection(t *testing.T) {
	var unknownCA x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var wrongName x509.HostnameError
	for fault, sees := range map[hook.Fault]func(error) bool{
		hook.Refused:      func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) },
		hook.TLSWrongCA:   func(err error) bool { return errors.As(err, &unknownCA) },
		hook.TLSExpired:   func(err error) bool { return errors.As(err, &invalid) && invalid.Reason == x509.Expired },
		hook.TLSWrongName: func(err error) bool { return errors.As(err, &wrongName) },
	} {
		t.Run(string(fault), func(t *testing.T) {
			server := start(t)
			c := register(t, server, "o", hook.Reply{Fault: fault})
			if got, err := c.post(t.Context(), review(v1, "u")); !sees(err) {
				t.Errorf("got %q, %v; want the error of the fault", got.body, err)
			}
			if calls := server.Calls("o"); len(calls) != 0 {
				t.Errorf("got calls %+v, want none", calls)
			}
			register(t, server, "sound").call(t)
			again, err := server.Register(hook.Hook{
				Owner: "other", Configuration: "c", Webhook: "w", Phase: framework.Validating,
				Script: hook.Script{Replies: []hook.Reply{{Fault: fault}}},
			})
			if err != nil || host(t, again.URL) != host(t, c.url) {
				t.Errorf("got %s, %v; want the place of %s once more", again.URL, err, c.url)
			}
		})
	}
}

func TestRefusedPortIsHeld(t *testing.T) {
	c := register(t, start(t), "o", hook.Reply{Fault: hook.Refused})
	if taken, err := net.Listen("tcp", host(t, c.url)); err == nil {
		taken.Close()
		t.Errorf("another process could listen on %s, want the port held", c.url)
	}
}

// TestTLSHang: the handshake does not end before the caller or the Server does.
func TestTLSHang(t *testing.T) {
	for name, end := range map[string]func(*recorder, context.CancelFunc){
		"caller": func(_ *recorder, giveUp context.CancelFunc) { giveUp() },
		"close":  func(server *recorder, _ context.CancelFunc) { _ = server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			c := register(t, server, "o", hook.Reply{Fault: hook.TLSHang})
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			connected, ended := make(chan struct{}), make(chan struct{})
			trace := &httptrace.ClientTrace{TLSHandshakeStart: func() { close(connected) }}
			done := make(chan error, 1)
			go func() {
				defer close(ended)
				_, err := c.post(httptrace.WithClientTrace(ctx, trace), review(v1, "u"))
				done <- err
			}()
			eventually(t, "the handshake begins", connected)
			select {
			case err := <-done:
				t.Fatalf("got %v, want a handshake that does not end", err)
			case <-time.After(50 * time.Millisecond):
			}
			end(server, giveUp)
			eventually(t, "the call ends", ended)
			if err := <-done; err == nil || len(server.Calls("o")) != 0 {
				t.Errorf("got %v and calls %v, want an error and none", err, server.Calls("o"))
			}
		})
	}
}

// A call by a client that does not verify certificates is recorded.
func TestCallWithoutVerification(t *testing.T) {
	server := start(t)
	c := register(t, server, "o", hook.Reply{Fault: hook.TLSExpired})
	c.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	if allowed := c.call(t).response(t)["allowed"]; allowed != true || len(server.Calls("o")) != 1 {
		t.Errorf("got allowed %v and calls %v, want it allowed and recorded", allowed, server.Calls("o"))
	}
}

func host(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Host
}

func is(want string) func(string) bool { return func(got string) bool { return got == want } }
func has(part string) func(string) bool {
	return func(got string) bool { return strings.Contains(got, part) }
}
func hasNot(part string) func(string) bool {
	return func(got string) bool { return got != "" && !strings.Contains(got, part) }
}
func both(a, b func(string) bool) func(string) bool {
	return func(got string) bool { return a(got) && b(got) }
}
