// Package servers runs the catalogue on API servers that are not Kubernetes' kube-apiserver alone: aggregated API
// servers and other control planes, all built from Go modules.
package servers
