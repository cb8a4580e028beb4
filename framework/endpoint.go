package framework

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
)

// Endpoint says how to reach a webhook under test: a webhook of the user, whose clientConfig names
// a Service. With the zero value, the API server calls that Service.
type Endpoint struct {
	// URL replaces the Service: "https://127.0.0.1:9443". The API server then calls a Hook in this
	// process, which records the call and passes it on to URL with the path of the clientConfig.
	// Empty means that the API server calls the Service itself.
	URL string
	// CABundle is the caBundle, in PEM, for configurations that have none.
	CABundle []byte
}

// Validate returns an error if an API server cannot use the Endpoint.
func (e Endpoint) Validate() error {
	if e.URL != "" {
		parsed, err := url.Parse(e.URL)
		switch {
		case err != nil:
			return fmt.Errorf("%w; want https://HOST:PORT", err)
		case parsed.Scheme != "https" || parsed.Host == "":
			return fmt.Errorf("%q is not an https URL, and API servers call no others; want https://HOST:PORT", e.URL)
		case parsed.RawQuery != "" || parsed.Fragment != "" || parsed.User != nil:
			return fmt.Errorf("%q has more than a host, a port and a path, and API servers refuse that; want https://HOST:PORT", e.URL)
		}
	}
	if len(e.CABundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(e.CABundle) {
		return errors.New("the CA bundle has no certificate; want PEM, -----BEGIN CERTIFICATE-----")
	}
	return nil
}
