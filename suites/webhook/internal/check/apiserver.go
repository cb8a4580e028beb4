package check

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
)

// APIServer is an API server on which the configurations of a Subject are installed: see suites/webhook.
type APIServer struct {
	Namespace string
	User      framework.User
	DryRun    func(ctx context.Context, object *unstructured.Unstructured) error
}

// ForServer returns a sample as it is sent to the API server.
func (t *T) ForServer(c Case) reach.Request {
	r := c.Sample
	r.DryRun = true
	if t.APIServer.User.Name != "" {
		r.User = t.APIServer.User
	}
	u := (&unstructured.Unstructured{Object: r.Object}).DeepCopy()
	if namespace := t.APIServer.Namespace; namespace != "" && u.GetNamespace() != "" {
		u.SetNamespace(namespace)
		r.Namespace = namespace
	}
	r.Object = u.Object
	return r
}

// AfterMutation returns a request as the webhook gets it: for a validating webhook, after the mutating webhooks of the
// Subject.
func (t *T) AfterMutation(r reach.Request) reach.Request {
	if t.Kind == Validating {
		return t.mutated(t.Context(), r)
	}
	return r
}

// served is what an API server returned for a dry run.
type served struct {
	object map[string]any
	err    error
}

// DryRun sends a request to the API server, each request once.
func (t *T) DryRun(r reach.Request) (object map[string]any, err error) {
	key := string(Encode(r.Object))
	t.sending.Lock()
	defer t.sending.Unlock()
	if earlier, ok := t.sent[key]; ok {
		return earlier.object, earlier.err
	}
	u := (&unstructured.Unstructured{Object: r.Object}).DeepCopy()
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	err = t.APIServer.DryRun(t.Context(), u)
	if t.Over() {
		return u.Object, err // perhaps it was not sent
	}
	if t.sent == nil {
		t.sent = map[string]served{}
	}
	t.sent[key] = served{u.Object, err}
	return u.Object, err
}

// Changes counts what a patch changes, and what of that an object shows. Fields that were absent before are not counted,
// except in the metadata: they can be defaults of the API server.
type Changes struct{ Made, Shown int }

// ChangesIn returns how many changes between two objects a third one has.
func (t *T) ChangesIn(object, before, after map[string]any) Changes {
	var found Changes
	all := make([]map[string]any, 3)
	for i, each := range []map[string]any{before, after, object} {
		decoded, err := t.Canonical(each)
		if err != nil {
			return found
		}
		all[i] = decoded
	}
	found.compare(all[0], all[1], all[2], false)
	return found
}

func (c *Changes) count(shown bool) {
	c.Made++
	if shown {
		c.Shown++
	}
}

// compare adds the changes of a value. Counted is whether a value that was absent counts.
func (c *Changes) compare(before, after, got any, counted bool) {
	if reflect.DeepEqual(before, after) {
		return
	}
	switch after := after.(type) {
	case map[string]any:
		old, _ := before.(map[string]any)
		has, _ := got.(map[string]any)
		for name, value := range after {
			c.compare(old[name], value, has[name], counted || name == "metadata")
		}
		for name := range old {
			if _, kept := after[name]; !kept {
				_, still := has[name]
				c.count(!still)
			}
		}
		return
	case []any:
		old, _ := before.([]any)
		has, _ := got.([]any)
		if len(old) == len(after) && len(has) == len(old) {
			for i := range after {
				c.compare(old[i], after[i], has[i], counted)
			}
			return
		}
		for _, item := range after {
			if !contains(old, item) && (counted || len(old) > 0) {
				c.count(contains(has, item))
			}
		}
		return
	}
	if before != nil || counted {
		c.count(reflect.DeepEqual(after, got))
	}
}

// contains reports whether an element of a list has all that an item has.
func contains(list []any, item any) bool {
	for _, each := range list {
		if covers(each, item) {
			return true
		}
	}
	return false
}

func covers(got, want any) bool {
	fields, isMap := want.(map[string]any)
	has, ok := got.(map[string]any)
	if !isMap || !ok {
		return reflect.DeepEqual(got, want)
	}
	for name := range fields {
		if !covers(has[name], fields[name]) {
			return false
		}
	}
	return true
}
