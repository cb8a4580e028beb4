package cluster

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// A webhook under test is one of the user's: its clientConfig names a Service
// outside of the scenario's namespaces.

// Endpoint says how the API server reaches the webhooks under test that a Service
// serves. The zero value changes nothing.
type Endpoint struct {
	// URL is called in place of the Service: "https://127.0.0.1:9443". The path of
	// the clientConfig follows it. Empty calls the Service itself.
	URL string
	// CABundle is the caBundle, in PEM, of configurations that have none.
	CABundle []byte
	// Limit is how long it may take until they answer. 0 is 30 seconds. A certificate
	// that the API server does not trust is waited for five seconds at most.
	Limit time.Duration
}

// Validate says what is wrong with an Endpoint.
func (e Endpoint) Validate() error {
	if e.URL != "" {
		parsed, err := url.Parse(e.URL)
		switch {
		case err != nil:
			return fmt.Errorf("%w; want https://HOST:PORT", err)
		case parsed.Scheme != "https" || parsed.Host == "":
			return fmt.Errorf("%q is no https URL, and API servers call no others; want https://HOST:PORT", e.URL)
		case parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil:
			return fmt.Errorf("%q has more than a host, a port and a path, which API servers refuse; want https://HOST:PORT", e.URL)
		}
	}
	if len(e.CABundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(e.CABundle) {
		return errors.New("the CA bundle has no certificate; want PEM, -----BEGIN CERTIFICATE-----")
	}
	return nil
}

// SetEndpoints says how webhooks under test are reached, by NAMESPACE/NAME of
// their Service. It comes before configurations are put.
func (t *Target) SetEndpoints(endpoints map[string]Endpoint) error {
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		if err := endpoints[name].Validate(); err != nil {
			return fmt.Errorf("use endpoint of Service %s: %w", name, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endpoints = maps.Clone(endpoints)
	return nil
}

// redirect returns the clientConfig of a webhook under test as its Endpoint has
// it, and any other as it is.
func (t *Target) redirect(client map[string]any) map[string]any {
	service := serviceOf(client)
	t.mu.Lock()
	endpoint, known := t.endpoints[service.String()]
	t.mu.Unlock()
	if !known {
		return client
	}
	out := maps.Clone(client)
	if endpoint.URL != "" {
		delete(out, "service")
		out["url"] = strings.TrimSuffix(endpoint.URL, "/") + service.path
	}
	if isPlaceholder(out["caBundle"]) && len(endpoint.CABundle) > 0 {
		out["caBundle"] = base64.StdEncoding.EncodeToString(endpoint.CABundle)
	}
	return out
}

// isPlaceholder reports whether a caBundle says nothing: it is absent, empty, or
// white space alone, as where somebody injects it later ("Cg==").
func isPlaceholder(bundle any) bool {
	text, _ := bundle.(string)
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && strings.TrimSpace(string(data)) == ""
}

// serviceRef is the Service that a clientConfig names.
type serviceRef struct {
	namespace, name, path string
}

func serviceOf(client map[string]any) serviceRef {
	service, _ := client["service"].(map[string]any)
	var ref serviceRef
	ref.namespace, _ = service["namespace"].(string)
	ref.name, _ = service["name"].(string)
	ref.path, _ = service["path"].(string)
	return ref
}

// String is NAMESPACE/NAME.
func (s serviceRef) String() string { return s.namespace + "/" + s.name }

// Bounds of the wait for webhooks under test: of all of it, how long a call keeps
// failing for a reason that does not go away by waiting, and of one call, in seconds.
const (
	readyLimit   = 30 * time.Second
	firmLimit    = 5 * time.Second
	readyTimeout = 5
	// readyInterval spares the log of a webhook that hangs up.
	readyInterval = 100 * time.Millisecond
)

// underTest is one address of webhooks under test.
type underTest struct {
	service serviceRef
	client  map[string]any
	// versions are the admissionReviewVersions.
	versions any
	limit    time.Duration
}

// key tells addresses apart.
func (u underTest) key() string { return string(mustJSON(u.client)) }

// String names the address: "Service ns/name, called at https://…".
func (u underTest) String() string {
	text := "Service " + u.service.String()
	if address, _ := u.client["url"].(string); address != "" {
		return text + ", called at " + address
	}
	if u.service.path != "" {
		text += ", path " + u.service.path
	}
	return text
}

// underTest returns the addresses of the webhooks under test of configurations,
// each once, without those that have answered.
func (t *Target) underTest(manifests []map[string]any) []underTest {
	seen := map[string]bool{}
	var found []underTest
	for _, manifest := range manifests {
		gvk, err := kindOf(manifest)
		if err != nil || gvk.Group != admissionGroup {
			continue
		}
		for _, item := range asList(manifest["webhooks"]) {
			webhook, _ := item.(map[string]any)
			client, _ := webhook["clientConfig"].(map[string]any)
			one := underTest{service: serviceOf(client), versions: webhook["admissionReviewVersions"]}
			if one.service.namespace == "" || strings.Contains(one.service.namespace, "at-"+t.options.Run+"-") {
				continue
			}
			one.client = t.redirect(client)
			t.mu.Lock()
			answered := t.answered[one.key()]
			if one.limit = t.endpoints[one.service.String()].Limit; one.limit <= 0 {
				one.limit = readyLimit
			}
			t.mu.Unlock()
			if !seen[one.key()] && !answered {
				seen[one.key()], found = true, append(found, one)
			}
		}
	}
	return found
}

// awaitUnderTest waits until the API server gets an answer, whichever it is, of
// each webhook under test: each is called for dry-run requests in a namespace of
// the run's own.
func (t *Target) awaitUnderTest(ctx context.Context, manifests []map[string]any) (err error) {
	found := t.underTest(manifests)
	if len(found) == 0 {
		return nil
	}
	id := "at-" + t.options.Run + "-ready"
	if err := t.openFence(ctx, id); err != nil {
		return fmt.Errorf("call the webhook under test: %w", err)
	}
	ref, err := t.putReady(ctx, id, found)
	if err != nil {
		return fmt.Errorf("call the webhook under test: %w", err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachRemoveLimit)
		defer cancel()
		err = errors.Join(err, t.deleteObject(clean, ref))
	}()
	began := time.Now()
	for i, one := range found {
		t.options.Progress("waiting for the webhook under test: " + one.String())
		reason := ""
		err := poll(ctx, readyInterval, max(one.limit-time.Since(began), later), func() (bool, error) {
			answer, err := t.send(ctx, readyProbe(id, i))
			if err != nil {
				return false, err
			}
			reason = one.missing(answer, i)
			if firm(reason) && time.Since(began) > firmLimit {
				return false, framework.ErrNotSettled
			}
			return reason == "", nil
		})
		if errors.Is(err, framework.ErrNotSettled) {
			// Not what ErrNotSettled means to others: nothing about the API server is open.
			return fmt.Errorf("wait for the webhook under test: %s, does not answer within %s: %s; %s", one, time.Since(began).Round(time.Second), reason, remedy(reason, one))
		}
		if err != nil {
			return fmt.Errorf("wait for the webhook under test: %s: %w", one, err)
		}
		t.mu.Lock()
		t.answered[one.key()] = true
		t.mu.Unlock()
	}
	return nil
}

// firm reports whether a reason does not go away by waiting.
func firm(reason string) bool { return strings.Contains(reason, "x509: ") }

// remedy says what to do about a webhook under test that does not answer.
func remedy(reason string, one underTest) string {
	switch {
	case firm(reason):
		return "its certificate must be for the host that is called and of the caBundle: give its CA with --endpoint-ca " + one.service.String() + "=FILE, where the configuration has no caBundle"
	case one.client["url"] != nil:
		return "start it before the run, at the address that --endpoint gives"
	default:
		return "deploy it before the run, or give the URL of one that runs elsewhere with --endpoint " + one.service.String() + "=URL"
	}
}

// readyName is the name of the i-th probing webhook; readyMark what a Hook of ours
// says beside it when the configuration is in force.
func readyName(i int) string { return fmt.Sprintf("n%d.ready.admissiontest.dev", i) }

const readyMark = "admissiontest asks webhooks under test"

// putReady installs a validating webhook for each address, which is called for
// ConfigMaps with its number alone, and one of ours, which tells by its warning
// that the whole configuration is in force.
func (t *Target) putReady(ctx context.Context, id string, found []underTest) (reference, error) {
	rules := []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "scope": "Namespaced"}}
	webhooks := []any{map[string]any{"name": "mark.ready.admissiontest.dev", "rules": rules, "failurePolicy": "Ignore", "timeoutSeconds": int64(readyTimeout)}}
	for i, one := range found {
		webhook := map[string]any{
			"name": readyName(i), "rules": rules, "failurePolicy": "Fail", "timeoutSeconds": int64(readyTimeout),
			"objectSelector": map[string]any{"matchLabels": map[string]any{"ready": strconv.Itoa(i)}},
			"clientConfig":   one.client,
		}
		if one.versions != nil {
			webhook["admissionReviewVersions"] = one.versions
		}
		webhooks = append(webhooks, webhook)
	}
	gvk := schema.GroupVersionKind{Group: admissionGroup, Version: "v1", Kind: kindValidatingWebhooks}
	res, err := t.resources.of(gvk)
	if err != nil {
		return reference{}, err
	}
	t.mu.Lock()
	t.nonces++
	name := fmt.Sprintf("ready%d", t.nonces)
	t.mu.Unlock()
	manifest, err := t.connect(gvk, map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind,
		"metadata": map[string]any{"name": name}, "webhooks": webhooks,
	}, id, map[string]hook.Script{"mark.ready.admissiontest.dev": {Replies: []hook.Reply{{Warnings: []string{readyMark}}}}})
	if err != nil {
		return reference{}, err
	}
	ref := reference{resource: res, name: id + "-" + name}
	t.remember(id, func(o *owner) { o.governing = append(o.governing, ref) })
	return ref, t.replace(ctx, ref, t.own(id, t.resources.narrow(gvk, manifest, id)))
}

// readyProbe is the dry-run request that the i-th webhook is called for.
func readyProbe(id string, i int) call {
	probe := (&fence{id: id}).probe()
	var object map[string]any
	_ = json.Unmarshal(probe.body, &object)
	probe.body = mustJSON(labelled(object, map[string]string{"ready": strconv.Itoa(i)}))
	return probe
}

// missing says why an answer does not show that the i-th webhook was called and
// answered, or "".
func (underTest) missing(answer framework.Result, i int) string {
	message := answer.Status.Message
	_, failed, called := strings.Cut(message, fmt.Sprintf("failed calling webhook %q: ", readyName(i)))
	switch {
	case called && strings.Contains(failed, `Post "`):
		// failed to call webhook: Post "https://host/path?timeout=5s": dial tcp …
		_, reason, _ := strings.Cut(failed, `": `)
		return reason
	case called, strings.Contains(message, fmt.Sprintf("admission webhook %q denied", readyName(i))):
		return "" // it answered, if not as one would like
	case !answer.Allowed():
		return message
	case !slices.ContainsFunc(answer.Warnings, func(warning string) bool { return strings.HasSuffix(warning, readyMark) }):
		return "the API server does not act yet on the configuration that asks"
	default:
		return ""
	}
}
