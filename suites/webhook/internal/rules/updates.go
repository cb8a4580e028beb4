package rules

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// updateRules returns the rules for objects that exist already.
func updateRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-UPDATE-1", Name: "no-op-updates-are-allowed", Level: framework.Must,
			Title:  "An update that changes nothing is allowed, and does not change an object that the webhook has already changed.",
			Why:    "Controllers write objects again without a change. If the webhook changes them each time, they are written without end.",
			Fix:    "On UPDATE, compute the change from the object alone, and deny only what the update changes.",
			Source: []string{"https://github.com/knative/pkg/issues/191", "https://github.com/openyurtio/openyurt/pull/2647"},
			Check:  checkNoOp,
		},
		{
			ID: "WH-UPDATE-2", Name: "finalizers-can-be-removed", Level: framework.Must,
			Title:  "An object in deletion can lose its finalizers, whether it is valid or not. The patch does not change its spec, and adds no finalizer.",
			Why:    "Otherwise the object, and the namespace with it, can never be deleted. API servers refuse new finalizers of an object in deletion.",
			Fix:    "Allow every update of an object with deletionTimestamp, without a patch.",
			Source: []string{"https://github.com/opendatahub-io/opendatahub-operator/pull/2242", "https://github.com/longhorn/longhorn/issues/7553"},
			Check:  checkFinalizers,
		},
		{
			ID: "WH-UPDATE-3", Name: "old-objects-can-change", Level: framework.Should,
			Title:  "An object that was stored before the webhook existed can still be changed elsewhere, also in its status, and can be repaired. The repair is a MUST.",
			Why:    "Otherwise controllers cannot label, annotate or scale objects that users created under older rules, or write their status.",
			Fix:    "On UPDATE, deny only a violation that the old object does not have.",
			Source: []string{"https://github.com/openyurtio/openyurt/pull/2647", "https://github.com/openshift/library-go/pull/1791"},
			Check:  checkOldObjects,
		},
		{
			ID: "WH-UPDATE-4", Name: "immutable-fields-are-kept", Level: framework.Must,
			Title:  "On an update, the patch does not change a field that cannot change: of Kubernetes' own kinds, or by a rule self == oldSelf of a CustomResourceDefinition.",
			Why:    "The API server refuses every update of an object that was created before the webhook existed, and the client cannot know why.",
			Fix:    "Set such fields on CREATE only.",
			Source: []string{"https://github.com/kubernetes-sigs/cluster-api/issues/4437", "https://github.com/kyverno/kyverno/issues/14393"},
			Check:  checkImmutable,
		},
		{
			ID: "WH-UPDATE-5", Name: "updates-are-no-way-out", Level: framework.Should,
			Title:  "What is denied in a new object is denied in the update of a good one too, if the field can change: this is a MUST. If no change of a field is allowed, its removal is not allowed either.",
			Why:    "Users create what is allowed, and edit it to what is denied.",
			Fix:    "On UPDATE, compare each value with the same value of the old object, and judge what is new as on CREATE. Compare absent values too.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/6219", "https://github.com/Carrefour-Group/elastic-phenix-operator/issues/18", "https://github.com/githedgehog/fabric/issues/1422"},
			Check:  checkUpdates,
		},
	}
}

func checkNoOp(t *check.T) {
	eachObject(t, func(c check.Case, created check.Decision) {
		r := updateOf(c.Request, c.Request.Object, nil)
		if !t.Called(r) {
			return
		}
		t.Reached()
		if d, ok := t.Decide(r); !ok || !d.Response.Allowed {
			t.Errorf("%s, then UPDATE without a change: %s", c, d.Verdict())
		}
		r = updateOf(c.Request, created.Object, nil)
		if d, ok := t.Decide(r); ok && d.Response.Allowed { // a denial breaks WH-IDEM-2
			if diff := t.DiffObjects(r.Object, d.Object); diff != "" {
				t.Differs("%s, then UPDATE of the result without a change: %s", c, diff)
			}
		}
	})
	needUpdate(t, t.HasReached())
}

