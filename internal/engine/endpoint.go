package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// ErrBadEndpoint marks an Endpoint that an API server cannot use, or that no scenario
// uses.
var ErrBadEndpoint = errors.New("the endpoint cannot be used")

// CheckEndpoints returns an ErrBadEndpoint for each Endpoint that an API server cannot
// use, and for each whose address has no webhook in any scenario. The keys of endpoints are
// NAMESPACE/NAME of Services and HOST:PORT of URLs. The manifests are installed for all scenarios.
func CheckEndpoints(scenarios []scenario.Scenario, endpoints map[string]framework.Endpoint, manifests ...map[string]any) error {
	var errs []error
	services, hosts := expect.WebhookAddresses(scenarios, manifests...)
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		what, known := "Service", services
		if !strings.Contains(name, "/") {
			what, known = "host", hosts
		}
		if err := endpoints[name].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("use endpoint of %s %s: %w: %w", what, name, ErrBadEndpoint, err))
		}
		if slices.Contains(known, name) {
			continue
		}
		hint := suggest.DidYouMean(name, known)
		if hint == "" && len(known) == 0 {
			hint = map[string]string{"Service": "; no clientConfig.service names a Service outside of the scenario's namespaces", "host": "; no clientConfig.url is that of a webhook under test"}[what]
		}
		if hint == "" {
			hint = "; available: " + strings.Join(known, ", ")
		}
		errs = append(errs, fmt.Errorf("use endpoint of %s %s: %w: no selected scenario has a webhook of that %s%s", what, name, ErrBadEndpoint, what, hint))
	}
	return errors.Join(errs...)
}
