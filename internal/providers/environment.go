package providers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Environment provides the API server of a user's Environment of controller-runtime. It is one for tests that stays
// for several runs, with webhooks and policies that are under test. If the Environment uses an existing cluster, it
// is as RESTConfig.
type Environment struct {
	// Environment is started if its Config is set. Otherwise Start starts it, and Close stops it. Required.
	Environment *envtest.Environment
	// Transport is how the API server reaches the Hooks. The zero value tries what works.
	Transport Transport
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)

	mu      sync.Mutex
	started bool // by Start
}

// Check checks an API server that runs as RESTConfig does. Otherwise it returns nil.
func (e *Environment) Check(ctx context.Context, scenarios []scenario.Scenario) error {
	if e.Environment.Config == nil {
		return nil
	}
	return e.server().Check(ctx, scenarios)
}

// Version returns "": it is not known before the API server runs.
func (*Environment) Version(context.Context) (string, error) { return "", nil }

// Start starts the Environment, unless it is started, and returns its API server as a target. It returns the errors of
// RESTConfig.Start, and the error of the Environment if it does not start.
func (e *Environment) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	if err := e.start(); err != nil {
		return nil, fmt.Errorf("start the Environment of controller-runtime: %w", err)
	}
	server := e.server()
	if err := server.waitReachable(ctx); err != nil {
		return nil, err
	}
	opened, err := server.open(ctx, options)
	if err != nil {
		return nil, err
	}
	opened.kubeConfig, opened.underTest = e.Environment.KubeConfig, !e.existing()
	return opened, nil
}

// server returns the API server of an Environment that is started.
func (e *Environment) server() RESTConfig {
	server := RESTConfig{Config: e.Environment.Config, Transport: e.Transport, Progress: e.Progress}
	if !e.existing() {
		server.options = apiserver.Options{Kind: framework.TargetEnvtest, Disposable: true, Served: true}
	}
	return server
}

// existing reports whether the Environment uses an API server that it does not start itself.
func (e *Environment) existing() bool {
	if set := e.Environment.UseExistingCluster; set != nil {
		return *set
	}
	return strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") // as controller-runtime
}

// start starts the Environment, unless it is started.
func (e *Environment) start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Environment.Config != nil {
		return nil
	}
	if e.Progress != nil {
		e.Progress("starting the Environment of controller-runtime")
	}
	_, err := e.Environment.Start()
	if err == nil {
		e.started = true
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; it needs kube-apiserver and etcd: %s", err, binaries.Advice(""))
	}
	if e.Environment.Config == nil { // Stop would uninstall before it ends the servers, and cannot
		return errors.Join(err, e.Environment.ControlPlane.Stop())
	}
	return errors.Join(err, e.Environment.Stop())
}

// Close stops the Environment if Start started it.
func (e *Environment) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started {
		return nil
	}
	e.started = false
	if err := e.Environment.Stop(); err != nil {
		return fmt.Errorf("stop the Environment of controller-runtime: %w", err)
	}
	return nil
}
