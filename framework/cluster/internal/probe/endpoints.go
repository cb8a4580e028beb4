package probe

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/client"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/fence"
	"github.com/admissiontest/admissiontest/framework/cluster/internal/install"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/object"
)

// The limits of the wait for the webhooks under test.
const (
	// answerLimit is the limit of an Endpoint that sets none.
	answerLimit = 30 * time.Second
	// certificateLimit limits the wait for a webhook whose certificate is not valid:
	// waiting rarely helps.
	certificateLimit = 5 * time.Second
	// closedLimit is how long a webhook closes each connection until it counts as running. A proxy in
	// front of a webhook that is starting closes connections too.
	closedLimit = 2 * time.Second
	// answerTimeout is the timeoutSeconds of a call.
	answerTimeout = 5
	// answerInterval keeps the log of a webhook short that closes connections.
	answerInterval = 100 * time.Millisecond
)

// Endpoints redirects and waits for the webhooks under test: webhooks whose
// clientConfig has a URL, or names a Service that does not belong to a scenario. The exported fields
// are required, except ByAddress and URLs.
type Endpoints struct {
	Client  *client.Client
	Install *install.Installer
	// ByAddress has the Endpoints by NAMESPACE/NAME of the Service or by HOST:PORT of the URL.
	ByAddress map[string]framework.Endpoint
	// URLs is true if this process calls a URL as the API server does: calls then go through a Hook.
	URLs bool
	// Progress receives a line for each longer action.
	Progress func(string)

	mu       sync.Mutex
	scope    *install.Scope
	count    int
	answered map[string]bool // by webhook.key
}

// Validate returns an error for the first Endpoint that cannot be used.
func Validate(byAddress map[string]framework.Endpoint) error {
	for _, name := range slices.Sorted(maps.Keys(byAddress)) {
		if err := byAddress[name].Validate(); err != nil {
			return fmt.Errorf("use endpoint of %s: %w", name, err)
		}
	}
	return nil
}

// addressOf returns NAMESPACE/NAME of the Service in a clientConfig or HOST:PORT of its URL, or "".
func addressOf(clientConfig map[string]any) string {
	if service := install.ServiceOf(clientConfig); service.Namespace != "" {
		return service.String()
	}
	text, _ := clientConfig["url"].(string)
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" {
		return ""
	}
	return net.JoinHostPort(strings.ToLower(parsed.Hostname()), cmp.Or(parsed.Port(), strconv.Itoa(install.DefaultPort)))
}

// Redirect returns a clientConfig as the Endpoint of its address says. Without an
// Endpoint it does not change.
func (e *Endpoints) Redirect(clientConfig map[string]any) map[string]any {
	endpoint, known := e.ByAddress[addressOf(clientConfig)]
	if !known {
		return clientConfig
	}
	out := maps.Clone(clientConfig)
	if service := install.ServiceOf(clientConfig); service.Name != "" && clientConfig["url"] == nil && endpoint.URL != "" {
		delete(out, "service")
		out["url"] = strings.TrimSuffix(endpoint.URL, "/") + service.Path
	}
	if isPlaceholder(out["caBundle"]) && len(endpoint.CABundle) > 0 {
		out["caBundle"] = base64.StdEncoding.EncodeToString(endpoint.CABundle)
	}
	return out
}

// Upstream returns the webhook under test that a clientConfig leads to, if a Hook can call it: its
// Service has an Endpoint with a URL, or it has a URL and URLs is true. It returns nil for a clientConfig
// that the API server refuses, so that it can say why.
func (e *Endpoints) Upstream(clientConfig map[string]any) *hook.Upstream {
	upstream := &hook.Upstream{}
	if service := install.ServiceOf(clientConfig); clientConfig["service"] != nil {
		refused := service.Path != "" && !strings.HasPrefix(service.Path, "/") || clientConfig["url"] != nil
		if e.ByAddress[service.String()].URL == "" || refused {
			return nil
		}
		upstream.ServiceName = service.Name + "." + service.Namespace + ".svc"
	} else if !e.URLs {
		return nil
	}
	redirected := e.Redirect(clientConfig)
	address, _ := redirected["url"].(string)
	parsed, err := url.Parse(address)
	if err != nil || address == "" || (framework.Endpoint{URL: address}).Validate() != nil {
		return nil
	}
	// The path is that of an API server: k8s.io/client-go/rest.DefaultVersionedAPIPath.
	upstream.URL = (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: path.Join("/", parsed.Path)}).String()
	if bundle, set := redirected["caBundle"]; set {
		text, ok := bundle.(string)
		data, err := base64.StdEncoding.DecodeString(text)
		if !ok && bundle != nil || err != nil {
			return nil
		}
		upstream.CABundle = data
	}
	return upstream
}

