package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"

	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// The placeholders in the arguments of Subject.Process.
const (
	portPlaceholder    = "{port}"
	certDirPlaceholder = processes.CertDirPlaceholder
)

// startLimit is how long a program may take until it answers.
const startLimit = 20 * time.Second

// Process is a running program of the Subject, which only the rule that started it calls.
type Process struct {
	program *processes.Program
	address string
	path    string
	certDir string
	ended   chan error
	stopped bool
}

// StartProcess starts the program of the Subject, and waits until it answers the review of a case.
func (t *T) StartProcess(c Case) (*Process, error) {
	certDir, err := userfile.MkdirTemp("admissiontest-webhook-")
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(certDir) })
	p := &Process{path: t.Path, certDir: certDir, ended: make(chan error, 1)}
	if err := p.Renew(); err != nil {
		return nil, err
	}
	if p.address, err = freeAddress(t.Context()); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(p.address)
	command := make([]string, len(t.Process))
	for i, argument := range t.Process {
		command[i] = strings.NewReplacer(portPlaceholder, port, certDirPlaceholder, certDir).Replace(argument)
	}
	p.program, err = processes.StartProgram(processes.ProgramOptions{Command: command, Ended: func(err error) { p.ended <- err }})
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.Stop)
	client := p.Client()
	defer client.Close()
	var last error
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, startLimit, true, func(ctx context.Context) (bool, error) {
		select {
		case err := <-p.ended:
			return false, err
		default:
		}
		_, last = client.Call(ctx, Encode(t.Review(c.Request)))
		return last == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait until the program answers at %s: %w", p.address, errors.Join(err, last))
	}
	return p, nil
}

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// Stop sends SIGTERM to the program and waits until it has ended. The second call does nothing.
func (p *Process) Stop() {
	if !p.stopped {
		p.stopped = true
		_, _ = p.program.Stop() // how it ends is not what the rules are about
	}
}

// Renew writes a new certificate and key into the folder of the program, as a kubelet updates a mounted Secret:
// tls.crt and tls.key are links into a folder that is replaced at once.
func (p *Process) Renew() error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	version := fmt.Sprintf("..%d", time.Now().UnixNano())
	data, link := filepath.Join(p.certDir, "..data"), filepath.Join(p.certDir, "..data_tmp")
	errs := []error{
		os.Mkdir(filepath.Join(p.certDir, version), 0o700),
		os.WriteFile(filepath.Join(p.certDir, version, "tls.crt"), certificate, 0o600),
		os.WriteFile(filepath.Join(p.certDir, version, "tls.key"), key, 0o600),
		os.Symlink(version, link),
		os.Rename(link, data),
	}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(p.certDir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// RenewalLimit is how long a program may use the old certificate after Renew.
func (p *Prepared) RenewalLimit() time.Duration {
	if p.renewal == 0 {
		return 2 * time.Minute
	}
	return p.renewal
}

// SetRenewalLimit is for tests of the rule.
func (p *Prepared) SetRenewalLimit(limit time.Duration) { p.renewal = limit }

// Newest reports whether a new connection gets the certificate that Renew wrote last.
func (p *Process) Newest(ctx context.Context) (bool, error) {
	text, err := os.ReadFile(filepath.Join(p.certDir, "tls.crt"))
	if err != nil {
		return false, err
	}
	block, _ := pem.Decode(text)
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the certificates are compared
	connection, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		return false, err
	}
	defer func() { _ = connection.Close() }()
	state := connection.(*tls.Conn).ConnectionState() //nolint:forcetypeassert // a tls.Dialer returns one
	return bytes.Equal(state.PeerCertificates[0].Raw, block.Bytes), nil
}

// Client calls a Process over a connection that it keeps open, as an API server does.
type Client struct {
	http    *http.Client
	address string
}

// Client returns a client with a connection of its own.
func (p *Process) Client() *Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 1} //nolint:gosec // a self-signed certificate of this process
	return &Client{&http.Client{Transport: transport, Timeout: callLimit}, "https://" + p.address + p.path}
}

// Close closes the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ErrNotConnected means: the call had no connection over which the program has answered before. A client connects to
// another program then.
var ErrNotConnected = errors.New("no connection")

// Call sends the encoded review, and returns the body of the answer. The error is an ErrNotConnected if no connection
// could be made, or if a new one does not work.
func (c *Client) Call(ctx context.Context, review []byte) ([]byte, error) {
	return c.call(ctx, bytes.NewReader(review), len(review))
}

// slowPart is how many blanks the first part of a slow call has: more than a transport keeps before it writes.
const slowPart = 16 << 10

// CallSlowly is Call, and sends the review when rest is closed. Before that it sends the beginning of the request, and
// closes begun.
func (c *Client) CallSlowly(ctx context.Context, review []byte, begun chan<- struct{}, rest <-chan struct{}) ([]byte, error) {
	reader, writer := io.Pipe()
	defer func() { _ = reader.Close() }() // ends the writer
	go func() {
		_, _ = writer.Write(bytes.Repeat([]byte(" "), slowPart)) // an error here is one of the request
		close(begun)
		select {
		case <-rest:
		case <-ctx.Done():
		}
		_, err := writer.Write(review)
		_ = writer.CloseWithError(err)
	}()
	return c.call(ctx, reader, slowPart+len(review))
}

func (c *Client) call(ctx context.Context, text io.Reader, length int) ([]byte, error) {
	kept := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(of httptrace.GotConnInfo) { kept = of.Reused }})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, text)
	if err != nil {
		return nil, err
	}
	request.ContentLength = int64(length)
	request.GetBody = nil // the client must not send it again by itself
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	switch {
	case err != nil && !kept:
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	case err != nil:
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it is only read
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP status %d", response.StatusCode)
	}
	return body, err
}
