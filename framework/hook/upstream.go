package hook

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admissiontest/admissiontest/framework"
)

// Upstream is a webhook under test. A Hook that has one is a proxy: it records each call, sends
// the same bytes to the webhook, and answers what the webhook answered.
//
// The Script of such a Hook misbehaves in front of the webhook: it can have Meanwhile, Barrier and
// Delay, which come before the webhook is called, and HTTP and Fault, which change its answer. Its
// zero value changes nothing.
//
// If the webhook cannot be called, the answer is 502 with a metav1.Status whose message is what an
// API server says that calls the webhook itself.
type Upstream struct {
	// URL is the https URL to call. The query of the call is added.
	URL string
	// CABundle are the certificate authorities to trust, in PEM, as in a clientConfig. Empty
	// means the CAs of this machine.
	CABundle []byte
	// ServiceName is SERVICE.NAMESPACE.svc. The certificate of the webhook must be valid for it
	// or for the host of the URL.
	ServiceName string
}

// check returns an error if the Upstream cannot be called.
func (u *Upstream) check() error {
	if u == nil {
		return nil
	}
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return fmt.Errorf("Upstream: %w; want https://HOST:PORT/PATH", err)
	}
	if parsed.Scheme != "https" || parsed.Host == "" || parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("Upstream: got URL %q, want https://HOST:PORT/PATH", u.URL)
	}
	return nil
}

// parsed returns the URL, which check has accepted.
func (u *Upstream) parsed() *url.URL {
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return &url.URL{}
	}
	return parsed
}

// http2 reports whether an API server offers HTTP/2: only to a URL on its own machine.
func (u *Upstream) http2() bool {
	host := u.parsed().Hostname()
	ip := net.ParseIP(host)
	return u.ServiceName == "" && (strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback())
}

// describe sets the fields of a call that depend on its address, as if the API server had called the
// webhook itself.
func (u *Upstream) describe(call *framework.Call) {
	call.URL, call.Path, call.ServerName, call.Protocols = u.URL, cmp.Or(u.parsed().Path, "/"), u.ServiceName, []string{"http/1.1"}
	if u.http2() {
		call.Protocols = []string{"h2", "http/1.1"}
	}
	if host := u.parsed().Hostname(); u.ServiceName == "" && net.ParseIP(host) == nil {
		call.ServerName = host
	}
}

// key identifies the connections that calls can share.
func (u *Upstream) key() string {
	return u.URL + "\n" + u.ServiceName + "\n" + string(u.CABundle)
}

// largestAnswer limits the answer of an Upstream that is kept in memory. An answer with a patch
// is hardly larger than two objects: see largestCall.
const largestAnswer = 2 * largestCall

// proxies has the connections to Upstreams, by key.
type proxies struct {
	mu    sync.Mutex
	byKey map[string]*http.Transport
}

// transport returns the connections to an Upstream. They are made as an API server makes them:
// k8s.io/apiserver/pkg/util/webhook/client.go.
func (p *proxies) transport(to *Upstream) (*http.Transport, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.byKey[to.key()]; found != nil {
		return found, nil
	}
	config, err := to.tls(to.parsed().Hostname())
	if err != nil {
		return nil, err
	}
	made := &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: handshakeTimeout, Protocols: &http.Protocols{},
		MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: idleTimeout,
		DisableCompression: true, // the bytes of an answer are not changed
	}
	made.Protocols.SetHTTP1(true)
	made.Protocols.SetHTTP2(to.http2())
	p.byKey[to.key()] = made
	return made, nil
}

const (
	handshakeTimeout = 10 * time.Second // that of client-go
	idleConnections  = 25               // that of client-go
)

// close closes the connections.
func (p *proxies) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.byKey {
		one.CloseIdleConnections()
	}
}

// tls returns the configuration of connections to a host. The certificate is verified as crypto/tls
// does it, with one name more.
func (u *Upstream) tls(host string) (*tls.Config, error) {
	var roots *x509.CertPool // nil means the CAs of this machine
	if len(u.CABundle) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(u.CABundle) {
			return nil, errors.New("unable to load root certificates: unable to parse bytes as PEM block")
		}
	}
	return &tls.Config{
		ServerName: host, RootCAs: roots, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("tls: the server sent no certificate")
			}
			intermediates := x509.NewCertPool()
			for _, one := range state.PeerCertificates[1:] {
				intermediates.AddCert(one)
			}
			served, name := state.PeerCertificates[0], host
			if u.ServiceName != "" && served.VerifyHostname(host) != nil && served.VerifyHostname(u.ServiceName) == nil {
				name = u.ServiceName
			}
			_, err := served.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, DNSName: name})
			if err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
			}
			return nil
		},
	}, nil
}

