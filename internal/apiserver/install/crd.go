package install

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// ErrDiffers marks an object of the cluster that another client created and that differs from the one
// to install.
var ErrDiffers = errors.New("the cluster has another CustomResourceDefinition of this name")

// useExisting reports whether the API server has a CustomResourceDefinition already, which this run did
// not create. The run uses that definition unchanged, and does not remove it. The error is an ErrDiffers
// if its spec differs from the manifest, apart from defaults of the API server.
func (i *Installer) useExisting(ctx context.Context, o client.Object, manifest map[string]any) (bool, error) {
	current, err := i.Client.Get(ctx, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	run := RunOf(current)
	switch {
	case run == i.Run:
		return false, nil // to be replaced
	case run != "":
		return false, fmt.Errorf("install %s: %w: run %s created it and will remove it: wait for its end, or remove it with `admissiontest cleanup --run %s`", o, ErrDiffers, run, run)
	case current.GetDeletionTimestamp() != nil:
		return false, fmt.Errorf("install %s: %w, which is being deleted: wait until it is gone", o, ErrDiffers)
	}
	found, err := i.differences(ctx, o, current, manifest)
	if err != nil {
		return false, fmt.Errorf("compare %s with the one of the cluster: %w", o, err)
	}
	if len(found) > 0 {
		return false, fmt.Errorf("install %s: %w, which differs: update it, or remove it to install yours for the run (- cluster, + yours):\n%s", o, ErrDiffers, strings.Join(found, "\n"))
	}
	return true, i.waitUntilServed(ctx, manifest)
}

// differences compares the spec of an object with what it would be after an update to a manifest, for
// which the API server sets defaults.
func (i *Installer) differences(ctx context.Context, o client.Object, current *unstructured.Unstructured, manifest map[string]any) ([]string, error) {
	wanted := maps.Clone(current.Object)
	wanted["apiVersion"], wanted["spec"] = manifest["apiVersion"], withBundle(cloneMap(manifest["spec"]), current.Object)
	updated, err := i.Client.TryUpdate(ctx, o, wanted)
	if err != nil {
		return nil, err
	}
	return atMost(maxDifferences, compare("spec", current.Object["spec"], updated.Object["spec"])), nil
}

// withBundle copies the caBundle of the conversion webhook from the cluster if the manifest has none:
// a controller injected it there.
func withBundle(spec map[string]any, current map[string]any) map[string]any {
	path := []string{"conversion", "webhook", "clientConfig", "caBundle"}
	injected, found, _ := unstructured.NestedString(current, append([]string{"spec"}, path...)...)
	own, _, _ := unstructured.NestedString(spec, path...)
	decoded, err := base64.StdEncoding.DecodeString(own)
	if _, webhook, _ := unstructured.NestedMap(spec, path[:3]...); !webhook || !found || err != nil || strings.TrimSpace(string(decoded)) != "" {
		return spec
	}
	spec = (&unstructured.Unstructured{Object: spec}).DeepCopy().Object
	_ = unstructured.SetNestedField(spec, injected, path...) // the mappings exist
	return spec
}

// maxDifferences is the largest number of differences that an error names.
const maxDifferences = 10

func atMost(n int, lines []string) []string {
	if len(lines) <= n {
		return lines
	}
	return append(lines[:n:n], fmt.Sprintf("  and %d more", len(lines)-n))
}

// compare returns a line for each value of a and b that differs, with its path.
func compare(path string, a, b any) []string {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			var lines []string
			all := maps.Clone(a)
			maps.Copy(all, b)
			for _, key := range slices.Sorted(maps.Keys(all)) {
				lines = append(lines, compare(path+"."+key, a[key], b[key])...)
			}
			return lines
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			var lines []string
			for k := range a {
				lines = append(lines, compare(fmt.Sprintf("%s[%d]", path, k), a[k], b[k])...)
			}
			return lines
		}
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return []string{fmt.Sprintf("  %s: - %s + %s", path, short(a), short(b))}
}

// shortLength is the largest length of a value in a difference.
const shortLength = 60

func short(value any) string {
	if value == nil {
		return "(absent)"
	}
	text := []rune(fmt.Sprintf("%v", value))
	if len(text) > shortLength {
		text = append(text[:shortLength:shortLength], '…')
	}
	return string(text)
}
