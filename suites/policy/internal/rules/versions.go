package rules

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
func (b *bench) versions(ctx context.Context, s sample, bad, fixed *unstructured.Unstructured) {
	for _, kind := range b.otherVersions(s.kind) {
		converted, other := b.get(ctx, kind, bad, ""), b.get(ctx, kind, fixed, "")
		if converted == nil || other == nil || len(vary.Defect(converted.Object, other.Object)) == 0 {
			continue
		}
		converted.Object = vary.OfClient(converted.Object)
		converted.SetName(bad.GetName() + "-converted")
		b.derive(Versions, s, converted.Object, "in version "+kind.GroupVersion().String())
	}
}
