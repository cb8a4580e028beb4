package rules

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// doorRules returns the rule for other ways to a defect.
func doorRules() []check.Rule {
	return []check.Rule{{
		ID: "WH-SHAPE-4", Name: "subresources-are-no-way-out", Level: framework.Should,
		Title:  "What is denied in a container is denied in an ephemeral container too, and what is denied in spec.replicas is denied for the subresource scale, if the rules name these subresources.",
		Why:    "Users add the container that was denied with kubectl debug, or the number of replicas with kubectl scale.",
		Fix:    "Check spec.ephemeralContainers of the object for pods/ephemeralcontainers, and decode an autoscaling/v1 Scale for scale.",
		Source: []string{"https://github.com/deckhouse/deckhouse/pull/22398", "https://github.com/kubernetes-sigs/cluster-api/issues/4057"},
		Check:  checkDoors,
	}}
}

// checkDoors moves the defect that the Fix of a sample removes.
func checkDoors(t *check.T) {
	why := "no sample of Reject has a Fix that changes only one container of a Pod, or only spec.replicas"
	t.EachDenied(func(c check.Case, _ check.Decision) {
		fixed, err := t.Fixed(c)
		if !isCreate(c) || err != nil || fixed == nil {
			return
		}
		sound, defect, ok := moved(t, c, fixed)
		if !ok {
			return
		}
		if reaches, reason := t.Reaches(t.Context(), t.Webhook, defect); !reaches {
			why = check.Describe(defect) + ": " + reason
			return
		}
		if d, ok := t.Decide(sound); !ok || !d.Response.Allowed {
			t.LogOnce(check.Describe(sound) + " without the defect: " + d.Verdict())
			return // the denial would not be about the defect
		}
		t.Reached()
		if d, ok := t.Decide(defect); ok && d.Response.Allowed {
			t.Errorf("%s is denied, but %s with the same defect is allowed", c, check.Describe(defect))
		}
	})
	if !t.HasReached() && !t.Over() {
		t.Unsupported("%s", why)
	}
}

// moved returns an update of a subresource of the fixed object, without and with the defect of a case.
func moved(t *check.T, c check.Case, fixed map[string]any) (sound, defect reach.Request, ok bool) {
	index, field := fixOf(c)
	var err error
	switch {
	case field == "replicas":
		sound, err = t.Kinds.New(fixed, review.OpUpdate, "scale")
		replicas, found, _ := unstructured.NestedFieldCopy(c.Request.Object, "spec", "replicas")
		if err != nil || !found || !hasSubresource(t, c.Request.Kind, "scale") {
			return sound, defect, false
		}
		defect = withObject(sound, changed(sound.Object, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, replicas, "spec", "replicas") // a Scale has a spec
		}))
	case index >= 0 && c.Request.Kind.Kind == "Pod" && c.Request.Kind.Group == "":
		sound, err = t.Kinds.New(fixed, review.OpUpdate, "ephemeralcontainers")
		bad, has := ephemeral(c.Request.Object, index)
		good, hasGood := ephemeral(fixed, index)
		if err != nil || !has || !hasGood {
			return sound, defect, false
		}
		old := sound.Object
		sound = withObject(sound, withEphemeral(old, good))
		defect = withObject(sound, withEphemeral(old, bad))
	default:
		return sound, defect, false
	}
	return sound, defect, true
}

// fixOf returns the container that the Fix of a case changes, or the field replicas. The index is -1 if it changes something else.
func fixOf(c check.Case) (index int, field string) {
	var operations []check.Operation
	if json.Unmarshal(c.Fix, &operations) != nil {
		return -1, ""
	}
	index = -1
	for _, each := range operations {
		parts := check.Segments(each.Path)
		switch {
		case each.Op == "test":
		case len(operations) == 1 && each.Path == "/spec/replicas":
			return -1, "replicas"
		case len(parts) < 4 || parts[0] != "spec" || parts[1] != "containers" || len(parts[2]) != 1 || notEphemeral(parts[3]) || parts[3] == "name":
			return -1, ""
		default:
			at := int(parts[2][0] - '0')
			if at > 9 || index >= 0 && at != index {
				return -1, ""
			}
			index = at
		}
	}
	return index, ""
}

// notEphemeral reports whether an ephemeral container cannot have a field of a container.
func notEphemeral(field string) bool {
	return slices.Contains([]string{"ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources", "resizePolicy", "restartPolicy"}, field)
}

// ephemeral returns a container of a Pod as an ephemeral container.
func ephemeral(pod map[string]any, index int) (map[string]any, bool) {
	containers, _, _ := unstructured.NestedSlice(pod, "spec", "containers")
	if index >= len(containers) {
		return nil, false
	}
	made, ok := containers[index].(map[string]any)
	for field := range made {
		if notEphemeral(field) {
			delete(made, field)
		}
	}
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
