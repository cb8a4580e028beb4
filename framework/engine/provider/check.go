package provider

import (
	"context"
	"fmt"

	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// Check waits for the first answer of the API server and finds out whether the
// operator has the rights that scenarios need. Nothing is created. Errors are
// those of Connect, and cluster.ErrRights.
func (k Kubeconfig) Check(ctx context.Context, scenarios []scenario.Scenario) error {
	config, err := k.Connect(ctx)
	if err != nil {
		return err
	}
	if err := (RESTConfig{Config: config, Transport: k.Transport}).rights(ctx, scenarios); err != nil {
		return fmt.Errorf("use %s: %w", k, err)
	}
	return nil
}

// Check waits for the first answer of the API server and finds out whether the
// operator has the rights that scenarios need. Nothing is created. Errors are
// ErrUnreachable and cluster.ErrRights.
func (r RESTConfig) Check(ctx context.Context, scenarios []scenario.Scenario) error {
	if r.Config == nil {
		return nil // Start says so
	}
	if err := r.knock(ctx); err != nil {
		return err
	}
	return r.rights(ctx, scenarios)
}

// rights asks for the rights that scenarios need.
func (r RESTConfig) rights(ctx context.Context, scenarios []scenario.Scenario) error {
	var intents []cluster.Intent
	for _, s := range scenarios {
		if len(s.Spec.Needs) > 0 {
			continue // what a cluster of somebody else's does not give
		}
		intents = append(intents, cluster.Intent{Who: s.Metadata.Name, Requests: engine.Requests(s), Metrics: s.Spec.FeatureGate != ""})
	}
	// What transport service needs besides, package service asks for.
	return cluster.CheckRights(ctx, cluster.Options{Config: r.Config}, intents)
}
