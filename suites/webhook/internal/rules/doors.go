package rules

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// doorRules returns the rules for other ways to a defect.
func doorRules() []check.Rule {
	return []check.Rule{{
		ID: "WH-SHAPE-4", Name: "subresources-are-no-way-out", Level: framework.Should,
		Title:  "What is denied in a container is denied in an ephemeral container too, and what is denied in spec.replicas is denied for the subresource scale, if the rules name these subresources.",
		Why:    "Users add the container that was denied with kubectl debug, or the number of replicas with kubectl scale.",
		Fix:    "Check spec.ephemeralContainers of the object for pods/ephemeralcontainers, and decode an autoscaling/v1 Scale for scale.",
		Source: []string{"https://github.com/deckhouse/deckhouse/pull/22398", "https://github.com/kubernetes-sigs/cluster-api/issues/4057"},
		Check:  func(t *check.T) { checkDoors(t, "a container of a Pod, or only spec.replicas", subresourceDoors) },
	}, {
		ID: "WH-SHAPE-5", Name: "every-container-is-checked", Level: framework.Should,
		Title:  "What is denied in one container is denied in each place of a container: the first, another one, and an init container.",
		Why:    "Users put the container that was denied behind one that is not, or among the init containers.",
		Fix:    "Check each element of spec.containers and spec.initContainers.",
		Source: []string{"https://kubernetes.io/docs/concepts/workloads/pods/init-containers/", goodPractices},
		Check:  func(t *check.T) { checkDoors(t, "a container", containerDoors) },
	}}
}

// door is a request with a defect, and the same one without it.
type door struct {
	sound, defect reach.Request
	place         string // where the defect is; empty for a subresource
}

// checkDoors moves the defect that the Fix of a sample removes to other places: doors returns them for a case with its fixed object.
func checkDoors(t *check.T, about string, doors func(t *check.T, c check.Case, fixed map[string]any) []door) {
	why := "no sample of Reject has a Fix that changes only " + about
	t.EachDenied(func(c check.Case, _ check.Decision) {
		fixed, err := t.Fixed(c)
		if !isCreate(c) || err != nil || fixed == nil {
			return
		}
		for _, each := range doors(t, c, fixed) {
			if reaches, reason := t.Reaches(t.Context(), t.Webhook, each.defect); !reaches {
				why = check.Describe(each.defect) + ": " + reason
				continue
			}
			if d, ok := t.Decide(each.sound); !ok || !d.Response.Allowed {
				t.LogOnce(check.Describe(each.sound) + " without the defect: " + d.Verdict())
				continue // the denial would not be about the defect
			}
			t.Reached()
			if d, ok := t.Decide(each.defect); ok && d.Response.Allowed {
				t.Errorf("%s is denied, but %s with the same defect%s is allowed", c, check.Describe(each.defect), each.place)
			}
		}
	})
	if !t.HasReached() && !t.Over() {
		t.Unsupported("%s", why)
	}
}

// subresourceDoors returns an update of a subresource of the fixed object.
func subresourceDoors(t *check.T, c check.Case, fixed map[string]any) []door {
	var operations []check.Operation
	if json.Unmarshal(c.Fix, &operations) == nil && len(operations) == 1 && operations[0].Path == "/spec/replicas" {
		r, err := t.Kinds.New(fixed, review.OpUpdate, "scale")
		replicas, found, _ := unstructured.NestedFieldCopy(c.Sample.Object, "spec", "replicas")
		if err != nil || !found || !hasSubresource(t, c.Request.Kind, "scale") {
			return nil
		}
		return []door{{sound: r, defect: withObject(r, changed(r.Object, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, replicas, "spec", "replicas") // a Scale has a spec
		}))}}
	}
	path, index, fields := fixedContainer(operations)
	if len(path) != 2 || c.Request.Kind.Kind != "Pod" || c.Request.Kind.Group != "" || slices.ContainsFunc(fields, notEphemeral) {
		return nil
	}
	r, err := t.Kinds.New(fixed, review.OpUpdate, "ephemeralcontainers")
	bad, has := ephemeral(c.Sample.Object, index)
	good, hasGood := ephemeral(fixed, index)
	if err != nil || !has || !hasGood {
		return nil
	}
	return []door{{sound: withObject(r, withEphemeral(r.Object, good)), defect: withObject(r, withEphemeral(r.Object, bad))}}
}

