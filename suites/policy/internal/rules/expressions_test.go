package rules

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/shipped"
)

func withExpression(expression string) Policy { return withExpressionIn("validations", expression) }

func withExpressionIn(list, expression string) Policy {
	return Subject{Policies: []shipped.Manifest{{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": validatingPolicy,
		"spec": map[string]any{list: []any{map[string]any{"expression": expression}}},
	}}}}.List()[0]
}

// A constant that ends in a separator is bounded. The near miss has more on the side that the function leaves open.
func TestOpenConstants(t *testing.T) {
	for expression, want := range map[string]string{
		"object.a.startsWith('b.c')":                         "[{startsWith b.c false}] xxx/d b.cx/d",
		"object.a.startsWith('b.c/')":                        "[]",
		`object.a.endsWith("/d")`:                            "[]",
		`object.a.endsWith("d")`:                             "[{endsWith d false}] b.c/x b.c/xd",
		"object.a.contains('c/d')":                           "[{contains c/d false}] b.xxx b.xc/dx",
		"request.userInfo.username.startsWith('system:d8')":  "[{startsWith system:d8 true}]",
		"object.a.startsWith(params.b) || object.a == 'b.c'": "[{startsWith p.q false}]",
	} {
		t.Run(expression, func(t *testing.T) {
			constants := withExpression(expression).openConstants([]string{"p.q", "p/"})
			got := fmt.Sprint(constants)
			for _, c := range constants {
				if replaced, near, ok := c.inside("b.c/d"); ok {
					got += " " + replaced + " " + near
				}
			}
			if got != want {
				t.Errorf("got %s; want %s", got, want)
			}
		})
	}
}

// Only labels and annotations of the object count, which its author writes.
func TestKeys(t *testing.T) {
	for expression, want := range map[string]string{
		"has(object.metadata.labels.exempt)":                             "labels exempt",
		"object.metadata.?annotations[?'a.b/c'].orValue('no') == 'yes'":  "annotations a.b/c",
		"object.metadata.?labels.exempt.orValue('no') == 'yes'":          "labels exempt",
		"object.metadata.labels.exists(k, k == 'x')":                     "labels x",
		"'exempt' in object.metadata.labels":                             "labels exempt",
		"object.metadata.labels == {'a': 'b'}":                           "",
		"namespaceObject.metadata.labels.exempt == 'yes'":                "",
		"oldObject.metadata.labels['exempt'] == params.data.labels":      "",
		"object.spec.template.metadata.labels.app != object.data.labels": "",
	} {
		t.Run(expression, func(t *testing.T) {
			got := ""
			for i, k := range (Subject{Policies: []shipped.Manifest{{Object: withExpressionIn("matchConditions", expression).Object}}}).keys() {
				if i > 0 {
					got += "; "
				}
				got += k.in + " " + k.key
			}
			if got != want {
				t.Errorf("got %s; want %s", got, want)
			}
		})
	}
}

