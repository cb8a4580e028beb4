package review_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/internal/review"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            default: {}
            x-kubernetes-validations: [{rule: self.zone == oldSelf.zone}, {rule: self.a == oldSelf.b}, {rule: size(self.zone) > 0}]
            properties:
              zone: {type: string}
              color: {type: string, default: blue, x-kubernetes-validations: [{rule: oldSelf == self}]}
              size: {type: integer, default: 3}
              nothing: {type: string}
              maybe: {type: string, nullable: true, default: x}
              parts: {type: array, items: {type: object, properties: {kind: {type: string, default: plain}}}}
              more: {type: object, additionalProperties: {type: object, properties: {on: {type: boolean, default: true}}}}
  - name: v1beta1
    served: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1alpha1
    served: false
    schema: {openAPIV3Schema: {type: object}}
`

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// TestDefaults: custom resources get the defaults of their version of the schema. The input does not change.
func TestDefaults(t *testing.T) {
	kinds := review.NewKinds([]map[string]any{object(t, widgets)})
	for name, test := range map[string]struct{ in, want string }{
		"nothing":         {`{}`, `{spec: {color: blue, size: 3, maybe: x}}`},
		"values are kept": {`{spec: {color: red, size: 0}}`, `{spec: {color: red, size: 0, maybe: x}}`},
		"null":            {`{spec: {color: null, nothing: null, maybe: null}}`, `{spec: {color: blue, size: 3, maybe: null}}`},
		"below lists and maps": {
			`{spec: {parts: [{}, {kind: round}], more: {a: {}}}}`,
			`{spec: {color: blue, size: 3, maybe: x, parts: [{kind: plain}, {kind: round}], more: {a: {on: true}}}}`,
		},
		"unknown fields": {`{spec: {other: {}}}`, `{spec: {color: blue, size: 3, maybe: x, other: {}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			in, want := object(t, test.in), object(t, test.want)
			for _, each := range []map[string]any{in, want} {
				each["apiVersion"], each["kind"] = "example.com/v1", "Widget"
			}
			before, _ := yaml.Marshal(in)
			if diff := cmp.Diff(want, kinds.Defaulted(in)); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
			if after, _ := yaml.Marshal(in); string(after) != string(before) {
				t.Errorf("the input changed from %s to %s", before, after)
			}
			in["apiVersion"] = "example.com/v1beta1"
			if diff := cmp.Diff(in, kinds.Defaulted(in)); diff != "" {
				t.Errorf("a version without defaults: - want, + got:\n%s", diff)
			}
		})
	}
}

// TestDefinition: what else of a CustomResourceDefinition counts.
func TestDefinition(t *testing.T) {
	kinds := review.NewKinds([]map[string]any{object(t, widgets)})
	r, err := kinds.New(object(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}"), review.OpCreate, "")
	if err != nil {
		t.Fatal(err)
	}
	if spec, _ := r.Object["spec"].(map[string]any); spec["color"] != "blue" {
		t.Errorf("a request has no defaults: %v", r.Object)
	}
	if diff := cmp.Diff([][]string{{"spec", "zone"}, {"spec", "color"}}, kinds.Immutable(r.Kind)); diff != "" {
		t.Errorf("immutable fields: - want, + got:\n%s", diff)
	}
	if got, converter := kinds.OtherVersions(r.Kind); !cmp.Equal(got, []string{"v1beta1"}) || converter != nil {
		t.Errorf("got other versions %q, converted by %v", got, converter)
	}
	if !kinds.HasSubresource(r.Kind, "status") || kinds.HasSubresource(r.Kind, "scale") {
		t.Error("it has only the subresource status")
	}
	converted := object(t, widgets)
	converted["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook"}
	if _, converter := review.NewKinds([]map[string]any{converted}).OtherVersions(r.Kind); converter == nil {
		t.Error("a webhook converts the versions")
	}
}

// TestBodies: what a request for a subresource has is refused as its object. Another group can have an object of the same kind.
func TestBodies(t *testing.T) {
	for apiVersion, test := range map[string]struct {
		kind    string
		refused bool
	}{
		"v1": {"Binding", true}, "policy/v1": {"Eviction", true}, "autoscaling/v1": {"Scale", true},
		"example.com/v1": {"Binding", false}, "example.com/v2": {"Eviction", false}, "example.com/v3": {"Scale", false},
	} {
		manifest := map[string]any{"apiVersion": apiVersion, "kind": test.kind, "metadata": map[string]any{"name": "a"}}
		if r, err := (review.Kinds{}).New(manifest, review.OpUpdate, "status"); (err != nil) != test.refused || err == nil && r.Subresource != "status" {
			t.Errorf("%s %s: got %v, %q", apiVersion, test.kind, err, r.Subresource)
		}
	}
}
