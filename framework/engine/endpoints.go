package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/suggest"
)

// ErrBadEndpoint marks an endpoint of a webhook under test that cannot be used, or
// that nobody would use.
var ErrBadEndpoint = errors.New("bad endpoint")

// CheckEndpoints says which endpoints of webhooks under test mean nothing: those
// that no scenario has a webhook of, and those that no API server could call. Each
// error is an ErrBadEndpoint.
func CheckEndpoints(scenarios []scenario.Scenario, endpoints map[string]cluster.Endpoint) error {
	var errs []error
	known := scenario.Services(scenarios)
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		if err := endpoints[name].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("use endpoint of Service %s: %w: %w", name, ErrBadEndpoint, err))
		}
		if slices.Contains(known, name) {
			continue
		}
		there := "; there are " + strings.Join(known, ", ")
		if len(known) == 0 {
			there = "; there is no clientConfig.service outside of a scenario's own namespaces"
		}
		if hint := suggest.DidYouMean(name, known); hint != "" {
			there = hint
		}
		errs = append(errs, fmt.Errorf("use endpoint of Service %s: %w: no selected scenario has a webhook of that Service%s", name, ErrBadEndpoint, there))
	}
	return errors.Join(errs...)
}

// start starts a target and tells it how webhooks under test are reached.
func (r *run) start(ctx context.Context, profile *scenario.Server) (Target, error) {
	target, err := r.options.Provider.Start(ctx, profile)
	if err != nil || len(r.options.Endpoints) == 0 {
		return target, err
	}
	reachable, ok := target.(interface {
		SetEndpoints(endpoints map[string]cluster.Endpoint) error
	})
	err = fmt.Errorf("use endpoints: %w: target %s has none", ErrBadEndpoint, target.Info().Kind)
	if ok {
		err = reachable.SetEndpoints(r.options.Endpoints)
	}
	if err == nil {
		return target, nil
	}
	closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	return nil, errors.Join(err, target.Close(closeCtx))
}
