// Package e2e has the tests of whole runs on real API servers: that a run does no harm to other clients, what
// hostile scenarios and tenants reach, which rights a run needs, and what a run says about faults on the way and
// servers that end.
package e2e
