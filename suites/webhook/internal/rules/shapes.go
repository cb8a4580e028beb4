package rules

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/internal/vary"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// shapeRules returns the rules for requests that have another shape than the creation of an object.
func shapeRules() []check.Rule {
	return []check.Rule{
		{
			ID: "WH-SHAPE-1", Name: "delete-gets-a-verdict", Level: framework.Must,
			Title:  "A DELETE, which has no object but an old object, gets a verdict and no patch, and the same verdict without a name. What users may delete, the garbage collector and the namespace controller may delete too.",
			Why:    "A webhook that decodes the object of each request fails for DELETE, and nothing can be deleted any more. If controllers may not delete, namespaces and owners stay in deletion.",
			Fix:    "Decode request.oldObject for DELETE, and do not ask who deletes, or allow the service accounts of kube-system.",
			Source: []string{"https://github.com/kubernetes-sigs/controller-runtime/issues/1278", "https://github.com/open-policy-agent/gatekeeper/issues/144"},
			Check:  checkDelete,
		},
		{
			ID: "WH-SHAPE-2", Name: "missing-names-do-not-matter", Level: framework.Must,
			Title:  "An object with generateName and without a name gets the same answer as with a name.",
			Why:    "The name is generated after the mutating webhooks. Webhooks that look something up by the name of the object find nothing, or the wrong thing.",
			Fix:    "Do not need a name; declare Subject.NameSensitive if the webhook judges names.",
			Source: []string{"https://github.com/kubernetes/kubernetes/issues/76680", "https://github.com/topolvm/topolvm/pull/54"},
			Check:  checkMissingNames,
		},
		{
			ID: "WH-SHAPE-3", Name: "subresources-get-a-verdict", Level: framework.Must,
			Title:  "Each subresource and CONNECT that the rules reach gets a verdict about its own kind of object. A change of the status alone is allowed, and the spec stays.",
			Why:    "A webhook that decodes an Eviction, a Scale or PodExecOptions as the object itself breaks draining, scaling and exec.",
			When:   "It denies an Eviction, a Scale or PodExecOptions that it allows with the fields of the object in addition, or it removes the ephemeral container that an update adds.",
			Fix:    "Decode by request.kind, and let request.subResource decide what is checked.",
			Source: []string{"https://github.com/kyverno/kyverno/pull/2545", "https://github.com/knative/pkg/issues/2115"},
			Check:  checkSubresources,
		},
	}
}

// decodeError finds the messages of decoders and recovered panics. They are written by Go's libraries, and by
// controller-runtime.
func decodeError() *regexp.Regexp {
	return regexp.MustCompile(`there is no content to decode|unexpected end of JSON input|cannot unmarshal|unable to decode|json: |no kind .* is registered|unrecognized type|nil pointer dereference|\[recovered\]|goroutine \d+ \[`)
}

// ownFailure returns why a denial is a failure of the webhook itself. Empty means that it is none.
func ownFailure(d check.Decision) string {
	switch {
	case d.Response.Allowed:
		return ""
	case d.Response.Status.Code >= 500:
		return d.Verdict()
	}
	return decodeError().FindString(d.Response.Status.Message)
}

func checkDelete(t *check.T) {
	eachObject(t, func(c check.Case, _ check.Decision) {
		r := c.Request
		r.Operation, r.Object, r.OldObject = review.OpDelete, nil, review.Stored(c.Request.Object)
		r.Options = map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "DeleteOptions"}
		if !t.Called(r) {
			return
		}
		collection := r
		collection.Name = ""
		const system = "kube-system"
		allowed := false // users may delete it by its name
		for i, request := range []reach.Request{r, collection, by(r, system, "generic-garbage-collector"), by(r, system, "namespace-controller"), by(collection, system, "namespace-controller")} {
			if !t.Called(request) {
				continue
			}
			a := t.Send(t.Context(), t.Webhook, request)
			t.Reached()
			what := c.String() + ", then DELETE"
			if request.Name == "" {
				what += " of the collection"
			}
			if request.User.Name != r.User.Name {
				what += " by " + request.User.Name
			}
			if i == 0 {
				allowed = a.NoDecision() == "" && a.Response.Allowed
			}
			switch d := (check.Decision{Answer: a}); {
			case a.NoDecision() != "":
				t.Errorf("%s: no decision: %s", what, a.NoDecision())
			case ownFailure(d) != "":
				t.Errorf("%s: the webhook failed: %s", what, a.Verdict())
			case len(a.Response.Patch) > 0:
				t.Errorf("%s: the answer has a patch; there is no object to change", what)
			case allowed && !a.Response.Allowed:
				t.Errorf("%s: %s, but %s may delete it by its name", what, a.Verdict(), r.User.Name)
			}
		}
	})
	if !t.HasReached() && !t.Failed() {
		t.Unsupported("the webhook is not called for DELETE of a sample")
	}
}

