package fakes_test

import (
	"encoding/json"
	"errors"
	"math/rand"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// A plugin that reads the OpenAPI of a server gets, for each of Kubernetes' own types, the owners
// of fields that client-go has.
func TestOpenAPI(t *testing.T) {
	w := fakes.NewWorld(t)
	paths, err := w.Client().Discovery().OpenAPIV3().Paths()
	must(t, paths, err)
	builtin := applyconfigurations.NewTypeConverter(scheme.Scheme)
	compared := 0
	for path, entry := range paths {
		gv, err := schema.ParseGroupVersion(strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/"))
		must(t, gv, err)
		if gv.Group == "apiextensions.k8s.io" {
			continue // controller-runtime's envtest adds it to the scheme; client-go has no fields of it
		}
		document, err := entry.Schema(runtime.ContentTypeJSON)
		must(t, document, err)
		converter, err := managedfields.NewTypeConverter(components(t, managedfields.NewTypeConverter, document), false)
		must(t, converter, err)
		types := scheme.Scheme.KnownTypes(gv)
		for kind := range types {
			if _, stored := types[kind+"List"]; !stored {
				continue
			}
			object := filled(t, gv.WithKind(kind))
			want, err := builtin.ObjectToTyped(object)
			if err != nil {
				continue // not a type that is applied
			}
			got, err := converter.ObjectToTyped(object)
			if err != nil {
				t.Errorf("%s %s: %v", path, kind, err)
				continue
			}
			wantSet, err := want.ToFieldSet()
			must(t, 0, err)
			gotSet, err := got.ToFieldSet()
			if must(t, 0, err); !gotSet.Equals(wantSet) {
				t.Errorf("%s %s: fields differ (- client-go, + OpenAPI of the World):\n%s", path, kind, cmp.Diff(wantSet.String(), gotSet.String()))
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("compared %d kinds, want all of Kubernetes", compared)
	}
}

// components returns the schemas of an OpenAPI document, in the type that a function takes.
func components[S any](t *testing.T, _ func(map[string]S, bool) (managedfields.TypeConverter, error), document []byte) map[string]S {
	t.Helper()
	var read struct {
		Components struct{ Schemas map[string]S }
	}
	must(t, 0, json.Unmarshal(document, &read))
	return read.Components.Schemas
}

// Other paths are not found, and types of other projects have no schema.
func TestNoOpenAPI(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithScheme(fischerScheme()))
	schemas := &resolver.ClientDiscoveryResolver{Discovery: w.Client().Discovery()}
	if _, err := schemas.ResolveSchema(fischers().WithKind("Fischer")); !errors.Is(err, resolver.ErrSchemaNotFound) {
		t.Errorf("got %v for a type of another project, want that it has no schema", err)
	}
	for _, path := range []string{"/openapi/v3/apis", "/openapi/v3/apis/apps/v9", "/openapi/v2"} {
		t.Run(path, func(t *testing.T) {
			if _, err := w.Client().Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Raw(); !apierrors.IsNotFound(err) {
				t.Errorf("got %v, want not found", err)
			}
		})
	}
}

// filled returns an object of a kind with two elements in each list and map.
func filled(t *testing.T, gvk schema.GroupVersionKind) runtime.Object {
	t.Helper()
	object, err := scheme.Scheme.New(gvk)
	must(t, object, err)
	randfill.New().RandSource(rand.NewSource(1)).NilChance(0).NumElements(2, 2).MaxDepth(12).Funcs( //nolint:gosec // a test can repeat it
		func(q *resource.Quantity, _ randfill.Continue) { *q = resource.MustParse("1") },
		func(e *runtime.RawExtension, _ randfill.Continue) { e.Raw = []byte(`{"a":{"b":1}}`) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.Raw = []byte("{}") },
		func(m *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *m = nil },
	).Fill(object)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return toUnstructured(t, object)
}
