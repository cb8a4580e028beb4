// Package scenarios is the catalogue: requirements of Kubernetes admission and
// their tests as data, one file for each scenario, in a folder for each area.
//
//	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
//
// The package is public for programs that run or list the catalogue without a copy
// of its files.
//
// # Promise
//
// The name of a scenario (metadata.name) is stable. The files are embedded: nothing
// is read from the disk.
//
// # Not promised
//
// The path of a scenario's file, and the number of scenarios.
package scenarios

import "embed"

// FS contains the files of the catalogue, by their path in this folder:
// "reinvocation/if-needed.yaml".
//
//go:embed *
var FS embed.FS
