package rules

import (
	"cmp"
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
		Title:  "What is denied in one container is denied in each of them: in the first, in another one, and in an init container.",
		Why:    "Users put the container that was denied behind one that is not, or among the init containers.",
		Fix:    "Check each element of spec.containers and spec.initContainers.",
		Source: []string{"https://kubernetes.io/docs/concepts/workloads/pods/init-containers/", goodPractices},
		Check:  func(t *check.T) { checkDoors(t, "a container", containerDoors) },
	}}
}

// door is a request with a defect, and the same one without it.
type door struct {
	sound, defect reach.Request
	// position is of the container with the defect; empty for another request. Instead says what the defect is.
	position, instead string
	must              bool // it breaks a MUST
}

// checkDoors moves the defect that the Fix of a sample removes to other positions: doors returns them for a case with its fixed object.
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
			if d, ok := t.Decide(each.defect); ok && d.Response.Allowed && !deniedElsewhere(t, each.defect) {
				if each.must {
					t.Raise()
				}
				t.Errorf("%s is denied, but %s%s is allowed", c, check.Describe(each.defect), cmp.Or(each.instead, " with the same defect"+each.position))
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
	of, ok := faultyContainer(c, fixed)
	if !ok || !of.common || len(of.list) != 2 || c.Request.Kind.Kind != "Pod" || c.Request.Kind.Group != "" {
		return nil
	}
	r, err := t.Kinds.New(fixed, review.OpUpdate, "ephemeralcontainers")
	if err != nil {
		return nil
	}
	return []door{{sound: withObject(r, withEphemeral(r.Object, of.good)), defect: withObject(r, withEphemeral(r.Object, of.bad))}}
}

// containerDoors returns creations with the container at another position, with the same name: a webhook can judge containers by their names.
func containerDoors(t *check.T, c check.Case, fixed map[string]any) (all []door) {
	of, ok := faultyContainer(c, fixed)
	if !ok || !check.IsBuiltIn(c.Request.Kind) {
		return nil
	}
	for _, position := range []string{first, behind, among} {
		if position == first && of.index == 0 || position == behind && of.index > 0 || position == among && !of.common {
			continue
		}
		with := func(container map[string]any) reach.Request {
			object := changed(fixed, func(u *unstructured.Unstructured) {
				pod, _ := valueAt(u.Object, of.list[:len(of.list)-1]).(map[string]any) // it has containers
				move(pod, of.index, maps.Clone(container), position)
			})
			return t.AfterMutation(withObject(c.Sample, object))
		}
		all = append(all, door{sound: with(of.good), defect: with(of.bad), position: position})
	}
	return all
}

// The positions of a container, as the end of a sentence.
const (
	first  = " in the first container"
	behind = " behind another container"
	among  = " in an init container"
)

// move puts a container, instead of the one at the index, at a position in a pod, with a copy of the other one if a pod needs another.
func move(pod map[string]any, index int, container map[string]any, position string) {
	containers, _ := pod["containers"].([]any)
	other, _ := containers[index].(map[string]any)
	other = maps.Clone(other)
	other["name"] = "contract-other"
	rest := slices.Delete(slices.Clone(containers), index, index+1)
	switch position {
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

// container is the only container that the Fix of a case changes.
type container struct {
	list      []string // the path of its list
	index     int
	bad, good map[string]any // without and with the Fix
	common    bool           // the Fix changes only fields that init containers and ephemeral containers have too
}

// faultyContainer returns the container that the Fix of a case changes. It returns false if the Fix changes anything else.
func faultyContainer(c check.Case, fixed map[string]any) (of container, ok bool) {
	var operations []check.Operation
	_ = json.Unmarshal(c.Fix, &operations) // after an error there are none
	of = container{index: -1, common: true}
	for _, each := range operations {
		parts := check.Segments(each.Path)
		at := slices.Index(parts, "containers") + 1
		if each.Op == "test" {
			continue
		}
		if at == 0 || len(parts) < at+2 || parts[at+1] == "name" {
			return of, false
		}
		i, err := strconv.Atoi(parts[at])
		if err != nil || of.index >= 0 && (i != of.index || !slices.Equal(parts[:at], of.list)) {
			return of, false
		}
		of.list, of.index, of.common = parts[:at], i, of.common && !notEphemeral(parts[at+1])
	}
	of.bad, of.good = containerAt(c.Sample.Object, of.list, of.index), containerAt(fixed, of.list, of.index)
	return of, of.bad != nil && of.good != nil
}

// containerAt returns a container of an object. Nil means that there is none.
func containerAt(object map[string]any, list []string, index int) map[string]any {
	containers, _ := valueAt(object, list).([]any)
	if index < 0 || index >= len(containers) {
		return nil
	}
	found, _ := containers[index].(map[string]any)
	return found
}

// notEphemeral reports whether an ephemeral container cannot have a field of a container.
func notEphemeral(field string) bool {
	return slices.Contains([]string{"ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources", "resizePolicy", "restartPolicy"}, field)
}

// withEphemeral returns a Pod with a container as an ephemeral container in addition.
func withEphemeral(pod, container map[string]any) map[string]any {
	added := maps.Clone(container)
	maps.DeleteFunc(added, func(field string, _ any) bool { return notEphemeral(field) })
	added["name"] = "contract-debug"
	return changed(pod, func(u *unstructured.Unstructured) {
		all, _, _ := unstructured.NestedSlice(u.Object, "spec", "ephemeralContainers")
		_ = unstructured.SetNestedSlice(u.Object, append(all, added), "spec", "ephemeralContainers") // it has a spec
	})
}
