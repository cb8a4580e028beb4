package cel

import (
	"fmt"
	"strings"
	"testing"
)

func TestNamesVariable(t *testing.T) {
	for expression, want := range map[string]bool{"namespaceObject == null": true, "'namespaceObject' == object.a": false, "object.namespaceObject": false, "has(namespaceObject.metadata)": true} {
		if got := Names(expression, "namespaceObject"); got != want {
			t.Errorf("%s: got %t; want %t", expression, got, want)
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
			variables := map[string]string{"both": "object.a.l + object.b.?l.orValue([])", "loop": "variables.loop || object.a"}
			r := NewReader(variables, []string{expression}, "object", "oldObject")
			var got []string
			for _, each := range r.Reads {
				var alternatives []string
				for _, path := range each.Paths {
					var steps []string
					for _, step := range path {
						steps = append(steps, fmt.Sprint(step))
					}
					alternatives = append(alternatives, strings.Join(steps, "."))
				}
				mark := ""
				if each.Whole {
					mark = "!"
				}
				got = append(got, strings.Join(alternatives, "|")+mark)
			}
			if r.Unknown {
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
			if got := fmt.Sprint(NewReader(map[string]string{"hidden": "params.a"}, []string{expression}, "object", "oldObject").Lost); got != want {
				t.Errorf("got %s; want %s", got, want)
			}
		})
	}
}
