package framework

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrImpossible marks a Request of a shape that no API server hands to admission.
var ErrImpossible = errors.New("no API server sends that")

// Operation returns the admission operation of a Request: CREATE, UPDATE, DELETE or
// CONNECT; empty for one that is not admitted.
// See https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
func (r Request) Operation() string {
	switch r.Verb {
	case VerbCreate:
		return "CREATE"
	case VerbUpdate, VerbApply, VerbPatch:
		if r.Creates {
			return "CREATE"
		}
		return "UPDATE"
	case VerbDelete, VerbDeleteCollection:
		return "DELETE"
	case VerbConnect:
		return "CONNECT"
	default:
		return ""
	}
}

// Shape reports how the Request differs from all that an API server hands to
// admission, for plugins that are called in this process; nil where it does not. The
// error says what to write instead and wraps ErrImpossible. A Request that was
// declared [Request.Impossible] passes.
//
// Rules: k8s.io/apiserver/pkg/endpoints/handlers/{create,update,patch,delete,rest}.go
// and k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go.
func (r Request) Shape() error {
	if r.ImpossibleBecause != "" {
		return nil
	}
	wrong := r.shape()
	if wrong == "" {
		return nil
	}
	return fmt.Errorf(`%s: %w; if the test is about that, add .Impossible("why")`, wrong, ErrImpossible)
}

func (r Request) shape() string {
	has, had := !absent(r.Object), !absent(r.OldObject)
	switch operation := r.Operation(); {
	case operation == "":
		return fmt.Sprintf("a request of verb %q is not admitted: use create, update, delete, deletecollection or connect", r.Verb)
	case operation == "CREATE" && !has:
		return "a create has no object: give the object to create"
	case operation == "CREATE" && had:
		return "a create has an old object: use framework.Update"
	case operation == "UPDATE" && !has:
		return "an update has no object: give the new object"
	case operation == "UPDATE" && !had:
		return "an update has no old object: use framework.UpdateWith(old, edit), or framework.CreateOnUpdate where none is stored"
	case operation == "DELETE" && has:
		return "a delete has a new object: give the stored object alone, as old object"
	case operation == "DELETE" && !had:
		return "a delete has no old object: give the stored object"
	case r.Verb == VerbDeleteCollection && r.Name != "":
		return fmt.Sprintf("a delete of a collection names %q: admission is asked without a name", r.Name)
	case operation == "CONNECT":
		return r.connectShape(had)
	}
	if has && had {
		if wrong := pairShape(r.OldObject, r.Object); wrong != "" {
			return wrong
		}
	}
	return r.restShape()
}

func (r Request) connectShape(had bool) string {
	switch {
	case had:
		return "a connect has an old object: give parent, subresource and options alone"
	case r.OperationOptions != nil:
		return "a connect has operation options: its options are its object"
	case r.DryRun:
		return "a connect is a dry run: the API server knows no such thing"
	case r.Subresource == "":
		return `a connect has no subresource: name it ("exec")`
	default:
		return ""
	}
}

// pairShape looks at the old object and the new one of an update.
func pairShape(old, object runtime.Object) string {
	if old == object {
		return "an update has one object as old and new: use framework.UpdateWith, which copies"
	}
	if reflect.TypeOf(old) != reflect.TypeOf(object) {
		return fmt.Sprintf("an update puts a %T in place of a %T: both are of one type", object, old)
	}
	was, err := meta.Accessor(old)
	if err != nil {
		return ""
	}
	is, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	if was.GetName() != is.GetName() || was.GetNamespace() != is.GetNamespace() {
		return fmt.Sprintf("an update puts %s/%s in place of %s/%s: name and namespace are those of the URL for both",
			is.GetNamespace(), is.GetName(), was.GetNamespace(), was.GetName())
	}
	return ""
}

// restShape looks at the options and the namespace.
func (r Request) restShape() string {
	if !absent(r.OperationOptions) {
		want := map[string]runtime.Object{"CREATE": &metav1.CreateOptions{}, "UPDATE": &metav1.UpdateOptions{}, "DELETE": &metav1.DeleteOptions{}}[r.Operation()]
		if reflect.TypeOf(r.OperationOptions) != reflect.TypeOf(want) {
			return fmt.Sprintf("a %s has %T: its options are a %T", r.Operation(), r.OperationOptions, want)
		}
	}
	for _, object := range []runtime.Object{r.Object, r.OldObject} {
		if absent(object) || r.Subresource != "" {
			continue
		}
		if accessor, err := meta.Accessor(object); err == nil && accessor.GetNamespace() != "" && accessor.GetNamespace() != r.Namespace {
			return fmt.Sprintf("the request goes to namespace %q, its object is of namespace %q: both are one", r.Namespace, accessor.GetNamespace())
		}
	}
	return ""
}

// String tells what the Request does, for messages: "update Deployment default/a (status)".
func (r Request) String() string {
	text := string(r.Verb)
	if text == "" {
		text = "request without a verb"
	}
	kind := r.Kind.Kind
	for _, object := range []runtime.Object{r.Parent, r.Object, r.OldObject} {
		if kind == "" && !absent(object) {
			name := fmt.Sprintf("%T", object)
			kind = name[strings.LastIndex(name, ".")+1:]
		}
	}
	if kind != "" {
		text += " " + kind
	}
	switch {
	case r.Namespace != "" && r.Name != "":
		text += " " + r.Namespace + "/" + r.Name
	case r.Namespace != "":
		text += " in " + r.Namespace
	case r.Name != "":
		text += " " + r.Name
	}
	if r.Subresource != "" {
		text += " (" + r.Subresource + ")"
	}
	return text
}
