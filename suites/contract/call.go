package contract

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	objects "github.com/admissiontest/admissiontest/internal/object"
)

// bothPhases are the phases in which a plugin is called.
func bothPhases() []framework.Phase {
	return []framework.Phase{framework.Mutating, framework.Validating}
}

// has reports whether a plugin has a phase.
func has(plugin admission.Interface, phase framework.Phase) bool {
	ok := false
	switch phase {
	case framework.Mutating:
		_, ok = plugin.(admission.MutationInterface)
	case framework.Validating:
		_, ok = plugin.(admission.ValidationInterface)
	}
	return ok
}

// called reports whether the API server would call a plugin in a phase for an operation.
func called(plugin admission.Interface, phase framework.Phase, operation admission.Operation) bool {
	return has(plugin, phase) && plugin.Handles(operation)
}

// call calls one phase of a plugin with attributes of the caller's making, on the
// objects in them, whether or not it handles the operation. Where the plugin panics
// there is no result.
func (t *Trial) call(h *harness.Harness, attributes admission.Attributes, phase framework.Phase) (harness.Result, *harness.PanicError) {
	result, err := h.Call(t.Context(), attributes, phase)
	var thrown *harness.PanicError
	if errors.As(err, &thrown) {
		return harness.Result{}, thrown
	}
	if err != nil {
		t.Fatalf("call the plugin: %v", err)
	}
	return result, nil
}

// do carries out a request in both phases. It returns false where there is nothing to
// look at, which is then noted: a panic is for the properties of panics to report.
func (t *Trial) do(h *harness.Harness, request framework.Request) (harness.Result, bool) {
	result, err := h.Run(t.Context(), request)
	if err != nil {
		t.once("not looked at: " + err.Error())
		return harness.Result{}, false
	}
	return result, true
}

// fields are those of attributes, so that one can be replaced by another.
type fields struct {
	object, old, options runtime.Object
	kind                 schema.GroupVersionKind
	resource             schema.GroupVersionResource
	subresource          string
	namespace, name      string
	operation            admission.Operation
	dryRun               bool
	user                 user.Info
}

// attributes returns the fields of what the plugin is given for a request in a phase.
// It returns false where there is none, which Run has reported.
func (t *Trial) attributes(h *harness.Harness, request framework.Request, phase framework.Phase) (fields, bool) {
	a, err := h.Attributes(request, phase)
	if err != nil {
		t.once("not looked at: " + err.Error())
		return fields{}, false
	}
	return fieldsOf(a), true
}

func fieldsOf(a admission.Attributes) fields {
	return fields{
		object: a.GetObject(), old: a.GetOldObject(), options: a.GetOperationOptions(),
		kind: a.GetKind(), resource: a.GetResource(), subresource: a.GetSubresource(),
		namespace: a.GetNamespace(), name: a.GetName(),
		operation: a.GetOperation(), dryRun: a.IsDryRun(), user: a.GetUserInfo(),
	}
}

// record makes a record of the fields, upstream's own.
func (f fields) record() admission.Attributes {
	return admission.NewAttributesRecord(f.object, f.old, f.kind, f.namespace, f.name, f.resource, f.subresource, f.operation, f.options, f.dryRun, f.user)
}

// String tells what is asked: "CREATE pods default/a".
func (f fields) String() string {
	text := fmt.Sprintf("%s %s", f.operation, f.resource.GroupResource())
	if f.subresource != "" {
		text += "/" + f.subresource
	}
	switch {
	case f.namespace != "" && f.name != "":
		return text + " " + f.namespace + "/" + f.name
	case f.namespace != "":
		return text + " in namespace " + f.namespace
	default:
		return text + " " + f.name
	}
}

// acted says what the plugin did for a request: refuse it, change the object, write by
// a client. Empty means nothing of it.
func acted(result harness.Result) string {
	switch {
	case result.Err != nil:
		return "refused it: " + result.Status.Message
	case !same(result.Before, result.Object):
		return "changed the object (- was, + is):\n" + diff(result.Before, result.Object)
	case len(result.Calls.Writes()) > 0:
		return "wrote:\n" + result.Calls.Writes().String()
	default:
		return ""
	}
}

// same compares objects by what they mean.
func same(a, b runtime.Object) (equal bool) {
	if objects.IsNil(a) || objects.IsNil(b) {
		return objects.IsNil(a) == objects.IsNil(b)
	}
	defer func() {
		if recover() != nil { // equality does, at fields that are not exported
			equal = reflect.DeepEqual(a, b)
		}
	}()
	return equality.Semantic.DeepEqual(a, b)
}

// diff shows how one object differs from another.
func diff(was, is runtime.Object) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("- %T\n+ %T, with other content", was, is)
		}
	}()
	every := cmp.Exporter(func(reflect.Type) bool { return true })
	return narrow(cmp.Diff(was, is, every))
}

// lineWidth is how long a line of a diff may get: go-cmp shows what is the same beside
// a change whole, however large it is.
const lineWidth = 160

// narrow cuts the lines of a diff.
func narrow(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if runes := []rune(line); len(runes) > lineWidth {
			lines[i] = string(runes[:lineWidth]) + " …"
		}
	}
	return strings.Join(lines, "\n")
}

// hasReached reports whether Reached was called.
func (t *Trial) hasReached() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reached > 0
}

// once is Logf for what need not be said again.
func (t *Trial) once(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.logs, text) {
		t.logs = append(t.logs, text)
	}
}
