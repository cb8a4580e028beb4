// Package noregister has no function Register.
package noregister

import "k8s.io/apiserver/pkg/admission"

// Plugins is a type, not a function. Its method Register does not count either.
type Plugins struct{ *admission.Handler }

// Register is a method.
func (Plugins) Register(*admission.Plugins) {}
