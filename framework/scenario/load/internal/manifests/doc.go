// Package manifests reads the manifests that scenarios have in other files, and knows the positions of
// all manifests of a scenario.
//
// No error shows a value of another file: it can be a Secret.
package manifests
