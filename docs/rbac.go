// Package docs has the manifests of this folder that the command prints.
package docs

import (
	_ "embed"
	"strings"
)

// RBAC is rbac.yaml: the account of a run on an existing cluster, and its rights. A test of internal/providers holds it
// to what the catalogue needs.
//
//go:embed rbac.yaml
var RBAC string

// aggregated is rbac-aggregated.yaml.
//
//go:embed rbac-aggregated.yaml
var aggregated string

// Aggregated returns the rights that an aggregated API server needs to call webhooks and to evaluate policies. The
// ServiceAccount is the one by which it calls kube-apiserver.
func Aggregated(namespace, account string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "ACCOUNT", account).Replace(aggregated)
}
