package rules

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// fieldRules returns the rules for fields that the webhook is not for.
func fieldRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-FIELD-1", Name: "unknown-fields-survive", Level: framework.Must,
			Title:  "Fields that the webhook does not know survive, at every depth, when an object is created and when it is updated.",
			Why:    "A webhook is compiled with the types of one Kubernetes version. If it encodes these types, it deletes the fields of newer versions in every object.",
			Fix:    "Make the patch from the changes only, not from the encoded type: compare two encodings of the type, or use an unstructured object.",
			Source: []string{"https://github.com/kubernetes-sigs/kueue/issues/2878", "https://github.com/kubernetes-sigs/controller-runtime/issues/2982"},
			Check:  checkUnknownFields,
		},
		{
			ID: "WH-FIELD-2", Name: "foreign-entries-survive", Level: framework.Must,
			Title:  "The patch touches only what the webhook is for: entries of other clients survive in maps and lists, in their order, and the patch adds no empty values.",
			Why:    "Labels, annotations, finalizers and containers of other clients are lost otherwise, and what controllers compare changes without a reason.",
			Fix:    "Add single entries with a patch, instead of replacing a map or list.",
			Source: []string{"https://github.com/slok/kubewebhook/pull/50", "https://github.com/open-policy-agent/gatekeeper/pull/1026", goodPractices},
			Check:  checkForeignEntries,
		},
		{
			ID: "WH-FIELD-4", Name: "integers-survive", Level: framework.Must,
			Title:  "Large integers survive exactly.",
			Why:    "A JSON decoder that reads numbers as float64 changes integers above 2^53.",
			Fix:    "Decode into the type of the object, or with k8s.io/apimachinery/pkg/util/json, and patch only what changes.",
			Source: []string{"https://github.com/agones-dev/agones/issues/3636", "https://github.com/gomodules/jsonpatch/issues/39"},
			Check:  checkIntegers,
		},
	}
}

// unknown is the name of a field that no webhook knows.
const unknown = "contractUnknown"

// insertUnknown adds a field to each object in a value, at every depth, and returns how many fields it added.
func insertUnknown(value any, isRoot bool) (added int) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if isRoot && key == "metadata" || slices.Contains([]string{"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "binaryData", "limits", "requests"}, key) {
				continue // their values are strings, or the API server handles them
			}
			added += insertUnknown(child, false)
		}
		value[unknown] = map[string]any{"a": int64(1)}
		added++
	case []any:
		for _, child := range value {
			added += insertUnknown(child, false)
		}
	}
	return added
}

// counted returns how many unknown fields an object has.
func counted(object map[string]any) int {
	return bytes.Count(encoded(object), []byte(`"`+unknown+`":{"a":1}`))
}

func checkUnknownFields(t *check.T) {
	mutating(t)
	eachObject(t, func(c check.Case, _ check.Decision) {
		object := changed(c.Request.Object, func(*unstructured.Unstructured) {})
		added := insertUnknown(object, true)
		for _, r := range []reach.Request{withObject(c.Request, object), updateOf(c.Request, object, addLabel)} {
			if !t.Called(r) {
				continue
			}
			d, ok := t.Decide(r)
			if !ok || !d.Response.Allowed {
				continue // WH-ROBUST-3
			}
			t.Reached()
			if kept := counted(d.Object); kept < added {
				var lost []string
				eachValue(r.Object, nil, func(path []string, _ any) {
					if len(path) > 1 && path[len(path)-2] == unknown && valueAt(d.Object, path) == nil {
						lost = append(lost, "/"+strings.Join(path[:len(path)-1], "/"))
					}
				})
				slices.Sort(lost)
				t.Errorf("%s: the patch removes %d of %d fields that the webhook does not know: %s%s", check.Describe(r), added-kept, added, strings.Join(lost, ", "), culprit(d))
			}
		}
	})
}

