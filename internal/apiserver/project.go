package apiserver

import "context"

// InstallForRun installs what all Sandboxes of the run share, before the first one: webhook
// configurations, policies and bindings, their parameters, and CustomResourceDefinitions. Webhooks and
// policies are narrowed to all Sandboxes, but not to the other namespaces of the run. Names get a
// prefix, except names of CustomResourceDefinitions. A CustomResourceDefinition that the API server
// has already is used if it is the same, and not removed. A webhook without a clientConfig does not
// become a Hook.
//
// Any other object is a parameter of a policy. One in a namespace is installed in a namespace of the
// run, which the bindings then name.
//
// Close removes all of it, also after an error. The error of a manifest is a framework.ManifestError. The API
// server acts on what was installed after WaitUntilEffective.
func (t *Target) InstallForRun(ctx context.Context, manifests []map[string]any) error {
	if t.sign != nil {
		if err := t.sign.open(ctx); err != nil {
			return err
		}
	}
	if _, err := t.fences.Namespace(ctx); err != nil { // a policy for namespaces would decide about it
		return err
	}
	return t.installer.InstallForRun(ctx, manifests)
}
