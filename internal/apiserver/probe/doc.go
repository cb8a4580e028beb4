// Package probe finds out whether an API server can call a webhook server: the Hook
// servers of this process (hookservers.go), and the webhooks under test (endpoints.go).
package probe
