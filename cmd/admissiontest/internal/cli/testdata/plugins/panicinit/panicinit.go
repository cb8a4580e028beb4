// Package panicinit panics when it is imported.
package panicinit

import "k8s.io/apiserver/pkg/admission"

var owners = map[string]string(nil)

func init() { owners["default"] = "blue" }

// Register registers nothing.
func Register(*admission.Plugins) {}
