package apiserver

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Confined returns a framework.ErrForeign if the Sandbox of that ID may not send a
// Request: because it names a namespace or a cluster-scoped object without the ID in its
// name, or because the object would affect other clients. On a Disposable API server every Request is.
func (t *Target) Confined(id string, request framework.Request) error {
	resolved, err := t.client.Resources.Resolve(request)
	if err != nil {
		return nil //nolint:nilerr // Do refuses it
	}
	return t.confined(id, resolved)
}

func (t *Target) confined(id string, request client.Request) error {
	if t.options.Disposable {
		return nil
	}
	return t.policy(id).Check(request.Resource, request.Request)
}

// confinedManifest is Confined for an object to install.
func (t *Target) confinedManifest(id string, manifest map[string]any) error {
	kind, err := object.Kind(manifest)
	if err != nil || t.options.Disposable {
		return err
	}
	resource, err := t.client.Resources.Of(kind)
	if err != nil {
		return nil //nolint:nilerr // Install refuses it
	}
	return t.policy(id).CheckInstalled(resource, manifest)
}

func (t *Target) policy(id string) install.Confinement {
	return install.Confinement{ID: id}
}
