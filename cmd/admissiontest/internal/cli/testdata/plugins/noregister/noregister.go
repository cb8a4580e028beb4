// Package noregister has no function Register.
package noregister

import "k8s.io/apiserver/pkg/admission"

// Plugins is not it, and neither is a method.
type Plugins struct{ *admission.Handler }

// Register is a method.
func (Plugins) Register(*admission.Plugins) {}
