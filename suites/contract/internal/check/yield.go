package check

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

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

// locked is how long a call of a pair waits for the other one, which may wait for a lock that the first one holds.
const locked = 3 * time.Millisecond

// SendPair sends a request twice at the same time. The calls take turns: whenever one asks for an attribute, the other
// one goes on. So each change of what they share between two attributes meets a change by the other call. InStep is false
// if one waited for too long.
func SendPair(ctx context.Context, h *harness.Harness, request framework.Request) (responses []Response, inStep bool) {
	var steps [2]atomic.Int64
	var free atomic.Bool
	var wait sync.WaitGroup
	responses = make([]Response, len(steps))
	for me := range responses {
		next := func() {
			need := steps[me].Add(1) + int64(1-me) // the second call is a step ahead when the first one goes on
			for since := time.Now(); steps[1-me].Load() < need && !free.Load(); runtime.Gosched() {
				if time.Since(since) > locked {
					free.Store(true)
				}
			}
		}
		wait.Go(func() {
			defer steps[me].Store(math.MaxInt64 / 2) // the other one need not wait any more
			next()
			responses[me] = SendYielding(ctx, h, request, next)
		})
	}
	wait.Wait()
	return responses, !free.Load()
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
