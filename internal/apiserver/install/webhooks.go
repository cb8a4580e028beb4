package install

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// DefaultPort is the port of a clientConfig that has none.
const DefaultPort = 443

// connectWebhooks returns a copy of a webhook configuration in which each webhook has
// what it needs to be called:
//
//   - one without a clientConfig gets the clientConfig of a new Hook with the script of
//     its name;
//   - one whose clientConfig leads to the Hook server gets a Hook at that address;
//   - another one is forwarded: see forward.
//
// Other kinds are returned as they are.
func (i *Installer) connectWebhooks(kind schema.GroupVersionKind, manifest map[string]any, id string, scripts map[string]hook.Script) (map[string]any, error) {
	return withWebhooks(kind, manifest, func(webhook map[string]any, h hook.Hook) (map[string]any, error) {
		h.Owner, h.Script = id, scripts[h.Webhook]
		return i.connect(webhook, h)
	})
}

// withWebhooks returns a copy of a webhook configuration in which each webhook is what connect returns
// for it. The Hook has the names and the phase. Other kinds are returned as they are.
func withWebhooks(kind schema.GroupVersionKind, manifest map[string]any, connect func(map[string]any, hook.Hook) (map[string]any, error)) (map[string]any, error) {
	h := hook.Hook{}
	switch kind.Kind {
	case KindMutatingWebhooks:
		h.Phase = framework.Mutating
	case KindValidatingWebhooks:
		h.Phase = framework.Validating
	default:
		return manifest, nil
	}
	h.Configuration, _, _ = unstructured.NestedString(manifest, "metadata", "name")
	out := maps.Clone(manifest)
	var webhooks []any
	for _, item := range asList(manifest["webhooks"]) {
		webhook, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("webhook is %T, want a map", item)
		}
		h.Webhook, _ = webhook["name"].(string)
		connected, err := connect(webhook, h)
		if err != nil {
			return nil, err
		}
		webhooks = append(webhooks, connected)
	}
	if webhooks != nil {
		out["webhooks"] = webhooks
	}
	return out, nil
}

// connect returns a copy of one webhook with defaults and a clientConfig.
func (i *Installer) connect(webhook map[string]any, h hook.Hook) (map[string]any, error) {
	webhook = maps.Clone(webhook)
	setDefault(webhook, "sideEffects", "None")
	setDefault(webhook, "admissionReviewVersions", []any{"v1"})
	given := cloneMap(webhook["clientConfig"])
	alias, leadsHere := i.aliasOf(h.Owner, given)
	switch {
	case len(given) == 0 || leadsHere:
		h.Alias = alias
		registered, err := i.Hooks.Register(h)
		if err != nil {
			return nil, err
		}
		if len(given) == 0 {
			given = i.ClientConfig(registered)
		}
		setDefault(given, "caBundle", base64.StdEncoding.EncodeToString(registered.CABundle))
		webhook["clientConfig"] = given
	default:
		return i.forward(webhook, h)
	}
	return webhook, nil
}

// forward returns a copy of one webhook under test. It gets a Hook that forwards its calls, if a
// Hook can call it. Otherwise its clientConfig is redirected as its Endpoint says.
func (i *Installer) forward(webhook map[string]any, h hook.Hook) (map[string]any, error) {
	given := cloneMap(webhook["clientConfig"])
	if len(given) == 0 {
		return webhook, nil
	}
	webhook = maps.Clone(webhook)
	if h.Upstream = i.Endpoints.Upstream(given); h.Upstream == nil {
		webhook["clientConfig"] = i.Endpoints.Redirect(given)
		return webhook, nil
	}
	registered, err := i.Hooks.Register(h)
	if err != nil {
		return nil, err
	}
	delete(given, "service") // other fields stay, so that the API server refuses misspelt ones
	maps.Copy(given, i.ClientConfig(registered))
	given["caBundle"] = base64.StdEncoding.EncodeToString(registered.CABundle)
	webhook["clientConfig"] = given
	return webhook, nil
}

// aliasOf reports whether a clientConfig of the scenario leads to the Hook server: by
// a URL, or by a Service in a namespace of the scenario, which can lead nowhere else.
// The Alias is how it does.
func (i *Installer) aliasOf(id string, clientConfig map[string]any) (hook.Alias, bool) {
	if clientConfig["service"] != nil {
		service := ServiceOf(clientConfig)
		if !runid.Has(service.Namespace, id) {
			return hook.Alias{}, false
		}
		return hook.Alias{ServerName: service.Name + "." + service.Namespace + ".svc", Path: pathOrRoot(service.Path)}, true
	}
	address, _ := clientConfig["url"].(string)
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" {
		return hook.Alias{}, false
	}
	port, hooks := parsed.Port(), i.HookAddress
	if port == "" {
		port = strconv.Itoa(DefaultPort)
	}
	host := parsed.Hostname()
	if port != strconv.Itoa(hooks.Port) || host != hooks.Host && (!isLoopback(host) || !isLoopback(hooks.Host)) {
		return hook.Alias{}, false
	}
	alias := hook.Alias{Path: pathOrRoot(parsed.Path)}
	if net.ParseIP(host) == nil {
		alias.ServerName = host
	}
	return alias, true
}

