// Package conflict requires newer modules than Kubernetes 1.36.3 has.
package conflict

import "k8s.io/apiserver/pkg/admission"

// Register registers nothing.
func Register(*admission.Plugins) {}