// needUpdate ends the check as unsupported if the webhook was not called for an update.
func needUpdate(t *check.T, called bool) {
	if !called && !t.Failed() {
		t.Unsupported("the webhook is not called for UPDATE of a sample")
	}
}

// eachStoredReject calls f for each sample of Reject that creates an object which the webhook denies.
func eachStoredReject(t *check.T, f func(check.Case)) {
	rejects := 0
	t.EachDenied(func(c check.Case, _ check.Decision) {
		if isCreate(c) {
			rejects++
			f(c)
		}
	})
	if rejects == 0 && !t.HasReached() {
		t.Unsupported("no sample of Reject creates an object that this webhook denies")
	}
}

func checkFinalizers(t *check.T) {
	if t.Kind != check.Validating {
		eachObject(t, func(c check.Case, created check.Decision) {
			all := append((&unstructured.Unstructured{Object: created.Object}).GetFinalizers(), "contract.example.com/a")
			for i := range all {
				removeFinalizer(t, c, created.Object, all, i)
				removeFinalizer(t, c, created.Object, all[i:i+1], 0)
			}
		})
	}
	eachStoredReject(t, func(c check.Case) {
		finalizers := []string{"contract.example.com/a", "contract.example.com/b"}
		removeFinalizer(t, c, c.Request.Object, finalizers, 1)
		removeFinalizer(t, c, c.Request.Object, finalizers[:1], 0)
	})
	needUpdate(t, t.HasReached())
}

// removeFinalizer removes one of the finalizers of an object in deletion.
func removeFinalizer(t *check.T, c check.Case, object map[string]any, finalizers []string, index int) {
	left := slices.Delete(slices.Clone(finalizers), index, index+1)
	object = changed(object, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, "2024-05-08T07:08:09Z", "metadata", "deletionTimestamp") // it has metadata
		u.SetFinalizers(finalizers)
	})
	r := updateOf(c.Request, object, func(u *unstructured.Unstructured) { u.SetFinalizers(left) })
	if !t.Called(r) {
		return
	}
	t.Reached()
	what := fmt.Sprintf("%s as a stored object in deletion: the removal of the finalizer %s, with %d left,", c, finalizers[index], len(left))
	d, ok := t.Decide(r)
	if !ok || !d.Response.Allowed {
		t.Errorf("%s is %s", what, d.Verdict())
	}
	before, err := t.Canonical(r.Object)
	after, errAfter := t.Canonical(d.Object)
	if err == nil && errAfter == nil && !reflect.DeepEqual(before["spec"], after["spec"]) {
		t.Errorf("%s has a patch that changes the spec%s", what, culprit(d))
	}
	for _, each := range (&unstructured.Unstructured{Object: d.Object}).GetFinalizers() {
		if !slices.Contains(left, each) {
			t.Errorf("%s has a patch that adds the finalizer %s", what, each)
		}
	}
}

func checkOldObjects(t *check.T) {
	eachStoredReject(t, func(c check.Case) {
		r := updateOf(c.Request, c.Request.Object, addLabel)
		if !t.Called(r) {
			return
		}
		t.Reached()
		if d, ok := t.Decide(r); !ok || !d.Response.Allowed {
			t.Errorf("%s as a stored object: a new label is %s", c, d.Verdict())
		}
		checkOldStatus(t, c)
		fixed, err := t.Fixed(c)
		if err != nil || fixed == nil {
			return // WH-VERDICT-1
		}
		fixed = t.AfterMutation(withObject(c.Sample, fixed)).Object
		r = updateOf(c.Request, c.Request.Object, func(u *unstructured.Unstructured) { u.Object = review.Stored(fixed) })
		if d, ok := t.Decide(r); !ok || !d.Response.Allowed {
			t.Raise()
			t.Errorf("%s as a stored object: the update with its Fix is %s", c, d.Verdict())
		}
	})
	needUpdate(t, t.HasReached())
}

