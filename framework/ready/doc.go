// Package ready waits until API servers call a webhook or evaluate a policy.
//
//	err := ready.Wait(ctx, config, ready.Options{Webhooks: []string{"guard"}, Policies: []string{"owners"}})
//
// The package is public for test suites and installers, which otherwise sleep or repeat a request after they installed one.
//
// # Promise
//
// Wait reads, and creates objects as dry runs. It returns nil if each API server has shown that it calls each webhook, and that
// the webhook answers, and that it evaluates each policy with each of its bindings: by a denial or warning in a
// response, or by its metrics. That a dry run is accepted shows nothing. docs/running.md has the rights that it needs.
//
// # Not promised
//
// Only creations in namespaces that exist are sent. An API server does not say which version of a configuration it uses: if it can be
// an earlier one, Wait waits for some seconds. Of several replicas of a webhook, one has answered. A removed webhook of the same name
// that was never called is not told apart. A load balancer that chooses one for each request hides API servers.
package ready
