// Package docs has the manifests and the JSON Schemas of this folder that the command prints.
package docs

import (
	"embed"
	"io/fs"
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

//go:generate go test -run ^TestSchemaIsCurrent$ -update .

// schemas has a JSON Schema for each format. Tests write them from the Go types.
//
//go:embed schemas/*.json
var schemas embed.FS

// Aggregated returns the rights that an aggregated API server needs to call webhooks and to evaluate policies. The
// ServiceAccount is the one by which it calls kube-apiserver.
func Aggregated(namespace, account string) string {
	return strings.NewReplacer("NAMESPACE", namespace, "ACCOUNT", account).Replace(aggregated)
}

// Schemas returns the names of the formats that have a JSON Schema, sorted: policytest, report, scenario.
func Schemas() []string {
	files, _ := fs.Glob(schemas, "schemas/*.json") // the pattern is right
	for i, file := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(file, "schemas/"), ".json")
	}
	return files
}

// Schema returns the indented JSON Schema (draft 2020-12) of a format, one of [Schemas]. The error is an fs.ErrNotExist for
// any other name.
func Schema(format string) ([]byte, error) { return schemas.ReadFile("schemas/" + format + ".json") }