// isPlaceholder reports whether a caBundle has no content: it is absent, empty, or only
// white space ("Cg=="), as in manifests into which a controller injects it.
func isPlaceholder(bundle any) bool {
	text, isText := bundle.(string)
	data, err := base64.StdEncoding.DecodeString(text)
	return (isText || bundle == nil) && err == nil && strings.TrimSpace(string(data)) == ""
}

// webhook is one address of webhooks under test.
type webhook struct {
	// address is that of addressOf, service the Service if it is one.
	address string
	service install.Service
	// given is the clientConfig of the scenario, clientConfig the one that leads to the address.
	given, clientConfig map[string]any
	// versions are the admissionReviewVersions.
	versions any
	limit    time.Duration
}

// key identifies the address.
func (w webhook) key() string {
	data, _ := json.Marshal(w.clientConfig)
	return string(data)
}

// url is the URL of the clientConfig, or "" if it names a Service.
func (w webhook) url() string { text, _ := w.clientConfig["url"].(string); return text }

// String names the address: "Service ns/name, called at https://…".
func (w webhook) String() string {
	if w.service.Namespace == "" {
		return w.url()
	}
	text := "Service " + w.service.String()
	if w.url() != "" {
		return text + ", called at " + w.url()
	}
	if w.service.Path != "" {
		text += ", path " + w.service.Path
	}
	return text
}

// notAnswered returns the addresses of the webhooks under test in configurations, each
// once, without those that have answered before, and without URLs that have no Endpoint.
func (e *Endpoints) notAnswered(manifests []map[string]any) []webhook {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := map[string]bool{}
	var found []webhook
	for _, manifest := range manifests {
		kind, err := object.Kind(manifest)
		list, ok := manifest["webhooks"].([]any)
		if err != nil || kind.Group != install.AdmissionGroup || !ok {
			continue
		}
		for _, item := range list {
			fields, _ := item.(map[string]any)
			clientConfig, _ := fields["clientConfig"].(map[string]any)
			one := webhook{address: addressOf(clientConfig), service: install.ServiceOf(clientConfig), given: clientConfig, versions: fields["admissionReviewVersions"]}
			endpoint, known := e.ByAddress[one.address]
			if !known && one.service.Namespace == "" || strings.Contains(one.service.Namespace, "at-"+e.Install.Run+"-") {
				continue
			}
			one.clientConfig = e.Redirect(clientConfig)
			if one.limit = endpoint.Timeout; one.limit <= 0 {
				one.limit = answerLimit
			}
			if !seen[one.key()] && !e.answered[one.key()] {
				seen[one.key()] = true
				found = append(found, one)
			}
		}
	}
	return found
}

