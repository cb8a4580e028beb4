package providers

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Environment provides the API server of a user's Environment of controller-runtime, which is started before Check. It
// is one for tests that stays for several runs, with webhooks and policies that are under test. If the Environment uses
// an existing cluster, it is as RESTConfig.
type Environment struct {
	// Environment is the started Environment. Required.
	Environment *envtest.Environment
	// Transport is how the API server reaches the Hooks. The zero value tries what works.
	Transport Transport
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Check is that of RESTConfig.
func (e Environment) Check(ctx context.Context, scenarios []scenario.Scenario) error {
	server, err := e.server()
	if err != nil {
		return err
	}
	return server.Check(ctx, scenarios)
}

// Version returns "": it is not known before the target is started.
func (Environment) Version(context.Context) (string, error) { return "", nil }

// Start returns the API server as a target. It returns the errors of RESTConfig.Start.
func (e Environment) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	server, err := e.server()
	if err != nil {
		return nil, err
	}
	return server.Start(ctx, options)
}

// server returns the API server.
func (e Environment) server() (RESTConfig, error) {
	server := RESTConfig{Config: e.Environment.Config, Transport: e.Transport, Progress: e.Progress, kubeConfig: e.Environment.KubeConfig}
	if server.Config == nil {
		return server, errors.New("the Environment of controller-runtime is not started: call its Start before the run, and Stop after it")
	}
	existing := strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") // as controller-runtime
	if set := e.Environment.UseExistingCluster; set != nil {
		existing = *set
	}
	if !existing {
		server.options, server.underTest = apiserver.Options{Kind: framework.TargetEnvtest, Disposable: true, Served: true}, true
	}
	return server, nil
}
