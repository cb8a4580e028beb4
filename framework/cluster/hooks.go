package cluster

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// defaultPort is the port of a clientConfig that says none.
const defaultPort = 443

// HooksAt is where an API server reaches Hooks by address: those without a Fault of
// the connection.
type HooksAt struct {
	// Host is a name or an address.
	Host string
	// Port is the port.
	Port int
	// CABundle is the PEM to trust there.
	CABundle []byte
}

// URLHost is Host as it stands in a URL.
func (h HooksAt) URLHost() string {
	if strings.Contains(h.Host, ":") {
		return "[" + h.Host + "]"
	}
	return h.Host
}

// HooksAt is where the API server reaches our Hooks by address, for a clientConfig
// of a scenario's own.
func (t *Target) HooksAt() HooksAt {
	if t.options.HooksAt.Host != "" {
		return t.options.HooksAt
	}
	return HooksAt{Host: t.hooks.Host(), Port: t.hooks.Port(), CABundle: t.hooks.CABundle()}
}

// hooksAbilities are those that the place of our Hooks decides about.
func (t *Target) hooksAbilities() []string {
	var abilities []string
	at := t.HooksAt()
	// An address of IPv6 is not what a Service of type ExternalName may name.
	if t.options.HookService && !strings.Contains(at.Host, ":") {
		abilities = append(abilities, framework.AbilityHookService)
	}
	if at.Port == defaultPort {
		abilities = append(abilities, framework.AbilityDefaultPort)
	}
	return abilities
}

// atHooks reports whether a clientConfig of the scenario's own leads to our Hooks:
// by a URL, or by a Service in a namespace of the scenario's, which can lead
// nowhere else. The Address is how it does.
func (t *Target) atHooks(id string, client map[string]any) (hook.Address, bool) {
	if client["service"] != nil {
		ref := serviceOf(client)
		if !strings.Contains(ref.namespace, id) {
			return hook.Address{}, false
		}
		return hook.Address{ServerName: ref.name + "." + ref.namespace + ".svc", Path: pathOrRoot(ref.path)}, true
	}
	address, _ := client["url"].(string)
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" {
		return hook.Address{}, false
	}
	port, at := parsed.Port(), t.HooksAt()
	if port == "" {
		port = strconv.Itoa(defaultPort)
	}
	host := parsed.Hostname()
	if port != strconv.Itoa(at.Port) || host != at.Host && (!isLoopback(host) || !isLoopback(at.Host)) {
		return hook.Address{}, false
	}
	also := hook.Address{Path: pathOrRoot(parsed.Path)}
	if net.ParseIP(host) == nil {
		also.ServerName = host
	}
	return also, true
}

// pathOrRoot is a path as it is called. The API server takes slashes at its end away.
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
