// Package decode sets Go values from the nodes of a document, strictly, and checks single values. Each
// error has its position, what was expected and, if possible, a suggestion.
package decode
