package check

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/admissiontest/admissiontest/internal/rule"
)

const (
	// maxAnswer is how many bytes an answer can have, beside twice the bytes of its review: a patch can have the whole object, in
	// base64. An API server keeps each answer in memory until its request ends, and takes requests of 3 MiB at most.
	maxAnswer = 3 << 20
	// impatient is how long a call may take after another call did not return in time.
	impatient = 100 * time.Millisecond
)

// endpoint is where webhooks are called: a handler, or a URL.
type endpoint struct {
	handler http.Handler
	base    *url.URL
	host    string // of the requests; empty means that of base
	client  *http.Client
	tls     *tls.Config
	// hung is the limit within which an earlier call did not return. 0 means that there is none.
	hung atomic.Int64
}

// at returns the endpoint of another replica.
func (e *endpoint) at(address string) (*endpoint, error) {
	if e.base == nil {
		return nil, errors.New("a Handler has no Replicas: set URL")
	}
	base, err := parseAddress(address)
	return &endpoint{base: base, host: e.host, client: e.client, tls: e.tls}, err
}

func parseAddress(address string) (*url.URL, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("%q; want an address such as https://127.0.0.1:9443", address)
	}
	return base, nil
}

// newEndpoint returns the endpoint of a Subject.
func newEndpoint(s Subject) (*endpoint, error) {
	switch {
	case s.Handler != nil && s.URL != "":
		return nil, errors.New("both Handler and URL are set: set one of them")
	case s.Handler != nil:
		return &endpoint{handler: s.Handler}, nil
	case s.URL == "":
		return nil, errors.New("neither Handler nor URL is set: set one of them")
	}
	base, err := parseAddress(s.URL)
	if err != nil {
		return nil, fmt.Errorf("URL is %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	if len(s.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(s.CA) {
			return nil, errors.New("CA has no certificate; want PEM certificates")
		}
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &endpoint{base: base, host: s.ServerName, client: client, tls: config}, nil
}

// address returns the URL of a webhook with a path, unless the address of the endpoint has one.
func (e *endpoint) address(path string) *url.URL {
	if e.base == nil {
		return &url.URL{Scheme: "https", Host: "webhook.invalid", Path: path}
	}
	address := *e.base
	if address.Path == "" || address.Path == "/" {
		address.Path = path
	}
	return &address
}

// dialLimit is how long dial waits for a connection.
const dialLimit = 10 * time.Second

// dial returns why no TLS connection to a URL is possible: nothing runs there, or its certificate is not trusted.
func (e *endpoint) dial(ctx context.Context) error {
	if e.base == nil {
		return nil
	}
	ctx, _, cancel := rule.WithLimit(ctx, dialLimit)
	defer cancel()
	dialer := tls.Dialer{Config: e.tls}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(e.base.Hostname(), cmp.Or(e.base.Port(), "443")))
	if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
		return fmt.Errorf("the certificate of the webhook at %s is not trusted: %w; want CA (the certificates of its issuer) and ServerName (a name that it has)", e.base.Host, untrusted.Err)
	}
	if err != nil {
		return fmt.Errorf("connect to the webhook: %w", err)
	}
	return connection.Close()
}

// Raw is an HTTP request to a webhook.
type Raw struct {
	Method, ContentType string // empty means POST and application/json
	Path                string // empty means that of the webhook
	Body                io.Reader
	// Authorization is that header. Nil means a good token if the Subject has Tokens, and no header otherwise.
	Authorization *string
	Limit         time.Duration // of the call; for SendRaw, 0 means the timeout of the webhook, and callLimit at least
}

// NoAnswerError is the error of a call that the webhook did not answer within its limit.
type NoAnswerError string

// Error implements error.
func (e NoAnswerError) Error() string { return string(e) }

// reply is the response to a Raw.
type reply struct {
	err    error
	status int
	body   []byte
}

