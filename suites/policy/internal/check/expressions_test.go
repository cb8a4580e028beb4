package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

func withExpression(expression string) Policy { return withExpressionIn("validations", expression) }

func withExpressionIn(list, expression string) Policy {
	return Policy{unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": validatingPolicy,
		"spec": map[string]any{list: []any{map[string]any{"expression": expression}}},
	}}}
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

func TestNamesVariable(t *testing.T) {
	for expression, want := range map[string]bool{"namespaceObject == null": true, "'namespaceObject' == object.a": false, "object.namespaceObject": false, "has(namespaceObject.metadata)": true} {
		if got := Names(expression, "namespaceObject"); got != want {
			t.Errorf("%s: got %t; want %t", expression, got, want)
		}
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

// The paths are of the object, through variables, macros and optional fields. Names are as in the schema, without
// escapes.
func TestReads(t *testing.T) {
	for expression, want := range map[string]string{
		"object.spec.?containers.orValue([])":                          "spec spec.containers",
		"has(object.a.b) && oldObject.c == x":                          "a a.b c",
		"params.object.a == namespaceObject.a.b":                       "",
		"object.spec.containers.all(c, c.object == 'object.x')":        "spec spec.containers spec.containers.* spec.containers.*.object",
		"object.all(key, key == 'object.a.b')":                         "*",
		"object.spec.allow__dash__all == object.__package__":           "spec spec.allow-all package",
		"object.a__b == 1":                                             "a__b",
		"object.metadata.labels['a.b/c'] == object.metadata.labels[x]": "metadata metadata.labels metadata.labels.a.b/c metadata metadata.labels metadata.labels.*",
		"'x' in object.a || object.b in ['y']":                         "a a.x b",
		"variables.both.exists(c, c.name == 'x')":                      "a a.l b b.l a.l.*|b.l.* a.l.*.name|b.l.*.name",
		"(object.kind == 'a' ? object.a : object.b).c == 1":            "kind a b a.c|b.c",
		"object.l.map(c, c.m).all(m, m.n == 1)":                        "l l.* l.*.m l.*.m l.*.m.n",
		"object.l.map(c, c.m).flatten().all(m, m.n == 1)":              "l l.* l.*.m l.*.m.* l.*.m.*.n",
		"object.l.filter(c, has(c.m))[0].n == 1":                       "l l.* l.*.m l.* l.*.n",
		"quantity(object.a) == object.?b.optMap(v, v.c).orValue(1)":    "a a! b b.c",
		"f(object)": "!",
		"object.l.exists(c, c.a == 1 && object.m.all(c, c.b == 1))": "l l.* l.*.a m m.* m.*.b",
		"object.l.transformList(i, v, v.a).all(x, x == 1)":          "l l.* l.*.a",
		"object.spec != oldObject.spec":                             "spec spec",
		"object.a ==":                                               "?",
		"variables.unknown.a == 1":                                  "?",
		"variables.loop == 1":                                       "a",
		"'x' in (object.k ? object.a : object.b)":                   "k a b a.x|b.x",
		"'x' in object.l.map(c, c.m)":                               "l l.* l.*.m l.*.m",
	} {
		t.Run(expression, func(t *testing.T) {
			p := withExpression(expression)
			p.Object["spec"].(map[string]any)["variables"] = []any{ //nolint:forcetypeassert // it was made so
				map[string]any{"name": "both", "expression": "object.a.l + object.b.?l.orValue([])"},
				map[string]any{"name": "loop", "expression": "variables.loop || object.a"},
			}
			all, known := p.reads([]string{expression}, "object", "oldObject")
			var got []string
			for _, each := range all {
				var alternatives []string
				for _, path := range each.paths {
					var steps []string
					for _, step := range path {
						steps = append(steps, fmt.Sprint(step))
					}
					alternatives = append(alternatives, strings.Join(steps, "."))
				}
				mark := ""
				if each.whole {
					mark = "!"
				}
				got = append(got, strings.Join(alternatives, "|")+mark)
			}
			if !known {
				got = append(got, "?")
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// A name is read of something whose paths are not known. What a variable reads belongs to the variable.
func TestNotFollowed(t *testing.T) {
	for expression, want := range map[string]string{
		"object.l.all(c, c.a == oldObject.l[0].b) && request.a.?b == namespaceObject.c['d']": "[]",
		"params.data.a == object.b":                                  "[params params.data]",
		"f(object).a == 'b'":                                         "[f(object)]",
		"[object.a].exists(c, c.b == 1)":                             "[c]",
		"object.l.transformList(i, v, v.a).all(c, c.b == 1)":         "[c]",
		"['a'].all(request, request.b == 1)":                         "[request]",
		"object.a.replace(c, c.b) == 'x'":                            "[c]",
		"(request.dryRun ? {} : f(object)).a":                        "[request.dryRun ? {} : f(object)]",
		"'x' in f(object) || f(object)['y']":                         "[f(object) f(object)]",
		"'x' in ['x'] && object.a.split('/')[0] in ['y']":            "[]",
		"object.a[f(object)] == 'b'":                                 "[]",
		"variables.hidden == 1 && variables.hidden.a == 1":           "[variables.hidden]",
		"variables.unknown == 1":                                     "[variables.unknown]",
		"object.a ==":                                                "[object.a ==]",
		"(object.a.l + object.?b.l.orValue([])).all(c, has(c.name))": "[]",
	} {
		t.Run(expression, func(t *testing.T) {
			p := withExpression(expression)
			p.Object["spec"].(map[string]any)["variables"] = []any{map[string]any{"name": "hidden", "expression": "params.a"}} //nolint:forcetypeassert // it was made so
			if got := fmt.Sprint(p.reader([]string{expression}, "object", "oldObject").lost); got != want {
				t.Errorf("got %s; want %s", got, want)
			}
		})
	}
}

// Each element is read of a list, and only the entry of a map.
func TestReadsIn(t *testing.T) {
	read := Subject{Policies: []shipped.Manifest{{Object: withExpression("'x' in object.spec.a").Object}}}.readPaths(Policy.expressions)
	for step, want := range map[any]bool{0: true, "x": true, "y": false} {
		if got := read.have(Path{"spec", "a", step}); got != want {
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

// A rule matches as it does on an API server.
func TestRuleMatches(t *testing.T) {
	for _, test := range []struct {
		resources, scope, operation, served string
		want                                bool
	}{
		{"pods", "*", "UPDATE", "pods", true},
		{"pods", "*", "UPDATE", "pods/status", false},
		{"pods", "*", "CREATE", "pods", false},
		{"pods/*", "*", "UPDATE", "pods/status", true},
		{"pods/*", "*", "UPDATE", "pods", true},
		{"*/status", "*", "UPDATE", "pods/status", true},
		{"*", "*", "UPDATE", "pods", true},
		{"*", "*", "UPDATE", "pods/status", false},
		{"*/*", "*", "UPDATE", "pods/status", true},
		{"pods", "Cluster", "UPDATE", "pods", false},
		{"pods", "Namespaced", "UPDATE", "pods", true},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			rule := map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{test.resources}, "scope": test.scope}
			served := metav1.APIResource{Version: "v1", Name: test.served, Kind: "Pod", Namespaced: true}
			if got := ruleMatches(rule, served, admission.Operation(test.operation)); got != test.want {
				t.Errorf("got %t", got)
			}
			served.Group = "apps"
			if ruleMatches(rule, served, admission.Operation(test.operation)) {
				t.Error("it matches another group")
			}
		})
	}
}
