package apiserver

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Foreign returns the webhook configurations, policies and bindings on the API server that no run of
// admissiontest installed. It leaves out a kind that the user may not list.
func (t *Target) Foreign(ctx context.Context) ([]map[string]any, error) {
	var all []map[string]any
	for _, kind := range install.AdmissionKinds() {
		res, err := t.client.Resources.Of(schema.GroupVersionKind{Group: install.AdmissionGroup, Version: "v1", Kind: kind})
		if err != nil {
			continue // the API server does not serve it
		}
		list, err := t.client.ListObjects(ctx, res, metav1.ListOptions{LabelSelector: "!" + RunLabel})
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			_, labelled := item.GetLabels()[RunLabel] // an API server can ignore selectors
			if labelled || runid.Has(item.GetName(), runid.Prefix(t.RunID())) {
				continue // a run installed it, or a request of a scenario created it
			}
			item.SetAPIVersion(install.AdmissionGroup + "/v1")
			item.SetKind(kind)
			all = append(all, item.Object)
		}
	}
	return all, nil
}

// Prepare creates what the run needs on an API server with other clients before the first Sandbox, and sends
// the dry-run request of the fence. Then it probes what the API server lacks. The error says why the API server refuses one of these, as it then would
// for every Sandbox: it is an apierrors.APIStatus if a webhook or policy of another client refuses.
func (t *Target) Prepare(ctx context.Context) error {
	if err := t.noOtherRun(ctx); err != nil {
		return err
	}
	if t.sign != nil {
		if err := t.sign.open(ctx); err != nil {
			return err
		}
	}
	if err := t.fences.Check(ctx); err != nil {
		return err
	}
	if err := t.needDryRun(ctx); err != nil {
		return err
	}
	return t.probe(ctx)
}

// noOtherRun returns an error if another run is alive on an API server without other clients: configurations of
// scenarios that run alone would decide about its requests.
func (t *Target) noOtherRun(ctx context.Context) error {
	if !t.options.Disposable || t.sign == nil {
		return nil
	}
	found, err := runs(ctx, t.client)
	for id, run := range found {
		if id != t.options.Run && run.alive() {
			return fmt.Errorf("run %s is active on this API server, which one run uses at a time: wait for its end", run)
		}
	}
	return err
}