// Wait returns when the API server got an answer from each webhook under test in the
// configurations, whatever the answer is. Each address is asked once in a run. The
// error says which webhook does not answer, and why.
func (e *Endpoints) Wait(ctx context.Context, manifests []map[string]any) (err error) {
	found := e.notAnswered(manifests)
	if len(found) == 0 {
		return nil
	}
	scope, installed, err := e.install(ctx, found)
	if err != nil {
		return fmt.Errorf("call the webhook under test: %w", err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
		defer cancel()
		err = errors.Join(err, e.Client.Delete(clean, installed))
	}()
	began := time.Now()
	for i, one := range found {
		e.Progress("waiting for the webhook under test: " + one.String())
		if err := e.waitFor(ctx, scope, i, one, began); err != nil {
			return err
		}
		e.mu.Lock()
		if e.answered == nil {
			e.answered = map[string]bool{}
		}
		e.answered[one.key()] = true
		e.mu.Unlock()
	}
	return nil
}

// waitFor waits for the answer of the webhook with number i. One that closes connections without an
// answer is running: its calls fail, and scenarios can expect that.
func (e *Endpoints) waitFor(ctx context.Context, scope *install.Scope, i int, one webhook, began time.Time) error {
	var last callState
	var closes time.Time // since when each call ended without an answer
	err := client.Poll(ctx, answerInterval, max(one.limit-time.Since(began), client.Later), func() (bool, error) {
		var err error
		if last, err = e.call(ctx, scope, i); err != nil {
			return false, err
		}
		if last.certificate && time.Since(began) > certificateLimit {
			return false, framework.ErrTimeout
		}
		if !last.closed {
			closes = time.Time{}
		} else if closes.IsZero() {
			closes = time.Now()
		}
		return last.answered || last.closed && time.Since(closes) > closedLimit, nil
	})
	switch {
	case errors.Is(err, framework.ErrTimeout) && last.closed:
		return nil
	case errors.Is(err, framework.ErrTimeout):
		// This error is not an ErrTimeout: the webhook is to blame, not the API server.
		return fmt.Errorf("wait for the webhook under test: %s, does not answer within %s: %s; %s", one, time.Since(began).Round(time.Second), last.problem, one.remedy(last))
	case err != nil:
		return fmt.Errorf("wait for the webhook under test: %s: %w", one, err)
	}
	return nil
}

// remedy says what to do about a webhook under test that does not answer.
func (w webhook) remedy(last callState) string {
	switch {
	case last.certificate:
		return "its certificate must be valid for the host that is called and signed by the caBundle; if the configuration has no caBundle, give the CA with --endpoint-ca " + w.address + "=FILE; a PROGRAM can use the certificate in {cert-dir}"
	case w.service.Namespace == "":
		return "PROGRAM must serve it; for a webhook that is down, use a fault in hooks"
	case w.url() != "":
		return "start it before the run, at the address that --endpoint gives"
	default:
		return "deploy it before the run, or give the URL of one that runs elsewhere with --endpoint " + w.service.String() + "=URL"
	}
}

// Each address has two webhooks, which are called for ConfigMaps with its number in
// numberLabel and the failure policy in policyLabel. A failed call and a denial are
// distinguished by the failure policy: a request that is refused with Fail and allowed
// with Ignore means that the call failed.
const (
	numberLabel = "webhook"
	policyLabel = "failure-policy"
)

// mark is the warning of a Hook in the same configuration: it shows that the
// configuration is effective.
const (
	mark        = "admissiontest calls the webhooks under test"
	markWebhook = "mark.ready.admissiontest.dev"
)

// install installs the webhooks that call the addresses.
func (e *Endpoints) install(ctx context.Context, found []webhook) (*install.Scope, client.Object, error) {
	scope, name, err := e.namespace(ctx)
	if err != nil {
		return nil, client.Object{}, err
	}
	webhooks := []any{map[string]any{"name": markWebhook, "rules": fence.ProbeRules(), "failurePolicy": "Ignore", "timeoutSeconds": int64(answerTimeout)}}
	for i, one := range found {
		for _, policy := range []string{"Fail", "Ignore"} {
			fields := map[string]any{
				"name": fmt.Sprintf("n%d.%s.ready.admissiontest.dev", i, strings.ToLower(policy)), "rules": fence.ProbeRules(),
				"failurePolicy": policy, "timeoutSeconds": int64(answerTimeout), "clientConfig": one.given,
				"objectSelector": map[string]any{"matchLabels": map[string]any{numberLabel: strconv.Itoa(i), policyLabel: policy}},
			}
			if one.versions != nil {
				fields["admissionReviewVersions"] = one.versions
			}
			webhooks = append(webhooks, fields)
		}
	}
	installed, err := e.Install.InstallAdmission(ctx, scope, map[string]any{
		"apiVersion": install.AdmissionGroup + "/v1", "kind": install.KindValidatingWebhooks,
		"metadata": map[string]any{"name": name}, "webhooks": webhooks,
	}, map[string]hook.Script{markWebhook: {Replies: []hook.Reply{{Warnings: []string{mark}}}}})
	return scope, installed, err
}

// namespace creates the namespace of these calls, once, and returns a new name for a
// configuration.
func (e *Endpoints) namespace(ctx context.Context) (*install.Scope, string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.scope == nil {
		scope, err := e.Install.NewScope(ctx, "at-"+e.Install.Run+"-ready", hook.Conversion{})
		if err != nil {
			return nil, "", err
		}
		e.scope = scope
	}
	e.count++
	return e.scope, fmt.Sprintf("ready%d", e.count), nil
}
