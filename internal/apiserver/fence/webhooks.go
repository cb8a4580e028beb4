package fence

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// The limits of the wait for the webhooks under test.
const (
	// answerTimeout limits one attempt.
	answerTimeout = 5 * time.Second
	// answerInterval keeps the log of a webhook short.
	answerInterval = 100 * time.Millisecond
)

// Webhooks waits for the webhooks under test that Hooks call: see install.Endpoints. One that the API server calls by its
// Service is not waited for. The exported fields are required.
type Webhooks struct {
	Endpoints install.Endpoints
	// Run is the ID of the run.
	Run string
	// Limit limits the wait for each webhook.
	Limit time.Duration
	// Progress receives a line for each longer action.
	Progress func(string)

	mu       sync.Mutex
	answered map[string]bool // by URL
}

// Wait returns when each webhook under test in the configurations has accepted a connection, with a certificate that
// Hooks trust. Each URL is asked once in a run. The error says which webhook does not answer, and why.
func (w *Webhooks) Wait(ctx context.Context, manifests []map[string]any) error {
	for _, manifest := range manifests {
		list, _ := manifest["webhooks"].([]any)
		for _, item := range list {
			fields, _ := item.(map[string]any)
			clientConfig, _ := fields["clientConfig"].(map[string]any)
			_, known := w.Endpoints.ByAddress[install.AddressOf(clientConfig)]
			to, service := w.Endpoints.Upstream(clientConfig), install.ServiceOf(clientConfig)
			if service.Namespace != "" && to == nil && w.Endpoints.URLs && !strings.HasPrefix(service.Namespace, runid.Prefix(w.Run)) {
				return fmt.Errorf("call the webhook under test: Service %[1]s: an API server on this machine cannot call Services: give the URL of one that runs elsewhere with --endpoint %[1]s=URL", service)
			}
			if !known || to == nil || !w.first(to.URL) {
				continue
			}
			if err := w.waitFor(ctx, install.AddressOf(clientConfig), to); err != nil {
				return err
			}
		}
	}
	return nil
}

// first reports whether a URL was not asked yet.
func (w *Webhooks) first(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered == nil {
		w.answered = map[string]bool{}
	}
	asked := w.answered[address]
	w.answered[address] = true
	return !asked
}

func (w *Webhooks) waitFor(ctx context.Context, address string, to *hook.Upstream) error {
	w.Progress(fmt.Sprintf("waiting for the webhook under test: %s, called at %s", address, to.URL))
	var last error
	err := client.Poll(ctx, answerInterval, w.Limit, func() (bool, error) {
		last = handshake(ctx, to)
		return last == nil, nil
	})
	if errors.Is(err, framework.ErrTimeout) {
		// This error is not an ErrTimeout: the webhook is to blame, not the API server.
		return fmt.Errorf("wait for the webhook under test: %s, called at %s, does not answer within %s: %v; start it before the run, at the address that --endpoint gives, "+
			"with a certificate that is valid for the host that is called and signed by the caBundle or by --endpoint-ca %s=FILE; a PROGRAM can use the one in {cert-dir}", address, to.URL, w.Limit, last, address)
	}
	return err
}

// handshake connects to a webhook. Its certificate must be valid for the host of the URL or for its Service.
func handshake(ctx context.Context, to *hook.Upstream) (err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	address, err := url.Parse(to.URL)
	if err != nil {
		return err
	}
	var roots *x509.CertPool // nil means the CAs of this machine
	if len(to.CABundle) > 0 {
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(to.CABundle)
	}
	port := address.Port()
	if port == "" {
		port = fmt.Sprint(install.DefaultPort)
	}
	for _, name := range []string{address.Hostname(), to.ServiceName} {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}}
		var connection net.Conn
		if connection, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(address.Hostname(), port)); err == nil {
			return connection.Close()
		}
		if to.ServiceName == "" || !errors.As(err, new(x509.HostnameError)) {
			return err
		}
	}
	return err
}