// checkOldStatus changes the status of a stored object that is not valid today.
func checkOldStatus(t *check.T, c check.Case) {
	r, err := t.Kinds.New(c.Request.Object, review.OpUpdate, "status")
	if err != nil || !hasSubresource(t, c.Request.Kind, "status") {
		return
	}
	r.Object = changed(r.Object, changeStatus)
	if ok, _ := t.Reaches(t.Context(), t.Webhook, r); !ok {
		return
	}
	if d, ok := t.Decide(r); !ok || !d.Response.Allowed {
		t.Errorf("%s as a stored object: a change of the status alone is %s", c, d.Verdict())
	}
}

// immutable returns the paths of fields that cannot change, and of exceptions below them. It returns false for a kind that is not in the
// table.
func immutable(object map[string]any) (paths, except *regexp.Regexp, ok bool) {
	kind, _ := object["kind"].(string)
	never := regexp.MustCompile(`^$`)
	switch kind {
	case "Pod":
		return regexp.MustCompile(`^/spec(/|$)`), regexp.MustCompile(`^/spec/(containers|initContainers)/\d+/image$|^/spec/(activeDeadlineSeconds|terminationGracePeriodSeconds)$|^/spec/tolerations|^/spec/schedulingGates`), true
	case "Deployment", "ReplicaSet", "DaemonSet":
		return regexp.MustCompile(`^/spec$|^/spec/selector`), never, true
	case "StatefulSet":
		return regexp.MustCompile(`^/spec$|^/spec/(selector|serviceName|volumeClaimTemplates|podManagementPolicy)`), never, true
	case "Job":
		return regexp.MustCompile(`^/spec$|^/spec/(selector|template|completionMode)`), regexp.MustCompile(`^/spec/template/metadata/|^/spec/template/spec/(nodeSelector|tolerations|schedulingGates)`), true
	case "Service":
		return regexp.MustCompile(`^/spec$|^/spec/clusterIPs?`), never, true
	case "PersistentVolumeClaim":
		return regexp.MustCompile(`^/spec(/|$)`), regexp.MustCompile(`^/spec/resources/|^/spec/volumeAttributesClassName$`), true
	case "Secret", "ConfigMap":
		if object["immutable"] == true {
			return regexp.MustCompile(`^/(data|binaryData|stringData|immutable)`), never, true
		}
		return regexp.MustCompile(`^/type$`), never, true
	}
	return nil, nil, false
}

func checkImmutable(t *check.T) {
	mutating(t)
	called, known := false, false
	eachObject(t, func(c check.Case, _ check.Decision) {
		paths, except, ok := immutable(c.Request.Object)
		byRules := t.Kinds.Immutable(c.Request.Kind)
		if len(byRules) > 0 {
			paths, except, ok = regexp.MustCompile(`^$`), regexp.MustCompile(`^$`), true
		}
		r := updateOf(c.Request, c.Request.Object, addLabel)
		known = known || ok
		if !ok || !t.Called(r) {
			return
		}
		called = true
		d, ok := t.Decide(r)
		if !ok || !d.Response.Allowed {
			return
		}
		t.Reached()
		operations, _ := d.Operations()
		for _, each := range operations {
			if each.Op != "test" && paths.MatchString(each.Path) && !except.MatchString(each.Path) {
				t.Errorf("%s, then UPDATE with another label: the patch changes an immutable field: %s %s", c, each.Op, each.Path)
			}
		}
		for _, path := range byRules {
			before, had, _ := unstructured.NestedFieldNoCopy(r.OldObject, path...)
			after, has, _ := unstructured.NestedFieldNoCopy(d.Object, path...)
			if had && has && !reflect.DeepEqual(before, after) {
				t.Errorf("%s, then UPDATE with another label: the patch changes /%s from %v to %v, which a rule of the CustomResourceDefinition forbids", c, strings.Join(path, "/"), before, after)
			}
		}
	})
	if !known {
		t.Unsupported("no sample is of a kind whose immutable fields this rule knows")
	}
	needUpdate(t, called)
}