// send sends a request. It returns an error if the webhook does not answer within the limit, or panics.
func (e *endpoint) send(ctx context.Context, path string, raw Raw) reply {
	hung, limit := time.Duration(e.hung.Load()), raw.Limit
	if hung != 0 {
		limit = min(limit, impatient)
	}
	parent := ctx
	ctx, _, cancel := rule.WithLimit(parent, limit) // time in which this process does not run is not the webhook's
	defer cancel()
	if raw.Method == "" {
		raw.Method = http.MethodPost
	}
	address := e.address(path)
	if raw.Path != "" {
		address.Path = raw.Path
	}
	address.RawQuery = fmt.Sprintf("timeout=%ds", max(1, int(limit/time.Second)))
	request, err := http.NewRequestWithContext(ctx, raw.Method, address.String(), raw.Body)
	if err != nil {
		return reply{err: err}
	}
	if e.host != "" {
		request.Host = e.host
	}
	if raw.ContentType == "" {
		raw.ContentType = "application/json"
	}
	request.Header.Set("Content-Type", raw.ContentType)
	request.Header.Set("Accept", "application/json, */*")
	if raw.Authorization != nil && *raw.Authorization != "" {
		request.Header.Set("Authorization", *raw.Authorization)
	}
	var got reply
	if e.handler != nil {
		got = e.serve(request)
	} else {
		got = e.post(request)
	}
	switch {
	case ctx.Err() != nil && parent.Err() == nil: // also without an error: a server that sees the end of the request can end its answer
		if got.err = NoAnswerError(fmt.Sprintf("it did not answer within %s", limit)); hung != 0 {
			got.err = NoAnswerError(fmt.Sprintf("an earlier call was not answered within %s, and this one not within %s", hung, limit))
		}
		e.hung.CompareAndSwap(0, int64(limit))
	case got.err == nil:
		e.hung.Store(0)
	}
	return got
}

// post sends a request to the URL.
func (e *endpoint) post(request *http.Request) reply {
	response, err := e.client.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer response.Body.Close() //nolint:errcheck // it is only read
	most := longest(request)
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	if len(body) > most {
		return reply{status: response.StatusCode, err: tooLong(most)}
	}
	return reply{status: response.StatusCode, body: body, err: err}
}

// longest returns how many bytes the answer to a request can have.
func longest(request *http.Request) int { return maxAnswer + 2*int(max(0, request.ContentLength)) }

func tooLong(most int) error { return fmt.Errorf("the answer has more than %d MiB", most>>20) }

// serve calls the handler in a goroutine of its own, which is left behind if the handler does not return.
func (e *endpoint) serve(request *http.Request) reply {
	request.RequestURI = request.URL.RequestURI()
	request.RemoteAddr = "127.0.0.1:40000"
	if request.Body == nil {
		request.Body = http.NoBody
	}
	w, done := &writer{ResponseRecorder: httptest.NewRecorder(), most: longest(request)}, make(chan error, 1)
	go func() {
		defer func() {
			if thrown := recover(); thrown != nil {
				done <- fmt.Errorf("the handler panicked: %v\n%s", thrown, debug.Stack())
			}
		}()
		e.handler.ServeHTTP(w, request)
		done <- nil
	}()
	select {
	case err := <-done:
		return w.reply(err)
	case <-request.Context().Done():
		return reply{err: request.Context().Err()}
	}
}

// writer keeps what a handler writes.
type writer struct {
	*httptest.ResponseRecorder
	most    int // bytes
	tooLong bool
}

// Write implements http.ResponseWriter.
func (w *writer) Write(data []byte) (int, error) {
	if w.tooLong = w.tooLong || w.Body.Len()+len(data) > w.most; w.tooLong {
		return 0, tooLong(w.most)
	}
	return w.ResponseRecorder.Write(data)
}

// WriteString implements io.StringWriter.
func (w *writer) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

func (w *writer) reply(err error) reply {
	if w.tooLong && err == nil {
		err = tooLong(w.most)
	}
	return reply{err: err, status: w.Code, body: w.Body.Bytes()}
}

// Host is the host and port of the URL.
func (p *Prepared) Host() string {
	if p.endpoint.base == nil {
		return ""
	}
	if p.endpoint.base.Port() == "" {
		return p.endpoint.base.Hostname() + ":443"
	}
	return p.endpoint.base.Host
}
