package framework

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/internal/object"
)

// ErrImpossible marks a Request that no API server passes to admission, for example a create with
// an old object.
var ErrImpossible = errors.New("no API server sends this")

// Operation returns the admission operation of a Request: CREATE, UPDATE, DELETE or CONNECT. Empty
// for a verb that admission does not see, such as get. See
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/
func (r Request) Operation() string {
	switch r.Verb {
	case VerbCreate:
		return "CREATE"
	case VerbUpdate, VerbApply, VerbPatch:
		if r.InProcess.CreateOnUpdate {
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

// Shape checks a Request for a plugin in this process. It returns nil if an API server can pass
// such a request to admission. The error wraps ErrImpossible and says what to write instead. Shape
// returns nil for a Request that is marked with [Request.Impossible].
//
// The rules come from
// k8s.io/apiserver/pkg/endpoints/handlers/{create,update,patch,delete,rest}.go and
// k8s.io/apiserver/pkg/registry/rest/{create,update,delete}.go.
func (r Request) Shape() error {
	if r.InProcess.ImpossibleBecause != "" {
		return nil
	}
	problem := r.shapeProblem()
	if problem == "" {
		return nil
	}
	return fmt.Errorf(`%s: %w; if the test is about that, add .Impossible("why")`, problem, ErrImpossible)
}

func (r Request) shapeProblem() string {
	hasNew, hasOld := !object.IsNil(r.Object), !object.IsNil(r.InProcess.OldObject)
	switch operation := r.Operation(); {
	case operation == "":
		return fmt.Sprintf("admission does not see a request of verb %q: use create, update, delete, deletecollection or connect", r.Verb)
	case operation != "CONNECT" && r.connects():
		return fmt.Sprintf("a %s of the subresource %q: an API server handles this subresource as a connect: use framework.Connect(parent, %q, options)", strings.ToLower(operation), r.Subresource, r.Subresource)
	case operation == "CREATE" && !hasNew:
		return "a create has no object: give the object to create"
	case operation == "CREATE" && hasOld:
		return "a create has an old object: use framework.Update"
	case operation == "UPDATE" && !hasNew:
		return "an update has no object: give the new object"
	case operation == "UPDATE" && !hasOld:
		return "an update has no old object: use framework.UpdateWith(old, edit), or framework.CreateOnUpdate if nothing is stored"
	case operation == "DELETE" && hasNew:
		return "a delete has a new object: give only the stored object, as the old object"
	case operation == "DELETE" && !hasOld:
		return "a delete has no old object: give the stored object"
	case r.Verb == VerbDeleteCollection && r.Name != "":
		return fmt.Sprintf("a delete of a collection has the name %q: admission gets no name", r.Name)
	case operation == "CONNECT":
		return r.connectProblem(hasOld)
	}
	if hasNew && hasOld {
		if problem := pairProblem(r.InProcess.OldObject, r.Object); problem != "" {
			return problem
		}
	}
	return r.optionsProblem()
}

// connects reports whether the subresource is one to which clients connect. The subresources are
// those that implement rest.Connecter in k8s.io/kubernetes/pkg/registry/core.
func (r Request) connects() bool {
	if r.Kind.Group != "" {
		return false
	}
	switch kind := r.kind(); r.Subresource {
	case "exec", "attach", "portforward":
		return strings.HasPrefix(kind, "Pod")
	case "proxy":
		return kind == "Pod" || kind == "Service" || kind == "Node" || strings.HasSuffix(kind, "ProxyOptions")
	default:
		return false
	}
}

func (r Request) connectProblem(hasOld bool) string {
	switch {
	case hasOld:
		return "a connect has an old object: give only parent, subresource and options"
	case r.InProcess.Options != nil:
		return "a connect has operation options: its options are its object"
	case r.DryRun:
		return "a connect is a dry run: the API server has no dry run of a connect"
	case r.Subresource == "":
		return `a connect has no subresource: name it ("exec")`
	default:
		return ""
	}
}

// pairProblem returns what makes an update from old to updated impossible, or "".
func pairProblem(old, updated runtime.Object) string {
	if old == updated {
		return "an update has the same object as old and as new object: use framework.UpdateWith, which copies"
	}
	if reflect.TypeOf(old) != reflect.TypeOf(updated) {
		return fmt.Sprintf("an update replaces a %T by a %T: both must have the same type", old, updated)
	}
	oldMeta, err := meta.Accessor(old)
	if err != nil {
		return ""
	}
	newMeta, err := meta.Accessor(updated)
	if err != nil {
		return ""
	}
	if oldMeta.GetName() != newMeta.GetName() || oldMeta.GetNamespace() != newMeta.GetNamespace() {
		return fmt.Sprintf("an update replaces %s/%s by %s/%s: both must have the name and namespace of the URL",
			oldMeta.GetNamespace(), oldMeta.GetName(), newMeta.GetNamespace(), newMeta.GetName())
	}
	return ""
}

// optionsProblem returns what is wrong with the options or the namespace, or "".
func (r Request) optionsProblem() string {
	if options := r.InProcess.Options; !object.IsNil(options) {
		want := map[string]runtime.Object{"CREATE": &metav1.CreateOptions{}, "UPDATE": &metav1.UpdateOptions{}, "DELETE": &metav1.DeleteOptions{}}[r.Operation()]
		if reflect.TypeOf(options) != reflect.TypeOf(want) {
			return fmt.Sprintf("a %s has options of type %T, want %T", r.Operation(), options, want)
		}
	}
	for _, obj := range []runtime.Object{r.Object, r.InProcess.OldObject} {
		if object.IsNil(obj) || r.Subresource != "" {
			continue
		}
		if accessor, err := meta.Accessor(obj); err == nil && accessor.GetNamespace() != "" && accessor.GetNamespace() != r.Namespace {
			return fmt.Sprintf("the request goes to namespace %q, and its object has namespace %q: both must be the same", r.Namespace, accessor.GetNamespace())
		}
	}
	return ""
}

// String describes the Request in messages: "update Deployment default/a (status)".
func (r Request) String() string {
	text := string(r.Verb)
	if text == "" {
		text = "request without a verb"
	}
	if kind := r.kind(); kind != "" {
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

// kind returns the name of the kind, or else of the Go type, of the object that the Request is for.
func (r Request) kind() string {
	if r.Kind.Kind != "" {
		return r.Kind.Kind
	}
	for _, obj := range []runtime.Object{r.InProcess.Parent, r.Object, r.InProcess.OldObject} {
		if !object.IsNil(obj) {
			name := fmt.Sprintf("%T", obj)
			return name[strings.LastIndex(name, ".")+1:]
		}
	}
	return ""
}