// culprit returns the paths of the first operations of a patch.
func culprit(d check.Decision) string {
	operations, err := d.Operations()
	if err != nil || len(operations) == 0 {
		return ""
	}
	var lines []string
	for i, each := range operations {
		if i == 5 {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, each.Op+" "+each.Path)
	}
	return "\nthe patch: " + strings.Join(lines, ", ")
}

// foreign adds entries of another client to an object: a label, an annotation, a finalizer, and to pods an environment variable, a
// volume, a toleration and a container.
func foreign(u *unstructured.Unstructured) {
	addLabel(u)
	annotate(u, "contract.example.com/foreign", "kept")
	u.SetFinalizers(append(u.GetFinalizers(), "contract.example.com/foreign"))
	for _, path := range containerLists(u.Object) {
		pod, _ := valueAt(u.Object, path[:len(path)-1]).(map[string]any) // it has containers
		addContainer(u, path, u.Object)
		addEnv(containerAt(u.Object, path, 0), "CONTRACT_FOREIGN", "kept")
		for name, value := range map[string]any{
			"volumes":     map[string]any{"name": "contract-foreign", "emptyDir": map[string]any{"medium": "Memory"}},
			"tolerations": map[string]any{"key": "contract.example.com/foreign", "operator": "Exists"},
		} {
			list, _ := pod[name].([]any)
			pod[name] = append(list, value)
		}
	}
}

// addEnv adds an environment variable to a container.
func addEnv(container map[string]any, name, value string) {
	env, _ := container["env"].([]any)
	container["env"] = append(slices.Clip(env), map[string]any{"name": name, "value": value})
}

// checkForeignKeys puts a key of another client into each map that the webhook adds keys to. The foreign label and annotation of the object
// are in another request.
func checkForeignKeys(t *check.T, c check.Case, created check.Decision) {
	before, err := t.Canonical(c.Request.Object)
	after, errAfter := t.Canonical(created.Object)
	if err != nil || errAfter != nil {
		return // WH-PROTO-5
	}
	prefixed, resources := []string{"contract.example.com/foreign"}, []string{"ephemeral-storage", "cpu", "memory"}
	keys := map[string][]string{"labels": prefixed, "annotations": prefixed, "nodeSelector": prefixed, "matchLabels": prefixed, "limits": resources, "requests": resources}
	done := map[string]bool{}
	eachValue(after, nil, func(path []string, _ any) {
		at := path[:len(path)-1]
		where := "/" + strings.Join(at, "/")
		if len(at) == 0 || path[0] == "metadata" || done[where] || valueAt(before, path) != nil || t.Enforces(at) {
			return
		}
		done[where] = true
		for _, key := range keys[at[len(at)-1]] {
			full, possible := append(slices.Clone(at), key), false
			r := withObject(c.Request, changed(c.Request.Object, func(u *unstructured.Unstructured) { possible = put(u.Object, full, "1") }))
			if valueAt(after, full) != nil || !possible || !t.Called(r) {
				continue
			}
			if d, ok := t.Decide(r); ok && d.Response.Allowed && valueAt(d.Object, full) == nil {
				t.Errorf("%s with %s: 1 in %s: the key of another client is lost%s", c, key, where, culprit(d))
			}
			break
		}
	})
}

func checkForeignEntries(t *check.T) {
	mutating(t)
	eachObject(t, func(c check.Case, created check.Decision) {
		r := withObject(c.Request, changed(c.Request.Object, foreign))
		d, ok := t.Decide(r)
		if !ok || !d.Response.Allowed || !t.Called(r) {
			return
		}
		t.Reached()
		checkForeignKeys(t, c, created)
		for _, lost := range lostEntries(r.Object, d.Object, "") {
			t.Errorf("%s: an entry of another client is lost or moved: %s%s", c, lost, culprit(d))
		}
		operations, _ := d.Operations()
		for _, each := range operations {
			value, ok := decodes(each.Value)
			if each.Op == "add" && ok && isEmpty(value) && !strings.HasSuffix(each.Path, "/-") && !hasChild(operations, each.Path) && !isEncoded(r, each.Path, value) {
				t.Errorf("%s: the patch adds the empty value %s at %s, where nothing was", c, each.Value, each.Path)
			}
		}
	})
	for _, c := range t.Webhook.Untouched {
		if d, ok := t.Decide(c.Request); ok && d.Response.Allowed {
			t.Reached()
			if diff := t.DiffObjects(c.Request.Object, d.Object); diff != "" {
				t.Errorf("%s: the sample is in Untouched: %s", c, diff)
			}
		}
	}
}

