// Package provider starts the targets that the engine runs scenarios on: an API
// server of our own ([Envtest]), or one that runs already ([Kubeconfig],
// [RESTConfig]).
//
//	report, err := engine.Run(ctx, engine.Options{
//		Scenarios: all,
//		Provider:  provider.NewEnvtest(provider.EnvtestOptions{}),
//	})
//
// # Promise
//
// Closing a target ends everything that its provider started for it. Where Start
// fails it leaves nothing running. A server that does not answer is told of within
// fifteen seconds, with its address and where that was written.
//
// # Not promised
//
// An API server that is somebody else's must reach this process at a loopback
// address, for webhooks are served from here; it is on the same machine, then.
package provider
