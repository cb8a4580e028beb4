// Package scenario is the scenario format: its types, a strict loader and its
// JSON Schema.
package scenario