// pathOrRoot returns the path that the API server calls: it removes slashes at the end.
func pathOrRoot(path string) string {
	if path = strings.TrimRight(path, "/"); !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Service is the Service that a clientConfig names.
type Service struct{ Namespace, Name, Path string }

// ServiceOf returns the Service of a clientConfig, or the zero value.
func ServiceOf(clientConfig map[string]any) Service {
	fields, _ := clientConfig["service"].(map[string]any)
	var service Service
	service.Namespace, _ = fields["namespace"].(string)
	service.Name, _ = fields["name"].(string)
	service.Path, _ = fields["path"].(string)
	return service
}

// String is NAMESPACE/NAME.
func (s Service) String() string { return s.Namespace + "/" + s.Name }

// URLClientConfig returns a clientConfig with the URL of a Hook.
func URLClientConfig(c hook.ClientConfig) map[string]any {
	return map[string]any{"url": c.URL, "caBundle": base64.StdEncoding.EncodeToString(c.CABundle)}
}

// connectConversion returns a copy of a CustomResourceDefinition whose conversion
// webhook, if it has no clientConfig, is a Hook. One of a Service is redirected as its Endpoint says. The Hook belongs to the definition,
// which can outlive the scenario that gave it first.
func (i *Installer) connectConversion(crd map[string]any, conversion hook.Conversion) (map[string]any, error) {
	strategy, _, _ := unstructured.NestedString(crd, "spec", "conversion", "strategy")
	if strategy != "Webhook" {
		return crd, nil
	}
	definition := (&unstructured.Unstructured{Object: crd}).DeepCopy()
	spec, _ := definition.Object["spec"].(map[string]any)
	fields, _ := spec["conversion"].(map[string]any)
	webhook := cloneMap(fields["webhook"])
	fields["webhook"] = webhook
	if given, ok := webhook["clientConfig"].(map[string]any); ok {
		webhook["clientConfig"] = i.Endpoints.Redirect(given)
		return definition.Object, nil
	}
	registered, err := i.Hooks.RegisterConversion("crd-"+i.Run, definition.GetName(), conversion)
	if err != nil {
		return nil, err
	}
	webhook["clientConfig"] = i.ClientConfig(registered)
	setDefault(webhook, "conversionReviewVersions", []any{"v1"})
	return definition.Object, nil
}

func setDefault(object map[string]any, key string, value any) {
	if _, ok := object[key]; !ok {
		object[key] = value
	}
}

// Endpoints says where the webhooks under test are: webhooks whose clientConfig has a URL, or names a Service
// that does not belong to a scenario. The zero value changes nothing.
type Endpoints struct {
	// ByAddress has the Endpoints by NAMESPACE/NAME of the Service or by HOST:PORT of the URL.
	ByAddress map[string]framework.Endpoint
	// URLs is true if this process calls a URL as the API server does: calls then go through a Hook.
	URLs bool
}

// AddressOf returns NAMESPACE/NAME of the Service in a clientConfig or HOST:PORT of its URL, or "".
func AddressOf(clientConfig map[string]any) string {
	if service := ServiceOf(clientConfig); service.Namespace != "" {
		return service.String()
	}
	text, _ := clientConfig["url"].(string)
	parsed, err := url.Parse(text)
	if err != nil || parsed.Hostname() == "" {
		return ""
	}
	return net.JoinHostPort(strings.ToLower(parsed.Hostname()), cmp.Or(parsed.Port(), strconv.Itoa(DefaultPort)))
}

// Redirect returns a clientConfig as the Endpoint of its address says. Without an
// Endpoint it does not change.
func (e Endpoints) Redirect(clientConfig map[string]any) map[string]any {
	endpoint, known := e.ByAddress[AddressOf(clientConfig)]
	if !known {
		return clientConfig
	}
	out := maps.Clone(clientConfig)
	if service := ServiceOf(clientConfig); service.Name != "" && clientConfig["url"] == nil && endpoint.URL != "" {
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
func (e Endpoints) Upstream(clientConfig map[string]any) *hook.Upstream {
	upstream := &hook.Upstream{}
	if service := ServiceOf(clientConfig); clientConfig["service"] != nil {
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