// isEncoded reports whether a value is the {} of a struct. Go encodes each struct without values as {}, so every webhook that
// encodes the type adds it. An API server keeps it only in custom resources, where it is not known which {} is a struct.
func isEncoded(r reach.Request, path string, value any) bool {
	_, isMap := value.(map[string]any)
	return isMap && (!check.IsBuiltIn(r.Kind) || check.IsStruct(r.Kind, path))
}

// hasChild reports whether a later operation writes below a path.
func hasChild(operations []check.Operation, path string) bool {
	return slices.ContainsFunc(operations, func(each check.Operation) bool { return strings.HasPrefix(each.Path, path+"/") })
}

func isEmpty(value any) bool {
	return slices.Contains([]string{"null", `""`, "{}", "[]"}, string(encoded(value)))
}

// lostEntries returns the paths of entries with "contract" in their name or key that are in before and not in after, or in
// another order among the elements that both lists have.
func lostEntries(before, after any, path string) (lost []string) {
	switch was := before.(type) {
	case map[string]any:
		is, _ := after.(map[string]any)
		for key, child := range was {
			if now, ok := is[key]; ok || strings.Contains(strings.ToLower(fmt.Sprint(child)), "contract") { // an entry of another client is in it
				lost = append(lost, lostEntries(child, now, path+"/"+key)...)
			} else if strings.Contains(key, "contract.example.com/") {
				lost = append(lost, path+"/"+key)
			}
		}
	case []any:
		is, _ := after.([]any)
		at := -1
		for i, child := range was {
			index := slices.IndexFunc(is, func(each any) bool { return identity(each) == identity(child) })
			where := fmt.Sprintf("%s/%d (%s)", path, i, identity(child))
			switch {
			case index < 0 && isForeign(child):
				lost = append(lost, where)
			case index < 0:
			case index < at:
				lost = append(lost, where+" is in another order")
			default:
				at = index
				lost = append(lost, lostEntries(child, is[index], where)...)
			}
		}
	}
	return lost
}

// identity returns what identifies an element of a list.
func identity(element any) string {
	fields, ok := element.(map[string]any)
	if !ok {
		return fmt.Sprint(element)
	}
	for _, key := range []string{"name", "key"} {
		if name, ok := fields[key].(string); ok {
			return name
		}
	}
	return fmt.Sprint(fields)
}

func isForeign(element any) bool {
	return strings.HasPrefix(strings.ToLower(identity(element)), "contract")
}

func checkIntegers(t *check.T) {
	mutating(t)
	numbers := map[string]any{"odd": int64(9007199254740993), "max": int64(9223372036854775807)}
	eachObject(t, func(c check.Case, _ check.Decision) {
		paths := [][]string{{"contractNumbers"}}
		if _, ok := c.Request.Object["spec"].(map[string]any); ok {
			paths = append(paths, []string{"spec", "contractNumbers"})
		}
		r := withObject(c.Request, changed(c.Request.Object, func(u *unstructured.Unstructured) {
			for _, path := range paths {
				_ = unstructured.SetNestedMap(u.Object, numbers, path...) // the parent exists
			}
		}))
		d, ok := t.Decide(r)
		if !ok || !d.Response.Allowed || !t.Called(r) {
			return
		}
		for _, path := range paths {
			got, found, _ := unstructured.NestedFieldNoCopy(d.Object, path...)
			if !found {
				continue // WH-FIELD-1
			}
			t.Reached()
			if !reflect.DeepEqual(got, any(numbers)) {
				t.Errorf("%s: integers in a field that the webhook does not know changed: got %v, want %v%s", c, got, numbers, culprit(d))
			}
		}
	})
}
