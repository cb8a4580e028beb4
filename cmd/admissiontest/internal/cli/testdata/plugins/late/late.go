// Package late has a plugin for a test of its place.
package late

import (
	"context"
	"io"

	"k8s.io/apiserver/pkg/admission"
)

type plugin struct{ *admission.Handler }

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register("Late", func(io.Reader) (admission.Interface, error) {
		return plugin{admission.NewHandler(admission.Create)}, nil
	})
}

// Admit does nothing.
func (plugin) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return nil
}