// containerDoors returns creations with the container at another place, with the same name: a webhook can judge containers by their names.
func containerDoors(t *check.T, c check.Case, fixed map[string]any) []door {
	var operations []check.Operation
	_ = json.Unmarshal(c.Fix, &operations) // an error means no operations
	path, index, fields := fixedContainer(operations)
	good, okGood := containerAt(fixed, path, index)
	bad, okBad := containerAt(c.Sample.Object, path, index)
	if !okGood || !okBad || !check.IsBuiltIn(c.Request.Kind) {
		return nil
	}
	places := []string{behind}
	if index > 0 {
		places = []string{first}
	}
	if !slices.ContainsFunc(fields, notEphemeral) {
		places = append(places, among)
	}
	var all []door
	for _, place := range places {
		with := func(container map[string]any) reach.Request {
			object := changed(fixed, func(u *unstructured.Unstructured) {
				pod, _, _ := unstructured.NestedFieldNoCopy(u.Object, path[:len(path)-1]...)
				move(pod.(map[string]any), index, maps.Clone(container), place) // it has containers
			})
			return t.AfterMutation(withObject(c.Sample, object))
		}
		all = append(all, door{with(good), with(bad), place})
	}
	return all
}

// The places of a container.
const (
	first  = " in the first container"
	behind = " behind another container"
	among  = " in an init container"
)

// move puts a container, instead of the one at the index, at a place of a pod, beside a copy of the other one if there must be one.
func move(pod map[string]any, index int, container map[string]any, place string) {
	containers, _ := pod["containers"].([]any)
	other, _ := containers[index].(map[string]any)
	other = maps.Clone(other)
	other["name"] = "contract-other"
	rest := slices.Delete(slices.Clone(containers), index, index+1)
	switch place {
	case first:
		pod["containers"] = append([]any{container}, rest...)
	case behind:
		pod["containers"] = append([]any{other, container}, rest...)
	case among:
		maps.DeleteFunc(container, func(field string, _ any) bool { return notEphemeral(field) })
		initial, _ := pod["initContainers"].([]any)
		pod["containers"], pod["initContainers"] = append([]any{other}, rest...), append(initial, container)
	}
}

// fixedContainer returns the path of the list of containers, and the index and the fields of the only container that a Fix changes. The
// path is nil if it changes something else.
func fixedContainer(operations []check.Operation) (path []string, index int, fields []string) {
	for _, each := range operations {
		parts := check.Segments(each.Path)
		at := slices.Index(parts, "containers")
		if each.Op == "test" {
			continue
		}
		if at < 0 || len(parts) < at+3 || parts[at+2] == "name" || path != nil && !slices.Equal(parts[:at+1], path) {
			return nil, 0, nil
		}
		i, err := strconv.Atoi(parts[at+1])
		if err != nil || path != nil && i != index {
			return nil, 0, nil
		}
		path, index, fields = parts[:at+1], i, append(fields, parts[at+2])
	}
	return path, index, fields
}

// containerAt returns a container of an object.
func containerAt(object map[string]any, path []string, index int) (container map[string]any, ok bool) {
	containers, _, _ := unstructured.NestedSlice(object, path...)
	if index < len(containers) {
		container, ok = containers[index].(map[string]any)
	}
	return container, ok
}

// notEphemeral reports whether an ephemeral container cannot have a field of a container.
func notEphemeral(field string) bool {
	return slices.Contains([]string{"ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources", "resizePolicy", "restartPolicy"}, field)
}

// ephemeral returns a container of a Pod as an ephemeral container.
func ephemeral(pod map[string]any, index int) (map[string]any, bool) {
	made, ok := containerAt(pod, []string{"spec", "containers"}, index)
	maps.DeleteFunc(made, func(field string, _ any) bool { return notEphemeral(field) })
	if ok {
		made["name"] = "contract-debug"
	}
	return made, ok
}

func withEphemeral(pod, container map[string]any) map[string]any {
	return changed(pod, func(u *unstructured.Unstructured) {
		all, _, _ := unstructured.NestedSlice(u.Object, "spec", "ephemeralContainers")
		_ = unstructured.SetNestedSlice(u.Object, append(all, container), "spec", "ephemeralContainers") // it has a spec
	})
}