// by returns a request by a service account.
func by(r reach.Request, namespace, account string) reach.Request {
	r.User = framework.User{Name: "system:serviceaccount:" + namespace + ":" + account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
	return r
}

func checkMissingNames(t *check.T) {
	if t.NameSensitive != "" {
		t.Unsupported("the webhook judges names: %s", t.NameSensitive)
	}
	t.EachDecided(func(c check.Case, want check.Decision) {
		if !isCreate(c) || c.Request.Kind.Kind == "Namespace" {
			return
		}
		generated := withObject(c.Request, changed(c.Request.Object, func(u *unstructured.Unstructured) {
			u.SetGenerateName(u.GetName() + "-")
			u.SetName("")
		}))
		generated.Name = ""
		got, ok := t.Decide(generated)
		if !ok || !t.Called(generated) {
			return
		}
		t.Reached()
		if text := t.Difference(nameless(want), nameless(got)); text != "" {
			t.Differs("%s: with generateName and without a name, the answer differs: %s", c, text)
		}
	})
}

// nameless returns a decision whose object has no name and no namespace.
func nameless(d check.Decision) check.Decision {
	if d.Object != nil {
		d.Object = changed(d.Object, func(u *unstructured.Unstructured) {
			for _, field := range []string{"name", "generateName", "namespace"} {
				unstructured.RemoveNestedField(u.Object, "metadata", field)
			}
		})
	}
	return d
}

// subresources are the subresources with their operations.
func subresources() [][2]string {
	return [][2]string{
		{review.OpConnect, "exec"}, {review.OpConnect, "attach"}, {review.OpConnect, "portforward"}, {review.OpConnect, "proxy"},
		{review.OpCreate, "eviction"}, {review.OpCreate, "binding"},
		{review.OpUpdate, "status"}, {review.OpUpdate, "scale"}, {review.OpUpdate, "ephemeralcontainers"}, {review.OpUpdate, "resize"},
	}
}

// hasSubresource reports whether an API server has a subresource of a kind.
func hasSubresource(t *check.T, kind schema.GroupVersionKind, subresource string) bool {
	if !check.IsBuiltIn(kind) {
		return t.Kinds.HasSubresource(kind, subresource)
	}
	switch subresource {
	case "status":
		return true
	case "scale":
		return slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"}, kind.Kind)
	case "proxy":
		return slices.Contains([]string{"Pod", "Service", "Node"}, kind.Kind)
	}
	return kind.Kind == "Pod"
}

func checkSubresources(t *check.T) {
	eachObject(t, func(c check.Case, _ check.Decision) {
		for _, each := range subresources() {
			if !hasSubresource(t, c.Request.Kind, each[1]) {
				continue
			}
			r, err := t.Kinds.New(c.Request.Object, each[0], each[1])
			if err != nil {
				t.Fatalf("build a request for subresource %s: %v", each[1], err)
			}
			switch each[1] {
			case "status":
				r.Object = changed(r.Object, changeStatus)
			case "ephemeralcontainers":
				if like := containerAt(r.Object, []string{"spec", "containers"}, 0); like != nil {
					r.Object = withEphemeral(r.Object, like)
				}
			}
			if ok, _ := t.Reaches(t.Context(), t.Webhook, r); !ok {
				continue
			}
			checkSubresource(t, c, r)
		}
	})
	if !t.HasReached() && !t.Failed() {
		t.Unsupported("the webhook is not called for subresources of a sample")
	}
}

// changeStatus changes the status of an object.
func changeStatus(u *unstructured.Unstructured) {
	if u.Object["status"] == nil {
		delete(u.Object, "status")
	}
	_ = unstructured.SetNestedField(u.Object, "changed", "status", "message") // status is a map or absent
}

func checkSubresource(t *check.T, c check.Case, r reach.Request) {
	d, applies := t.Decide(r)
	t.Reached()
	what := c.String() + ", then " + check.Describe(r)
	switch {
	case d.NoDecision() != "":
		t.Errorf("%s: no decision: %s", what, d.NoDecision())
	case ownFailure(d) != "":
		t.Errorf("%s: the webhook failed: %s", what, d.Verdict())
	case r.Subresource == "status" && !d.Response.Allowed:
		t.Errorf("%s: a change of the status alone is %s", what, d.Verdict())
	case !d.Response.Allowed && isTakenForObject(t, c, r):
		t.Errorf("%s: %s, but not if the %s has the fields of the %s in addition: it is decoded as one", what, d.Verdict(), r.Kind.Kind, c.Request.Kind.Kind)
	case r.Subresource == "status":
		eachBelow(d.Answer, "/spec", func(each check.Operation) {
			t.Errorf("%s: the patch changes the spec: %s %s", what, each.Op, each.Path)
		})
	case r.Subresource == "ephemeralcontainers" && applies:
		for _, lost := range lostEntries(r.Object, d.Object, "") {
			t.Errorf("%s: the patch removes what the update adds: %s%s", what, lost, culprit(d))
		}
	}
}

// isTakenForObject reports whether the webhook allows the object of a subresource, which it denies, with the fields of the object that has the
// subresource.
func isTakenForObject(t *check.T, c check.Case, r reach.Request) bool {
	if r.Object == nil || r.Kind == c.Request.Kind {
		return false
	}
	d, ok := t.Decide(withObject(r, vary.Patched(c.Request.Object, r.Object)))
	return ok && d.Response.Allowed
}
