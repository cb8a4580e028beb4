// Package existing has a plugin with the name of one of Kubernetes.
package existing

import (
	"io"

	"k8s.io/apiserver/pkg/admission"
)

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register("LimitRanger", func(io.Reader) (admission.Interface, error) {
		return admission.NewHandler(admission.Create), nil
	})
}
