package install

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// complete makes a stored object what its manifest says, where an API server ignores fields of a create
// or update: it deletes an object with a deletionTimestamp, which its finalizers keep, and writes the
// status to its subresource. The error is a framework.ManifestError with the first field that the object
// does not have then. CustomResourceDefinitions, whose status is of the API server, and what decides about
// requests are not compared.
func (i *Installer) complete(ctx context.Context, o client.Object, manifest map[string]any, stored *unstructured.Unstructured) error {
	if o.Resource.Group == AdmissionGroup || o.Resource.Resource == "customresourcedefinitions" {
		return nil
	}
	var err error
	given := &unstructured.Unstructured{Object: manifest}
	if given.GetDeletionTimestamp() != nil && stored.GetDeletionTimestamp() == nil {
		if stored, err = i.markDeleted(ctx, o, given, stored); err != nil {
			return err
		}
	}
	if status := manifest["status"]; status != nil && lostField("status", status, stored.Object["status"]) != nil {
		next := maps.Clone(stored.Object)
		next["status"] = status
		updated, err := i.Client.Update(ctx, o, next, "status")
		switch {
		case err == nil:
			stored = updated
		case !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err): // it has no such subresource
			return fmt.Errorf("write the status: %w", err)
		}
	}
	if lost := lostFields(manifest, stored.Object); lost != nil {
		stands := "does not store it"
		if lost.stored != nil && stored.GetKind() != "Secret" {
			stands = fmt.Sprintf("stores %.*s instead", shortLength, fmt.Sprint(lost.stored))
		}
		return &framework.ManifestError{Field: lost.path, Err: fmt.Errorf("%s: the API server %s, so no request would meet the object as written: remove the field, or write what the API server stores", lost.path, stands)}
	}
	return nil
}

// markDeleted deletes an object that has finalizers, and returns it.
func (i *Installer) markDeleted(ctx context.Context, o client.Object, given, stored *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	const field = "metadata.deletionTimestamp"
	if len(stored.GetFinalizers()) == 0 && o.Resource.GroupVersionResource != client.Namespaces() {
		return nil, &framework.ManifestError{Field: field, Err: fmt.Errorf("%s: the API server removes an object without finalizers at once: add metadata.finalizers, such as [example.com/wait]", field)}
	}
	if err := i.Client.DeleteGracefully(ctx, o, given.GetDeletionGracePeriodSeconds()); err != nil {
		return nil, err
	}
	return i.Client.Get(ctx, o)
}

// shortLength is the largest length of a value in an error.
const shortLength = 60

// lost is a field that a stored object does not have, or has with another value.
type lost struct {
	path   string
	stored any
}

// lostFields returns the first field of a manifest that the stored object lacks or has with another
// value, or nil. Not compared are the namespace, which the run sets, the time of a deletion, and
// stringData of a Secret, which the API server moves to data.
func lostFields(manifest, stored map[string]any) *lost {
	given := maps.Clone(manifest)
	for _, field := range []string{"apiVersion", "kind", "stringData"} {
		delete(given, field)
	}
	metadata := cloneMap(given["metadata"])
	for _, field := range []string{"name", "namespace", "generateName", "deletionTimestamp"} {
		delete(metadata, field)
	}
	given["metadata"] = metadata
	return lostField("", given, stored)
}

// lostField returns the first field of given that stored lacks or has with another value. Fields
// without a value can be absent, lists can be longer and in another order, and numbers and quantities can be written
// in another way.
func lostField(path string, given, stored any) *lost {
	switch given := given.(type) {
	case nil:
		return nil
	case map[string]any:
		fields, _ := stored.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(given)) {
			at := name
			if path != "" {
				at = path + "." + name
			}
			if found := lostField(at, given[name], fields[name]); found != nil {
				return found
			}
		}
		return nil
	case []any:
		items, _ := stored.([]any)
		for k, item := range given {
			if slices.ContainsFunc(items, func(other any) bool { return lostField("", item, other) == nil }) {
				continue
			}
			var at any
			if k < len(items) {
				at = items[k]
			}
			if found := lostField(fmt.Sprintf("%s[%d]", path, k), item, at); found != nil {
				return found
			}
		}
		return nil
	default:
		if stored == nil && slices.Contains([]any{"", false, int64(0), float64(0)}, given) || sameValue(given, stored) {
			return nil
		}
		return &lost{path, stored}
	}
}

// sameValue reports whether two values mean the same.
func sameValue(a, b any) bool {
	left, right := fmt.Sprint(a), fmt.Sprint(b)
	x, err := resource.ParseQuantity(left)
	y, other := resource.ParseQuantity(right)
	return left == right || err == nil && other == nil && x.Cmp(y) == 0
}
