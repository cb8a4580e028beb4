// Package compile does not compile.
package compile

import "k8s.io/apiserver/pkg/admission"

// Register has a seeded fault.
func Register(plugins *admission.Plugins) {
	plugins.Regsiter("Compile", nil)
}
