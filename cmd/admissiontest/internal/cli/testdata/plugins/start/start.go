// Package start has plugins that keep kube-apiserver from its start.
package start

import (
	"context"
	"errors"
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/featuregate"
)

// Register registers the plugins.
func Register(plugins *admission.Plugins) {
	plugins.Register("PanicsInFactory", func(io.Reader) (admission.Interface, error) { panic("no factory") })
	plugins.Register("PanicsAtGates", func(io.Reader) (admission.Interface, error) {
		return &panicsAtGates{refuses{Handler: admission.NewHandler(admission.Create)}}, nil
	})
	plugins.Register("PanicsInAdmit", func(io.Reader) (admission.Interface, error) {
		return panicsInAdmit{admission.NewHandler(admission.Create)}, nil
	})
	for name, resource := range map[string]string{"RefusesPriorityClasses": "priorityclasses", "RefusesRoles": "clusterroles"} {
		plugins.Register(name, func(io.Reader) (admission.Interface, error) {
			return &refuses{admission.NewHandler(admission.Create), resource}, nil
		})
	}
}

// refuses refuses a resource that kube-apiserver creates at its start.
type refuses struct {
	*admission.Handler
	resource string
}

// Validate refuses the resource.
func (p *refuses) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Resource == p.resource {
		return admission.NewForbidden(a, errors.New("it has no owner"))
	}
	return nil
}

// panicsInAdmit panics for the resource.
type panicsInAdmit struct{ *admission.Handler }

// Admit panics for priority classes.
func (panicsInAdmit) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Resource == "priorityclasses" {
		var labels map[string]string
		labels["owner"] = "none"
	}
	return nil
}

type panicsAtGates struct{ refuses }

// InspectFeatureGates reads a gate that is not registered.
func (*panicsAtGates) InspectFeatureGates(gates featuregate.FeatureGate) { gates.Enabled("Unknown") }

// ValidateInitialization accepts everything.
func (*panicsAtGates) ValidateInitialization() error { return nil }
