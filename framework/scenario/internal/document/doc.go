// Package document finds files, with limits, and reads their documents: it parses YAML and JSON into a tree whose nodes
// have positions, refuses what parsers of YAML do not agree on, checks the tree with a JSON Schema, and sets Go values
// from it. Each problem has its position, what was expected and, if possible, a suggestion.
//
// It knows nothing about scenarios. What it refuses in YAML is documented in package scenario.
package document
