package install

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// Endpoints says where the webhooks under test are: webhooks whose clientConfig has a URL, or names a Service
// that does not belong to a scenario. The zero value changes nothing.
type Endpoints struct {
	// ByAddress has the Endpoints by NAMESPACE/NAME of the Service or by HOST:PORT of the URL.
	ByAddress map[string]framework.Endpoint
	// URLs is true if this process calls a URL as the API server does: calls then go through a Hook.
	URLs bool
}

// Validate returns an error for the first Endpoint that cannot be used.
func (e Endpoints) Validate() error {
	for _, name := range slices.Sorted(maps.Keys(e.ByAddress)) {
		if err := e.ByAddress[name].Validate(); err != nil {
			return fmt.Errorf("use endpoint of %s: %w", name, err)
		}
	}
	return nil
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
