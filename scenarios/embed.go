// Package scenarios is the catalogue: requirements of Kubernetes admission, each
// with its test as data, one file a scenario, in a folder for each area.
//
//	all, err := scenario.Load(scenarios.FS)
//
// # Promise
//
// The name of a scenario (metadata.name) is stable. A program that imports this
// package carries the files: it reads nothing from the disk.
//
// # Not promised
//
// Which file a scenario is in, and how many there are.
package scenarios

import "embed"

// FS holds the files of the catalogue, by their path in this folder:
// "reinvocation/if-needed.yaml".
//
//go:embed *
var FS embed.FS
