// Package installed reaches webhooks that are installed on a cluster: directly, by a port-forward to a Pod of their
// Service, and through the API server, by dry runs in a namespace of their own.
//
//	backends, err := installed.Find(ctx, config, []string{"guard"})
//	for _, each := range backends {
//		addresses, err := each.Forward(ctx) // https://127.0.0.1:PORT of some Pods, until the context ends
//	}
//	server, err := installed.Open(ctx, config)
//	defer server.Close(ctx)
//
// # Promise
//
// Configurations, Services and Pods are only read. What Open creates, Close removes; `admissiontest cleanup` removes it
// after the process was killed. A right that the account does not have is an ErrRight, which names it.
package installed