// answerByProxy answers what the Upstream answers.
func (v *visit) answerByProxy() {
	response, err := v.proxied()
	switch {
	case err != nil && v.ctx.Err() != nil:
		v.finish("no answer: the client disconnected")
		v.drop(false)
	case err != nil:
		v.sendUnreachable(err)
	default:
		v.send(response)
	}
}

// proxied calls the Upstream and returns its answer, as the Reply changes it. If there is an error,
// the connection failed and there is no answer.
func (v *visit) proxied() (answer, error) {
	response, body, err := v.callUpstream() //nolint:bodyclose // callUpstream closes it
	if err != nil {
		return answer{}, err
	}
	made := answer{
		code: response.StatusCode, header: endToEnd(response.Header), body: body,
		fault: v.reply.Fault, response: responseIn(body),
	}
	made.text = fmt.Sprintf("HTTP %d", response.StatusCode)
	if response.StatusCode < http.StatusMultipleChoices {
		made.text = describeResponse(made.response)
	}
	if len(response.Header["Content-Type"]) == 0 {
		made.header["Content-Type"] = nil // net/http would guess one
	}
	if v.reply.Fault == NoFault && v.reply.HTTP == nil {
		return made, nil
	}
	made.header.Del("Content-Length")
	if made.body, err = misbehaving(body, v.reply.Fault); err != nil {
		return answer{}, err
	}
	made.misbehave()
	made.replace(v.reply.HTTP)
	made.response = responseIn(made.body)
	made.text = fmt.Sprintf("%s, the webhook answered: %s", cmp.Or(string(v.reply.Fault), fmt.Sprintf("HTTP %d", made.code)), made.text)
	return made, nil
}

// misbehaving returns the body of an AdmissionReview with a Fault. A body that the Fault does not
// change stays the same, byte for byte.
func misbehaving(body []byte, fault Fault) ([]byte, error) {
	var review map[string]any
	if utiljson.Unmarshal(body, &review) != nil {
		return body, nil //nolint:nilerr // such a body has no field that a Fault could change
	}
	before := runtime.DeepCopyJSON(review)
	if misbehave(review, fault); reflect.DeepEqual(before, review) {
		return body, nil
	}
	return json.Marshal(review)
}

// callUpstream sends the call to the Upstream. The error is what an API server says.
func (v *visit) callUpstream() (*http.Response, []byte, error) {
	address := v.hook.Upstream.URL
	if query := v.request.URL.RawQuery; query != "" {
		address += "?" + query
	}
	failed := func(err error) error { return &url.Error{Op: "Post", URL: address, Err: err} }
	transport, err := v.proxies.transport(v.hook.Upstream)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequestWithContext(v.ctx, v.request.Method, address, bytes.NewReader(v.body))
	if err != nil {
		return nil, nil, err
	}
	request.Header = endToEnd(v.request.Header)
	request.Header.Del("Accept-Encoding")       // so that the answer can be read here
	client := http.Client{Transport: transport} // it follows redirects, as that of an API server
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	v.owner.mu.Lock()
	v.call.Proto = response.Proto
	v.owner.mu.Unlock()
	body, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer+1))
	switch {
	case err != nil:
		return nil, nil, failed(err)
	case len(body) > largestAnswer:
		return nil, nil, failed(fmt.Errorf("the answer has more than %d bytes, which admissiontest does not pass on", largestAnswer))
	}
	return response, body, nil
}

// sendUnreachable answers that the Upstream cannot be called. A client of Kubernetes takes the
// message of a metav1.Status as the error of the call.
func (v *visit) sendUnreachable(err error) {
	v.finish("no answer: " + err.Error())
	body, _ := json.Marshal(metav1.Status{ // it can always be encoded
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Message: err.Error(), Reason: metav1.StatusReasonServiceUnavailable, Code: http.StatusBadGateway,
	})
	v.writer.Header().Set("Content-Type", "application/json")
	v.writer.WriteHeader(http.StatusBadGateway)
	_, _ = v.writer.Write(body) // a client that has disconnected needs no answer
}

// endToEnd returns a header without the fields that are about one connection.
// See https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
func endToEnd(header http.Header) http.Header {
	out := header.Clone()
	for _, names := range header["Connection"] {
		for name := range strings.SplitSeq(names, ",") {
			out.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		out.Del(name)
	}
	return out
}
