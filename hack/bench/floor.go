package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// atOnce is the number of requests that the bare client sends at the same time.
const atOnce = 16

// fenceLimit is the limit for the fence of the bare client.
const fenceLimit = 30 * time.Second

// floor measures a bare client that does the same number of namespaces, configurations and
// writes through a webhook, and nothing else.
func (b *bench) floor(ctx context.Context) (err error) {
	b.figures.heading("floor: a bare client, 16 requests at once, the same number of each")
	server, err := envtest.Start(ctx, envtest.Options{BinaryAssetsDirectory: b.assets.Dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := rest.HTTPClientFor(server.Config)
	if err != nil {
		return fmt.Errorf("make bare client: %w", err)
	}
	address, _, err := rest.DefaultServerUrlFor(server.Config)
	if err != nil {
		return fmt.Errorf("make bare client: %w", err)
	}
	webhook := newWebhook()
	defer webhook.Close()
	bare := &bareClient{client: client, host: "https://" + address.Host, webhook: webhook}
	size := workOf(defaultProfile(b.all))
	total := 0.0
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{fmt.Sprintf("%d namespaces", size.namespaces), bare.namespaces(size)},
		{fmt.Sprintf("%d configurations", size.configurations), bare.configurations(size)},
		{"one fence", bare.fence},
		{fmt.Sprintf("%d writes through a webhook", size.writes), bare.writes(size)},
		{"removal of the configurations", bare.removal},
	} {
		began := time.Now()
		if err := phase.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		seconds := time.Since(began).Seconds()
		b.figures.figure(phase.name, seconds, "s")
		total += seconds
	}
	b.figures.figure("floor", total, "s")
	b.figures.atMost("catalogue takes, times the floor", b.catalogueSeconds/total, limitFloor, "x")
	return nil
}

// webhook allows all requests and counts them.
type webhook struct {
	*httptest.Server
	calls  atomic.Int64
	fenced atomic.Int64
}

func newWebhook() *webhook {
	w := &webhook{}
	w.Server = httptest.NewTLSServer(http.HandlerFunc(w.admit))
	return w
}

func (w *webhook) admit(out http.ResponseWriter, in *http.Request) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	if in.URL.Path == "/fence" {
		w.fenced.Add(1)
	} else {
		w.calls.Add(1)
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(out, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
}

// bareClient sends plain requests.
type bareClient struct {
	client  *http.Client
	host    string
	webhook *webhook
}

// send sends one request and reads the response.
func (c *bareClient) send(ctx context.Context, method, path string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.host+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return err
}

// each calls do n times, atOnce at the same time.
func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

func (c *bareClient) namespaces(size work) func(context.Context) error {
	return func(ctx context.Context) error {
		return each(ctx, size.namespaces, func(ctx context.Context, i int) error {
			return c.send(ctx, http.MethodPost, "/api/v1/namespaces", map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace(i), "labels": map[string]any{"bench": namespace(i)}},
			})
		})
	}
}

func namespace(i int) string { return fmt.Sprintf("bench-%04d", i) }

const configurationsPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

func (c *bareClient) configurations(size work) func(context.Context) error {
	return func(ctx context.Context) error {
		return each(ctx, size.configurations, func(ctx context.Context, i int) error {
			home := namespace(i % max(size.namespaces, 1))
			return c.send(ctx, http.MethodPost, configurationsPath, c.configuration(fmt.Sprintf("bench-%04d", i), home, "/work"))
		})
	}
}

// configuration returns a configuration with one webhook for the ConfigMaps of a namespace.
func (c *bareClient) configuration(name, namespace, path string) map[string]any {
	bundle := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: c.webhook.Certificate().Raw})
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name": "a.bench.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig":      map[string]any{"url": c.webhook.URL + path, "caBundle": base64.StdEncoding.EncodeToString(bundle)},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"bench": namespace}},
			"rules":             []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}}},
		}},
	}
}

// fence writes one more configuration and sends requests until it is effective. Then all that
// were written before it are effective too.
func (c *bareClient) fence(ctx context.Context) error {
	if err := c.send(ctx, http.MethodPost, configurationsPath, c.configuration("fence", namespace(0), "/fence")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fenceLimit)
	defer cancel()
	for c.webhook.fenced.Load() == 0 {
		if err := c.send(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace(0)+"/configmaps?dryRun=All", configMap("fence")); err != nil {
			return err
		}
	}
	return c.send(ctx, http.MethodDelete, configurationsPath+"/fence", map[string]any{})
}

func configMap(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"key": "value"}}
}

func (c *bareClient) writes(size work) func(context.Context) error {
	return func(ctx context.Context) error {
		c.webhook.calls.Store(0)
		err := each(ctx, size.writes, func(ctx context.Context, i int) error {
			home := namespace(i % max(min(size.namespaces, size.configurations), 1))
			return c.send(ctx, http.MethodPost, "/api/v1/namespaces/"+home+"/configmaps", configMap(fmt.Sprintf("write-%05d", i)))
		})
		if err == nil && c.webhook.calls.Load() < int64(size.writes) {
			err = fmt.Errorf("the webhook was called %d times for %d writes", c.webhook.calls.Load(), size.writes)
		}
		return err
	}
}

func (c *bareClient) removal(ctx context.Context) error {
	return c.send(ctx, http.MethodDelete, configurationsPath, map[string]any{})
}
