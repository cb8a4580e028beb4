// Package providers starts the targets that the engine runs scenarios on: an API server
// on this machine ([Envtest]), a kind cluster ([Kind]), or an API server that is already
// running ([Kubeconfig], [RESTConfig]).
//
//	report, err := engine.Run(ctx, engine.Options{
//		Scenarios: all,
//		Provider:  providers.NewEnvtest(providers.EnvtestOptions{}),
//	})
//
// # Promise
//
// Closing a target ends everything that its provider started for it. If Start fails, it
// leaves nothing running. A server that does not respond is reported within fifteen
// seconds, with its address and where the address was configured.
//
// # Not promised
//
// An API server that is already running must be able to call this process, by an address
// of this machine or through a relay pod in its cluster.
package providers
