package cli

import (
	"cmp"
	"net"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// endpointFlags say where webhooks under test are called.
type endpointFlags struct {
	urls, authorities []string
	// defaultURL is the URL for Services without --endpoint. Empty means that there is none.
	defaultURL string
	// defaultCA has the certificates, in PEM, for loopback addresses without --endpoint-ca. If it is not
	// empty, the run waits until the webhooks at these addresses answer.
	defaultCA []byte
}

// add adds --endpoint and --endpoint-ca to a command.
func (f *endpointFlags) add(command *cobra.Command) {
	set := command.Flags()
	set.StringArrayVar(&f.urls, "endpoint", nil, "NAMESPACE/NAME=URL: call this https URL instead of the Service that the configuration of your webhook names")
	set.StringArrayVar(&f.authorities, "endpoint-ca", nil, "NAMESPACE/NAME=FILE or HOST:PORT=FILE: PEM certificates for each clientConfig that has that Service or URL, and no caBundle")
}

// parse parses the flags. It returns an error for a Service or host that neither the selected scenarios
// nor the installed manifests use.
func (f *endpointFlags) parse(selected []scenario.Scenario, manifests []map[string]any) (map[string]framework.Endpoint, error) {
	endpoints := map[string]framework.Endpoint{}
	for _, text := range f.urls {
		name, address, err := cutEndpoint("--endpoint", text, "NAMESPACE/NAME=https://HOST:PORT")
		if err != nil {
			return nil, err
		}
		if endpoints[name].URL != "" {
			return nil, usagef("--endpoint %s is given twice; want one URL for a Service", name)
		}
		endpoints[name] = framework.Endpoint{URL: address}
	}
	for _, text := range f.authorities {
		name, file, err := cutEndpoint("--endpoint-ca", text, "NAMESPACE/NAME=FILE or HOST:PORT=FILE")
		if err != nil {
			return nil, err
		}
		content, err := userfile.Read(file)
		if err != nil {
			return nil, usagef("--endpoint-ca %s: %w", name, err)
		}
		if len(content) == 0 {
			return nil, usagef("--endpoint-ca %s: %s is empty; want certificates in PEM", name, file)
		}
		one := endpoints[name]
		one.CABundle = append(one.CABundle, content...)
		endpoints[name] = one
	}
	services, hosts := expect.WebhookAddresses(selected, manifests...)
	for _, name := range append(services, hosts...) {
		one := endpoints[name]
		if one.URL == "" && strings.Contains(name, "/") {
			one.URL = f.defaultURL
		}
		if len(one.CABundle) == 0 && isLoopback(cmp.Or(one.URL, "https://"+name)) {
			one.CABundle = f.defaultCA
		}
		if one.URL != "" || one.CABundle != nil {
			endpoints[name] = one
		}
	}
	if err := engine.CheckEndpoints(selected, endpoints, manifests...); err != nil {
		return nil, usagef("%w", err)
	}
	return endpoints, nil
}

// isLoopback reports whether the host of a URL is this machine.
func isLoopback(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	return parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// cutEndpoint splits the value of a flag at its "=".
func cutEndpoint(flag, text, form string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	namespace, service, named := strings.Cut(name, "/")
	isService := named && namespace != "" && service != "" && !strings.Contains(service, "/")
	host, port, err := net.SplitHostPort(name)
	isHost := !named && err == nil && host != "" && port != "" && strings.Contains(form, "HOST:PORT=")
	if !ok || !isService && !isHost || value == "" {
		return "", "", usagef("%s %q: want %s", flag, text, form)
	}
	return name, value, nil
}