// What is missing, or in another order, is lost. What is new or changed is not.
func TestLost(t *testing.T) {
	list := func(names ...string) map[string]any {
		var items []any
		for _, name := range names {
			items = append(items, map[string]any{"name": name, "value": "v" + name})
		}
		return map[string]any{"list": items}
	}
	changed := list("a", "b")
	changed["list"].([]any)[1].(map[string]any)["value"] = "other" //nolint:forcetypeassert // it was made so
	rules := func(hosts ...string) map[string]any {                // without names; what is without a host can become any of them
		var items []any
		for _, host := range hosts {
			item := map[string]any{"http": map[string]any{"path": "/"}}
			if host != "" {
				item["host"] = host
			}
			items = append(items, item)
		}
		return map[string]any{"list": items}
	}
	tolerations := func(key string) map[string]any {
		return map[string]any{"list": []any{map[string]any{"key": key, "operator": "Exists"}}}
	}
	for name, test := range map[string]struct {
		object, later map[string]any
		want          []string
	}{
		"no name, changed":            {rules("a", "b"), rules("c", "b"), nil},
		"no name, changed beside any": {rules("a", ""), rules("c", ""), nil},
		"no name, another order":      {rules("a", "b"), rules("b", "a"), []string{"list[1]"}},
		"no name, removed":            {rules("a", "b"), rules("b"), []string{"list[0]"}},
		"no name, one for another":    {rules("a", "b"), rules("b", "c"), []string{"list[0]"}},
		"no name, replaced":           {rules("a"), map[string]any{"list": []any{map[string]any{"host": "b"}}}, []string{"list[0].http"}},
		"another key":                 {tolerations("a"), tolerations("b"), []string{"list[0]"}},
		"another name":                {list("a", "b"), list("c", "b"), []string{"list[0]"}},

		"same":          {list("a", "b"), list("a", "b"), nil},
		"inserted":      {list("a", "b"), list("x", "a", "y", "b", "z"), nil},
		"changed":       {list("a", "b"), changed, nil},
		"removed":       {list("a", "b"), list("b"), []string{"list[0]"}},
		"another order": {list("a", "b"), list("b", "a"), []string{"list[1]"}},
		"no map":        {map[string]any{"m": map[string]any{"a": "b"}}, map[string]any{}, []string{"m"}},
		"no key":        {map[string]any{"m": map[string]any{"a": "b"}}, map[string]any{"m": map[string]any{"c": "d"}}, []string{"m.a"}},
		"scalars":       {map[string]any{"l": []any{"a", "b"}}, map[string]any{"l": []any{"c", "b"}}, []string{"l[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, path := range lost(test.object, test.later, nil) {
				got = append(got, path.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("- want, + got:\n%s", diff)
			}
		})
	}
}

// Each form has the same value as the quantity.
func TestEqualQuantities(t *testing.T) {
	for text, want := range map[string]string{
		"1": "[1000m 1e0]", "1000m": "[1 1e0]", "250m": "[0.25]", "1Gi": "[1073741824 1073741824000m 1073741824e0 1048576Ki]", "-1": "[]", "x": "[]",
	} {
		if got := fmt.Sprint(equalQuantities(text)); got != want {
			t.Errorf("%s: got %s; want %s", text, got, want)
		}
	}
}

// Each element is read of a list, and only the entry of a map.
func TestReadsIn(t *testing.T) {
	read := Subject{Policies: []shipped.Manifest{{Object: withExpression("'x' in object.spec.a").Object}}}.readPaths(Policy.expressions)
	for step, want := range map[any]bool{0: true, "x": true, "y": false} {
		if got := read.have(cel.Path{"spec", "a", step}); got != want {
			t.Errorf("%v: got %t; want %t", step, got, want)
		}
	}
}

// A message is an expression if it joins what it reads. English is none.
func TestIsExpression(t *testing.T) {
	for message, want := range map[string]bool{
		"object.metadata.name + ' is bad'": true, "'bad: ' + string(params.a)": true, "images must come from a + b": false, "a + b": false,
		"object.metadata.name": false, "limits": false, "": false, "the object.name + is bad": false,
	} {
		if got := IsExpression(message); got != want {
			t.Errorf("%q: got %t; want %t", message, got, want)
		}
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
	if !referred(object, cel.Path{"spec", "volumes"}, "v") || referred(object, cel.Path{"spec", "containers"}, "c") {
		t.Error("want the volume, and not the container")
	}
}

// Of a defect, what policies read decides. If none of it is read, or an expression does not parse, all of it may.
func TestDeciding(t *testing.T) {
	image, name, drop, label := cel.Path{"spec", "containers", 0, "image"}, cel.Path{"spec", "containers", 0, "name"}, cel.Path{"spec", "containers", 0, "drop", 1}, cel.Path{"metadata", "labels", "a"}
	all := []cel.Path{image, name, drop, label}
	for expression, want := range map[string][]cel.Path{
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
