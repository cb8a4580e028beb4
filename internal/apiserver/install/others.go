package install

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OtherRuns returns the IDs of other runs that have webhook configurations or policies
// on the API server. Readers of parameters do not count: they exist as long as their run.
func (i *Installer) OtherRuns(ctx context.Context) ([]string, error) {
	var found []string
	for _, kind := range []string{KindMutatingWebhooks, KindValidatingWebhooks, KindValidatingPolicy, KindMutatingPolicy} {
		res, err := i.Client.Resources.Of(schema.GroupVersionKind{Group: AdmissionGroup, Version: "v1", Kind: kind})
		if err != nil {
			continue // the API server does not serve it
		}
		list, err := i.Client.List(ctx, res, "", metav1.ListOptions{LabelSelector: RunLabel + "," + RunLabel + "!=" + i.Run})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			run := item.Labels[RunLabel] // an API server can ignore selectors
			if run == "" || run == i.Run || strings.HasPrefix(item.Name, item.Labels[ScenarioLabel]+"-"+ReaderPrefix) {
				continue
			}
			found = append(found, run)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
