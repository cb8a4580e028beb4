package rules

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// otherVersions returns the other served versions of a kind.
func (b *bench) otherVersions(kind schema.GroupVersionKind) []schema.GroupVersionKind {
	return b.served(func(each metav1.APIResource) bool {
		return isObject(each) && each.Group == kind.Group && each.Kind == kind.Kind && each.Version != kind.Version
	})
}

// versions creates a stored bad object in each other version, as the API server converts it. A version in which it
// is the same as its fix does not have the defect.
func (b *bench) versions(ctx context.Context, s sample, bad, fixed *unstructured.Unstructured) ([]*Case, error) {
	var cases []*Case
	for _, kind := range b.otherVersions(bad.GroupVersionKind()) {
		converted, err := b.converted(ctx, bad, kind)
		if err != nil {
			return nil, err
		}
		other, err := b.converted(ctx, fixed, kind)
		if err != nil {
			return nil, err
		}
		if converted == nil || other == nil {
			continue
		}
		other.SetName(converted.GetName())
		if len(vary.Differences(converted.Object, other.Object)) == 0 {
			continue
		}
		cases = append(cases, b.create(Versions, s, converted.Object, "in version "+kind.GroupVersion().String()))
	}
	return cases, nil
}

// converted returns a stored object in another version, without what the API server sets, under a name that does not
// exist, or nil.
func (b *bench) converted(ctx context.Context, stored *unstructured.Unstructured, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	result, err := b.sandbox.Send(ctx, framework.Request{Verb: framework.VerbGet, Kind: kind, Namespace: stored.GetNamespace(), Name: stored.GetName()})
	got, _ := result.Object.(*unstructured.Unstructured)
	if err != nil || got == nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: vary.OfClient(got.Object)}
	u.SetName(stored.GetName() + "-converted")
	return u, nil
}
