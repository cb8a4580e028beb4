package observe

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
)

// reported calls a plugin, and reports its panic, and its first refusal of each resource that the API
// server itself writes: both can keep the API server from its start.
func (p *plugin) reported(do phase) phase {
	return func(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				p.recorder.report("%s panicked at %s: %v; it was called for %s", p.name, p.panicPosition(), cause, asked(a))
				panic(cause) //nolint:forbidigo // it is the panic of the plugin, with its stack
			}
			if who := a.GetUserInfo(); err != nil && who != nil && who.GetName() == user.APIServerUser && p.first(a) {
				p.recorder.report("%s refused the API server's own request to %s: %v", p.name, asked(a), err)
			}
		}()
		return do(ctx, a, o)
	}
}

// first reports whether the plugin refuses a resource for the first time.
func (p *plugin) first(a admission.Attributes) bool {
	p.recorder.mu.Lock()
	defer p.recorder.mu.Unlock()
	resource := a.GetResource().GroupResource()
	if p.refused[resource] {
		return false
	}
	p.refused[resource] = true
	return true
}

// report prints one line.
func (r *Recorder) report(format string, args ...any) {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	_, _ = fmt.Fprintln(r.Out, kubeapiserver.ReportPrefix+text) // it fails only if stderr is closed
}

// asked returns a string such as "create clusterroles.rbac.authorization.k8s.io admin".
func asked(a admission.Attributes) string {
	resource := a.GetResource().GroupResource().String()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	name := a.GetName()
	if a.GetNamespace() != "" {
		name = a.GetNamespace() + "/" + name
	}
	return strings.TrimSpace(strings.ToLower(string(a.GetOperation())) + " " + resource + " " + name)
}

// panicPosition returns the position of the panic that is being recovered.
func (p *plugin) panicPosition() string {
	t := reflect.TypeOf(p.Interface)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	position, _ := PanicPosition(t.PkgPath())
	return position
}

// PanicPosition returns the function, file and line of the panic that is being recovered: the innermost
// function of one of the packages, or else the function that panicked. Found is true if the stack has
// a function of one of the packages.
func PanicPosition(packages ...string) (position string, found bool) {
	counters := make([]uintptr, 128)
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			position, found = "", false // the functions above recover the panic
		case strings.HasPrefix(frame.Function, "runtime."), found:
		case strings.HasSuffix(frame.Function, ").observed"):
			return position, found // the functions below are no plugin's
		default:
			for _, name := range packages {
				found = found || name != "main" && strings.HasPrefix(frame.Function, name+".")
			}
			if position == "" || found {
				position = fmt.Sprintf("%s (%s:%d)", frame.Function, path.Base(frame.File), frame.Line)
			}
		}
	}
	return position, found
}
