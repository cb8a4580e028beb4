package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// atOnce is the number of requests that the bare client sends at the same time.
const atOnce = 16

// work is what scenarios without a server of their own make an API server do.
type work struct{ namespaces, configurations, writes int }

// workOf counts the work of scenarios. A configuration is a given object of admissionregistration.k8s.io. A write is any
// other given object, or a step.
func workOf(all []scenario.Scenario) work {
	var w work
	for _, s := range all {
		if s.Spec.Server != nil {
			continue
		}
		w.namespaces++
		w.writes += len(s.Spec.When)
		for _, manifest := range s.Spec.Given {
			if version, _ := manifest["apiVersion"].(string); strings.HasPrefix(version, "admissionregistration.k8s.io/") {
				w.configurations++
			} else {
				w.writes++
			}
		}
	}
	return w
}

// bareClient sends plain requests, and serves the webhook.
type bareClient struct {
	client  *http.Client
	host    string
	webhook *httptest.Server
	calls   atomic.Int64
	fenced  atomic.Bool
}

// measureBare starts an API server and returns the time of the bare client for the same work.
func measureBare(ctx context.Context, assets string, size work) (took time.Duration, err error) {
	server, err := envtest.Start(ctx, envtest.Options{BinaryAssetsDirectory: assets})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	c := &bareClient{host: server.Config.Host}
	if c.client, err = rest.HTTPClientFor(server.Config); err != nil {
		return 0, err
	}
	c.webhook = httptest.NewTLSServer(http.HandlerFunc(c.admit))
	defer c.webhook.Close()
	began := time.Now()
	for _, phase := range []func(context.Context, work) error{c.namespaces, c.configurations, c.fence, c.writes} {
		if err := phase(ctx, size); err != nil {
			return 0, err
		}
	}
	took = time.Since(began)
	figure(fmt.Sprintf("bare client, %d writes", size.writes), took, "", 0, 0)
	return took, nil
}

// admit allows all requests and counts them.
func (c *bareClient) admit(out http.ResponseWriter, in *http.Request) {
	var review struct{ Request struct{ UID string } }
	if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	if in.URL.Path == "/fence" {
		c.fenced.Store(true)
	} else {
		c.calls.Add(1)
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(out, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
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

func (c *bareClient) namespaces(ctx context.Context, size work) error {
	return each(ctx, size.namespaces, func(ctx context.Context, i int) error {
		return c.send(ctx, http.MethodPost, "/api/v1/namespaces", map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace(i)},
		})
	})
}

func namespace(i int) string { return fmt.Sprintf("bench-%04d", i) }

const configurationsPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

func (c *bareClient) configurations(ctx context.Context, size work) error {
	return each(ctx, size.configurations, func(ctx context.Context, i int) error {
		return c.send(ctx, http.MethodPost, configurationsPath, c.configuration(namespace(i), namespace(i%size.namespaces), "/work"))
	})
}

// configuration returns a configuration with one webhook for the ConfigMaps of a namespace.
func (c *bareClient) configuration(name, namespace, path string) map[string]any {
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.webhook.Certificate().Raw})
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name": "a.bench.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig":      map[string]any{"url": c.webhook.URL + path, "caBundle": bundle},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
			"rules":             []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}}},
		}},
	}
}

// fence writes one more configuration and sends requests until it is effective. Then all that
// were written before it are effective too.
func (c *bareClient) fence(ctx context.Context, _ work) error {
	if err := c.send(ctx, http.MethodPost, configurationsPath, c.configuration("fence", namespace(0), "/fence")); err != nil {
		return err
	}
	for !c.fenced.Load() {
		if err := c.send(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace(0)+"/configmaps?dryRun=All", configMap("fence")); err != nil {
			return err
		}
	}
	return c.send(ctx, http.MethodDelete, configurationsPath+"/fence", map[string]any{})
}

func configMap(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"key": "value"}}
}

func (c *bareClient) writes(ctx context.Context, size work) error {
	c.calls.Store(0)
	err := each(ctx, size.writes, func(ctx context.Context, i int) error {
		home := namespace(i % min(size.namespaces, size.configurations))
		return c.send(ctx, http.MethodPost, "/api/v1/namespaces/"+home+"/configmaps", configMap(fmt.Sprintf("write-%05d", i)))
	})
	if calls := c.calls.Load(); err == nil && calls < int64(size.writes) {
		err = fmt.Errorf("the webhook was called %d times for %d writes", calls, size.writes)
	}
	return err
}
