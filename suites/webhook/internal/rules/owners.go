package rules

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// ownerRules returns the rules for objects that a controller or a kubelet writes.
func ownerRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-FIELD-5", Name: "owned-templates-are-kept", Level: framework.Must,
			Title:  "The pod template of an object that belongs to a controller stays as its owner wrote it.",
			Why:    "A controller compares the template with its own. If they differ, it creates another object, without end: thousands of ReplicaSets were created.",
			Fix:    "Mutate the owner and the pods, not what is between them, or mutate both levels alike.",
			Source: []string{"https://github.com/open-policy-agent/gatekeeper/issues/2963", "https://github.com/notaryproject/ratify/issues/1593"},
			Check:  checkOwnedTemplates,
		},
		{
			ID: "WH-FIELD-6", Name: "mirror-pods-are-not-mutated", Level: framework.Should,
			Title:  "The spec of a mirror pod is not changed.",
			Why:    "A kubelet creates a mirror pod for each static pod, and deletes it if it differs from the static pod, again and again.",
			Fix:    "Leave pods with the annotation kubernetes.io/config.mirror alone.",
			Source: []string{"https://github.com/enix/kube-image-keeper/issues/560", "https://github.com/kubernetes/kubernetes/issues/105844", goodPractices},
			Check:  checkMirrorPods,
		},
	}
}

func checkOwnedTemplates(t *check.T) {
	mutating(t)
	applies := false
	eachObject(t, func(c check.Case, d check.Decision) {
		for child, owner := range map[string]string{"ReplicaSet": "Deployment", "Job": "CronJob"} { // that controllers create
			kind := c.Request.Kind.Kind
			if kind != owner && kind != child {
				continue
			}
			applies = true
			template, ok, _ := unstructured.NestedMap(d.Object, templatePath(kind)...)
			if !ok {
				continue
			}
			r := childOf(t, c.Request, child, owner, template)
			if !t.Called(r) {
				continue
			}
			got, ok := t.Decide(r)
			if !ok || !got.Response.Allowed {
				continue
			}
			t.Reached()
			eachBelow(got.Answer, "/spec/template", func(each check.Operation) {
				t.Errorf("%s: the patch changes the template of a %s that a %s owns: %s %s", c, child, owner, each.Op, each.Path)
			})
		}
	})
	if !applies {
		t.Unsupported("no sample that reaches the webhook is a Deployment, ReplicaSet, CronJob or Job")
	}
	if !t.HasReached() && !t.Failed() {
		t.Unsupported("the webhook is not called for the objects that controllers make of its samples")
	}
}

func templatePath(kind string) []string {
	if kind == "CronJob" {
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return []string{"spec", "template"}
}

// childOf returns the creation of an object by the controller of an owner.
func childOf(t *check.T, r reach.Request, child, owner string, template map[string]any) reach.Request {
	apiVersion := map[string]string{"ReplicaSet": "apps/v1", "Job": "batch/v1"}[child]
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"template": template}}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(child)
	u.SetName(r.Name + "-5d59d67564")
	u.SetNamespace(r.Namespace)
	u.SetLabels((&unstructured.Unstructured{Object: r.Object}).GetLabels())
	_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{ // it has metadata
		"apiVersion": apiVersion, "kind": owner, "name": r.Name, "uid": "6d0f4a52-3c56-4c1b-8f5e-0a4c8a5f3c11", "controller": true, "blockOwnerDeletion": true,
	}}, "metadata", "ownerReferences")
	if selector, ok, _ := unstructured.NestedMap(r.Object, "spec", "selector"); ok {
		_ = unstructured.SetNestedMap(u.Object, selector, "spec", "selector") // it has a spec
	}
	made, err := t.Kinds.New(u.Object, "CREATE", "")
	if err != nil {
		t.Fatalf("build a %s: %v", child, err)
	}
	made.User = framework.User{Name: "system:serviceaccount:kube-system:controller", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	return made
}

func checkMirrorPods(t *check.T) {
	mutating(t)
	pods := slices.ContainsFunc(t.Webhook.Allow, func(c check.Case) bool { return isCreate(c) && c.Request.Resource.Resource == "pods" })
	if !pods {
		t.Unsupported("no sample that reaches the webhook is the creation of a pod")
	}
	eachObject(t, func(c check.Case, _ check.Decision) {
		if c.Request.Resource.Resource != "pods" || c.Request.Resource.Group != "" {
			return
		}
		r := withObject(c.Request, changed(c.Request.Object, func(u *unstructured.Unstructured) {
			annotate(u, "kubernetes.io/config.mirror", "3f2f1d0e")
			_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n", "controller": true}}, "metadata", "ownerReferences") // it has metadata
			_ = unstructured.SetNestedField(u.Object, "n", "spec", "nodeName")                                                                                                               // a pod has a spec
		}))
		r.User = framework.User{Name: "system:node:n", Groups: []string{"system:nodes", "system:authenticated"}}
		if !t.Called(r) {
			return
		}
		d, ok := t.Decide(r)
		if !ok || !d.Response.Allowed {
			return
		}
		t.Reached()
		operations, _ := d.Operations()
		for _, each := range operations {
			if strings.HasPrefix(each.Path+"/", "/spec/") {
				t.Errorf("%s: the patch changes the spec of a mirror pod: %s %s", c, each.Op, each.Path)
			}
		}
	})
	if !t.HasReached() && !t.Failed() {
		t.Unsupported("the webhook is not called for mirror pods")
	}
}
