package check

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

func pod(image string, more ...any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": image, "labels": map[string]any{"a.b/c": "d"}},
		"spec": map[string]any{"containers": append([]any{map[string]any{"image": image}}, more...)},
	}
}

// Each value is varied, but what says which object it is; the order is always the same.
func TestPaths(t *testing.T) {
	var got []string
	for _, path := range paths(pod("i"), nil) {
		got = append(got, path.String())
	}
	want := []string{"metadata", "metadata.labels", `metadata.labels["a.b/c"]`, "spec", "spec.containers", "spec.containers[0]", "spec.containers[0].image"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestWith(t *testing.T) {
	object := pod("i", map[string]any{"image": "second"})
	for _, test := range []struct {
		path   Path
		change func(any) (any, bool)
		want   map[string]any
	}{
		{Path{"spec", "containers", 1}, remove, pod("i")},
		{Path{"spec", "containers", 2}, remove, nil},
		{Path{"spec", "volumes", 0}, remove, nil},
		{Path{"spec", "containers"}, func(any) (any, bool) { return []any{map[string]any{"image": "i"}}, true }, pod("i")},
	} {
		t.Run(test.path.String(), func(t *testing.T) {
			if diff := cmp.Diff(test.want, with(object, test.path, test.change)); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(pod("i", map[string]any{"image": "second"}), object); diff != "" {
		t.Errorf("the original has changed:\n%s", diff)
	}
}

// A defect is where objects differ, as deep as possible; a list of another length differs as a whole.
func TestDefect(t *testing.T) {
	for want, bad := range map[string]Bad{
		"[spec.containers[0].image]": {Object: pod("bad"), Fix: pod("good")},
		"[spec.containers]":          {Object: pod("good", map[string]any{"image": "bad"}), Fix: pod("good")},
		"[]":                         {Object: pod("bad")},
	} {
		t.Run(want, func(t *testing.T) {
			if got := fmt.Sprint(bad.Defect()); got != want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// What an API server sets is no difference; everything else is.
func TestDifferences(t *testing.T) {
	sent, got := pod("i"), pod("i")
	got["status"] = map[string]any{"phase": "Pending"}
	metadata, _ := got["metadata"].(map[string]any)
	metadata["uid"], metadata["resourceVersion"] = "1", "2"
	if found := Differences(sent, got); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	metadata["finalizers"] = []any{"a/b"}
	got["type"] = "t"
	if found := fmt.Sprint(Differences(sent, got)); found != "[metadata.finalizers type]" {
		t.Errorf("got %s", found)
	}
}

// A volume that is mounted is referred to by its name; a container whose label has its name is not.
func TestReferred(t *testing.T) {
	object := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"name": "c"}},
		"spec": map[string]any{
			"volumes":    []any{map[string]any{"name": "v"}},
			"containers": []any{map[string]any{"name": "c", "image": "v", "volumeMounts": []any{map[string]any{"name": "v"}}}},
		},
	}
	if !referred(object, Path{"spec", "volumes"}, "v") || referred(object, Path{"spec", "containers"}, "c") {
		t.Error("want the volume, and not the container")
	}
}

// What a Draft reads of policies can be empty.
func TestDraftOfEmptyValues(t *testing.T) {
	if got := joined("a", []string{"", "/"}); len(got) != 2 {
		t.Errorf("joined: %v", got)
	}
	s := Subject{Policies: []shipped.Manifest{{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": validatingPolicy, "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{
			"matchConstraints": map[string]any{"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "In"}}}},
			"validations":      []any{map[string]any{"expression": "namespaceObject != null && object != null && namespaceObject.metadata.labels.tier == 'prod' && object.kind == ''"}},
		},
	}}}}
	if got := fmt.Sprint(s.namespaces()); got != "[map[] map[tier:prod]]" {
		t.Errorf("namespaces: %s", got)
	}
}

// A message of an API server says which field an object lacks. A word that is no field, or a field that it has, is none.
func TestLacking(t *testing.T) {
	field := map[string]any{"type": "object"}
	m := &maker{schemas: map[string]map[string]any{"spec": {"properties": map[string]any{"defaultBackend": field, "rules": field}}}}
	has := map[string]any{"spec": map[string]any{"defaultBackend": map[string]any{}}}
	for message, want := range map[string]string{
		"either `defaultBackend` or `rules` must be specified": "spec.rules",
		"Invalid value: null": "",
	} {
		if got := m.lacking(has, Path{"spec"}, message).String(); got != want {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
}

// Of a defect, what policies read decides. If none of it is read, or an expression does not parse, all of it may.
func TestDeciding(t *testing.T) {
	image, name, drop, label := Path{"spec", "containers", 0, "image"}, Path{"spec", "containers", 0, "name"}, Path{"spec", "containers", 0, "drop", 1}, Path{"metadata", "labels", "a"}
	all := []Path{image, name, drop, label}
	for expression, want := range map[string][]Path{
		"object.spec.containers.all(c, c.image == 'i')":                         {image},
		"object.spec.containers.all(c, c.image == 'i' && 'ALL' in c.drop)":      {image, drop},
		"object.metadata.labels == {'a': 'b'} && object.spec.replicas == 1":     {label},
		"has(object.spec.containers)":                                           {image, name, drop},
		"object.spec != oldObject.spec && object.spec.containers[0].name > 'a'": {name},
		"object != null && object.metadata.labels.exists(k, k == 'b')":          {label},
		"object.spec.replicas == 1":                                             all,
		"f(object)":                                                             all,
		"object.spec ==":                                                        all,
	} {
		t.Run(expression, func(t *testing.T) {
			s := Subject{Policies: []shipped.Manifest{{Object: withExpression(expression).Object}}}
			if diff := cmp.Diff(want, s.deciding(all)); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}
