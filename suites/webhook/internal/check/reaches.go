package check

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/review"
)

// cluster implements reach.Cluster for a Subject: it has the namespaces of the Subject, and each other namespace with
// the label that an API server sets.
type cluster struct {
	runtime.EquivalentResourceMapper
	namespaces []map[string]any
}

// errNoConversion is why a request does not reach a webhook for another version of its resource.
var errNoConversion = errors.New("this process cannot convert objects: give a sample in the version of the rule")

// Namespace implements reach.Cluster.
func (c cluster) Namespace(_ context.Context, name string) (map[string]any, error) {
	labels := map[string]any{"kubernetes.io/metadata.name": name}
	for _, each := range c.namespaces {
		u := &unstructured.Unstructured{Object: each}
		if u.GetName() == name {
			for key, value := range u.GetLabels() {
				labels[key] = value
			}
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels}}, nil
}

// Params implements reach.Cluster.
func (cluster) Params(context.Context, schema.GroupVersionKind) (reach.Params, error) {
	return reach.Params{}, nil
}

// Convert implements reach.Cluster.
func (cluster) Convert(_ context.Context, object map[string]any, kind schema.GroupVersionKind) (map[string]any, error) {
	if (&unstructured.Unstructured{Object: object}).GroupVersionKind() == kind {
		return object, nil
	}
	return nil, errNoConversion
}

// newCluster returns the cluster of a Subject.
func newCluster(manifests []map[string]any) cluster {
	of := map[any][]map[string]any{}
	for _, each := range manifests {
		of[each["kind"]] = append(of[each["kind"]], each)
	}
	return cluster{reach.NewMapper(kinds.BuiltIn(), of["CustomResourceDefinition"]...), of["Namespace"]}
}

// Reaches reports whether an API server would call a webhook for a request. Otherwise it says why not. Without a
// configuration, a webhook is called for CREATE and UPDATE, and for the operations of the samples.
func (p *Prepared) Reaches(ctx context.Context, w *Webhook, r reach.Request) (ok bool, why string) {
	effect, why := p.effect(ctx, w, r, p.cluster)
	return effect == reach.EffectCalled, why
}

// effect returns what a webhook does for a request. EffectUnknown means that it is not known whether it is called.
func (p *Prepared) effect(ctx context.Context, w *Webhook, r reach.Request, on cluster) (effect reach.Effect, why string) {
	if w.admission == nil {
		switch {
		case r.Subresource != "":
			if p.declares(r) {
				return reach.EffectCalled, ""
			}
			return reach.EffectNone, "no sample has subresource " + r.Subresource + ", and there is no configuration"
		case r.Operation == review.OpCreate || r.Operation == review.OpUpdate || slices.Contains(w.operations, r.Operation):
			return reach.EffectCalled, ""
		}
		return reach.EffectNone, fmt.Sprintf("no sample has operation %s, and there is no configuration", r.Operation)
	}
	findings, err := w.admission.Explain(ctx, r, on)
	if err != nil {
		return reach.EffectUnknown, err.Error()
	}
	return findings[0].Effect, findings[0].Text
}

// declares reports whether a sample is about the subresource of a request.
func (p *Prepared) declares(r reach.Request) bool {
	return slices.ContainsFunc(slices.Concat(p.Allow, p.Reject, p.Untouched), func(s Sample) bool { return s.Subresource == r.Subresource })
}

// IsBuiltIn reports whether a kind is one of Kubernetes' own.
func IsBuiltIn(kind schema.GroupVersionKind) bool { return scheme.Scheme.Recognizes(kind) }

// IsStruct reports whether Go's type of a built-in kind has a struct, and no pointer, at a JSON pointer.
func IsStruct(kind schema.GroupVersionKind, path string) bool {
	object, err := scheme.Scheme.New(kind)
	if err != nil {
		return false
	}
	at := reflect.TypeOf(object)
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if at = fieldType(at, name); at == nil {
			return false
		}
	}
	return at.Kind() == reflect.Struct
}

// fieldType returns the type of a field of an object, or of an entry of a map or list. Nil means that there is none.
func fieldType(of reflect.Type, name string) reflect.Type {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Map, reflect.Slice:
		return of.Elem()
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(of) {
			if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
				return field.Type
			}
		}
	}
	return nil
}
