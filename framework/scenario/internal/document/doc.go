// Package document reads the documents of files: it parses YAML and JSON into a tree whose nodes have
// positions, refuses what parsers of YAML do not agree on, and sets Go values from the tree, strictly. Each
// problem has its position, what was expected and, if possible, a suggestion.
//
// It knows nothing about scenarios. What it refuses in YAML is documented in package scenario.
package document
