package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/internal/plugintrace"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
)

// observation records the side effects of the plugin during one Request.
type observation struct {
	harness  *Harness
	outer    context.Context //nolint:containedctx // ends with the call that has it
	unlabel  func()
	started  time.Time
	snapshot *fakes.Snapshot
	warnings warnings
	audited  *audit.AuditContext
}

// observe begins an observation. The method result ends it.
func (h *Harness) observe(ctx context.Context) *observation {
	o := &observation{harness: h, outer: ctx, started: time.Now(), snapshot: h.world.Snapshot()}
	o.unlabel = h.own.Set(ctx)
	return o
}

// context returns a context with the values that an API server's handlers set.
func (o *observation) context(verb string, a admission.Attributes) context.Context {
	ctx := audit.WithAuditContext(o.outer)
	o.audited = audit.AuditContextFrom(ctx)
	// An error means that the caller's context already has an audit context, which is then used.
	_ = o.audited.Init(audit.RequestAuditConfig{Level: auditinternal.LevelRequestResponse}, nil)
	ctx = warning.WithWarningRecorder(ctx, &o.warnings)
	ctx = apirequest.WithNamespace(ctx, a.GetNamespace())
	if who := a.GetUserInfo(); who != nil {
		ctx = apirequest.WithUser(ctx, who)
	}
	resource := a.GetResource()
	return apirequest.WithRequestInfo(ctx, &apirequest.RequestInfo{
		IsResourceRequest: true,
		Verb:              verb,
		APIGroup:          resource.Group,
		APIVersion:        resource.Version,
		Resource:          resource.Resource,
		Subresource:       a.GetSubresource(),
		Namespace:         a.GetNamespace(),
		Name:              a.GetName(),
	})
}

// result ends the observation. The returned error is nil if err is a refusal by the plugin.
func (o *observation) result(a admission.Attributes, err error) (Result, error) {
	o.unlabel()
	annotations := o.audited.GetEventAnnotations()
	records, failed := o.records(annotations)
	if failed != nil {
		return Result{}, failed
	}
	var panicked *PanicError
	var usage *usageError
	if errors.As(err, &panicked) && len(records) > 0 {
		panicked.In += fmt.Sprintf(" of plugin %q", records[len(records)-1].Plugin)
	}
	if errors.As(err, &panicked) || errors.As(err, &usage) {
		return Result{}, err
	}
	if err := o.harness.waitHandlers(o.outer); err != nil {
		return Result{}, err
	}
	result := Result{
		Err:        err,
		Old:        a.GetOldObject(),
		Calls:      o.snapshot.Calls(),
		CacheEdits: o.snapshot.Mutations(),
		harness:    o.harness,
		attributes: a,
	}
	result.Result = framework.Result{
		Status:   statusOf(a.GetOperation(), err),
		Object:   a.GetObject(),
		Warnings: o.warnings.all(),
		Audit:    &framework.Audit{Level: string(auditinternal.LevelRequestResponse), Annotations: annotations},
		Trace:    plugintrace.Trace(records),
		Started:  o.started,
		Finished: time.Now(),
	}
	return result, nil
}

// records takes the records of the plugins of a chain from the audit annotations. If the caller's context has an
// audit context, the annotations also have the records of earlier requests.
func (o *observation) records(annotations map[string]string) ([]kubeapiserver.Record, error) {
	records, err := kubeapiserver.Take(annotations)
	return slices.DeleteFunc(records, func(r kubeapiserver.Record) bool { return r.Started < o.started.UnixNano() }), err
}

// statusOf returns the Status that a client sees.
func statusOf(operation admission.Operation, err error) metav1.Status {
	switch {
	case err != nil:
		return *responsewriters.ErrorToAPIStatus(err)
	case operation == admission.Create:
		return metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}
	default:
		return metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK}
	}
}

// warnings records warnings, each text once, as the API server's recorder does
// (k8s.io/apiserver/pkg/endpoints/filters/warning.go).
type warnings struct {
	lock  sync.Mutex
	texts []string
}

func (w *warnings) AddWarning(_, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if text != "" && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

func (w *warnings) all() []string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.Clone(w.texts)
}

// verbOf returns the verb that the API server authorizes (apirequest.RequestInfo).
func verbOf(operation admission.Operation, verb framework.Verb) string {
	switch {
	case operation == admission.Connect:
		return "create" // for a POST
	case verb == framework.VerbApply:
		return string(framework.VerbPatch)
	case verb == "":
		return strings.ToLower(string(operation))
	default:
		return string(verb)
	}
}
