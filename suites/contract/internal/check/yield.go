package check

import (
	"context"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// SendYielding is Send with attributes whose methods let other goroutines run: with runtime.Gosched, for
// example. So concurrent calls of a plugin overlap even on a machine with few processors. The Object of the
// Result is the object after Admit.
func SendYielding(ctx context.Context, h *harness.Harness, request framework.Request, yield func()) Response {
	var sent Response
	var first admission.Attributes
	for _, phase := range Phases() {
		a, err := h.Attributes(request, phase)
		if err != nil {
			return Response{Err: err}
		}
		switch {
		case first == nil:
			first = a
		case a.GetOperation() == admission.Delete:
			a = first // the same record in both phases
		default:
			object := Copy(first.GetObject())
			CopyName(object, a.GetObject())
			a = admission.NewAttributesRecord(object, a.GetOldObject(), a.GetKind(), a.GetNamespace(), a.GetName(), a.GetResource(),
				a.GetSubresource(), a.GetOperation(), a.GetOperationOptions(), a.IsDryRun(), a.GetUserInfo())
		}
		if !WouldCall(h.Plugin(), phase, a.GetOperation()) {
			continue
		}
		sent.Result, sent.Err = h.Call(ctx, yielding{a, yield}, phase)
		if sent.Err != nil || sent.Result.Err != nil {
			return sent
		}
	}
	sent.Result.Object = first.GetObject()
	return sent
}

// yielding are attributes that let other goroutines run before they answer.
type yielding struct {
	admission.Attributes
	yield func()
}

// GetAnnotations implements admission.AnnotationsGetter: this check is not about annotations.
func (yielding) GetAnnotations(auditinternal.Level) map[string]string { return nil }

func (y yielding) GetName() string {
	y.yield()
	return y.Attributes.GetName()
}

func (y yielding) GetNamespace() string {
	y.yield()
	return y.Attributes.GetNamespace()
}

func (y yielding) GetResource() schema.GroupVersionResource {
	y.yield()
	return y.Attributes.GetResource()
}

func (y yielding) GetSubresource() string {
	y.yield()
	return y.Attributes.GetSubresource()
}

func (y yielding) GetOperation() admission.Operation {
	y.yield()
	return y.Attributes.GetOperation()
}

func (y yielding) GetObject() apiruntime.Object {
	y.yield()
	return y.Attributes.GetObject()
}

func (y yielding) GetOldObject() apiruntime.Object {
	y.yield()
	return y.Attributes.GetOldObject()
}

func (y yielding) GetUserInfo() user.Info {
	y.yield()
	return y.Attributes.GetUserInfo()
}
