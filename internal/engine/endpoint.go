package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// ErrBadEndpoint marks an Endpoint that an API server cannot use, or that no scenario
// uses.
var ErrBadEndpoint = errors.New("bad endpoint")

// CheckEndpoints returns an ErrBadEndpoint for each Endpoint that an API server cannot
// use, and for each whose Service has no webhook in any scenario. The keys of endpoints are
// NAMESPACE/NAME of the Services. The manifests are installed for all scenarios.
func CheckEndpoints(scenarios []scenario.Scenario, endpoints map[string]framework.Endpoint, manifests ...map[string]any) error {
	var errs []error
	known := scenario.WebhookServices(scenarios, manifests...)
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		if err := endpoints[name].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("use endpoint of Service %s: %w: %w", name, ErrBadEndpoint, err))
		}
		if slices.Contains(known, name) {
			continue
		}
		hint := suggest.DidYouMean(name, known)
		if hint == "" && len(known) == 0 {
			hint = "; no clientConfig.service names a Service outside of the scenario's namespaces"
		}
		if hint == "" {
			hint = "; available: " + strings.Join(known, ", ")
		}
		errs = append(errs, fmt.Errorf("use endpoint of Service %s: %w: no selected scenario has a webhook of that Service%s", name, ErrBadEndpoint, hint))
	}
	return errors.Join(errs...)
}
