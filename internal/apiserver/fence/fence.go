package fence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// defaultLimit limits the wait for the sentinels, unless Fences.Limit does.
const defaultLimit = 30 * time.Second

// refusedLimit limits how long the dry-run request can be refused, and foreignLimit how long another webhook or
// policy than a sentinel can refuse it: a policy that was removed is effective for up to a second.
const (
	refusedLimit = 10 * time.Second
	foreignLimit = 3 * time.Second
)

// conflicts limits how often a change of the namespace of the fences is repeated.
const conflicts = 10

// Fences creates fences. All exported fields are required. Its methods can be called by
// several goroutines at the same time.
type Fences struct {
	Client  *client.Client
	Install *install.Installer
	// HooksErr returns why webhook calls can no longer arrive, or nil.
	HooksErr func() error
	// Limit limits the wait for the sentinels. 0 means 30 s.
	Limit time.Duration
	// Unknown is true if the API server can lack Features, which the first fence then detects.
	Unknown bool

	detecting sync.Mutex // guards the fields below
	detected  bool
	features  Features

	count atomic.Int64
	mu    sync.Mutex // guards scope, servers, readers and what they have
	scope *install.Scope
	// servers are the aggregated API servers that serve resources of scenarios, by their Services.
	servers map[string]*aggregated
	// readers are policies, by their kind and paramKind, and bindings, also by the namespace.
	readers map[install.Param]*reader
}

// Wait returns when the API server acts on every write of these kinds that was
// finished before the call. If the cluster has several API servers, that is true for
// each that can be reached from here, and for the aggregated API servers of the requests that were noted.
//
// The error is a framework.ErrTimeout if a sentinel left no mark, and an apierrors.APIStatus if the API server
// refused the dry-run request for another reason than a sentinel.
func (f *Fences) Wait(ctx context.Context, kinds Kinds) error {
	if kinds == (Kinds{}) {
		return nil
	}
	var features Features
	if f.Unknown {
		var err error
		if features, err = f.Detect(ctx); err != nil {
			return fmt.Errorf("find out what the API server can do: %w", err)
		}
	}
	written := f.written(kinds)
	current, err := f.create(ctx, kinds, features)
	if err != nil {
		return fmt.Errorf("create fence: %w", err)
	}
	interval := client.Soon
	if kinds.ValidatingPolicies || kinds.MutatingPolicies {
		interval = client.Later
	}
	var missing string
	began := time.Now()
	err = client.Poll(ctx, interval, f.limit(), func() (bool, error) {
		answer, lacks, err := f.probe(ctx, current)
		if err != nil {
			return false, err
		}
		missing = lacks
		if err := f.HooksErr(); err != nil {
			return false, err
		}
		if missing == "" {
			return true, nil // also if a policy refuses the request, which does not keep the sentinels from it
		}
		return false, refused(answer, time.Since(began))
	})
	if err != nil && missing != "" && (errors.Is(err, framework.ErrTimeout) || ctx.Err() != nil) {
		return fmt.Errorf("wait until the API server uses the installed configurations: %w: not effective yet: %s", err, missing)
	}
	if err == nil {
		err = f.waitForAggregated(ctx, current, interval)
	}
	if err != nil {
		return fmt.Errorf("wait until the API server uses the installed configurations: %w", err)
	}
	f.effective(written)
	for _, sentinel := range current.objects {
		if err := f.Client.Delete(ctx, sentinel); err != nil {
			return fmt.Errorf("remove a configuration that only tested whether the API server uses the installed ones: %w", err)
		}
	}
	return nil
}

func (f *Fences) limit() time.Duration { return cmp.Or(f.Limit, defaultLimit) }

// probe sends the dry-run requests of a fence, and returns which sentinels left no mark.
func (f *Fences) probe(ctx context.Context, current *fence) (answer framework.Result, missing string, err error) {
	subject := current.features.subject()
	if !current.features.NoWarnings {
		return f.Client.SendToAll(ctx, ProbeOf(subject, current.scope, nil), current.missing)
	}
	recording := f.Install.Hooks.Record(current.scope.ID)
	defer recording.Stop()
	seen := 0
	answer, missing, err = f.Client.SendToAll(ctx, ProbeOf(subject, current.scope, nil), func(answer framework.Result) string {
		calls := recording.Calls()
		for _, call := range calls[seen:] {
			answer.Warnings = append(answer.Warnings, current.markOf(call.Webhook))
		}
		seen = len(calls)
		return current.missing(answer)
	})
	if err != nil || missing != "" || !current.denies {
		return answer, missing, err
	}
	_, missing, err = f.Client.SendToAll(ctx, ProbeOf(subject, current.scope, map[string]any{denyLabel: current.nonce}), func(answer framework.Result) string {
		if strings.HasSuffix(answer.Status.Message, current.mark("policy")) {
			return ""
		}
		return current.mark("policy")
	})
	return answer, missing, err
}

// Check sends the dry-run request without sentinels. The error is as that of Wait.
func (f *Fences) Check(ctx context.Context) error {
	scope, err := f.namespace(ctx)
	if err != nil {
		return fmt.Errorf("create the namespace of the fences: %w", err)
	}
	began := time.Now()
	return client.Poll(ctx, client.Later, f.limit(), func() (bool, error) {
		answer, err := f.Client.Send(ctx, Probe(scope, nil))
		if err != nil {
			return false, err
		}
		return answer.Allowed(), refused(answer, time.Since(began))
	})
}

// refused returns the error of a dry-run request that was refused for some time, if another one will be too.
func refused(answer framework.Result, after time.Duration) error {
	message := answer.Status.Message
	sentinel := strings.Contains(message, sentinelSuffix+`"`)
	slow := sentinel && strings.Contains(message, "context deadline exceeded") // a busy machine is not a cause to give up
	named := strings.Contains(message, "denied request: ") || strings.Contains(message, "admission webhook ") || strings.Contains(message, "calling webhook ")
	// An API server that has just started refuses until it has read the roles, and its plugins are ready.
	starting := answer.Status.Code == http.StatusForbidden && !named && (strings.Contains(message, " cannot create ") || strings.Contains(message, "not yet ready"))
	// A load balancer responds with such a code for an API server that has ended.
	unavailable := !named && client.Overloaded(answer.Status.Code)
	switch {
	case answer.Allowed(), starting, unavailable, slow, after <= foreignLimit, (sentinel || !named) && after <= refusedLimit:
		return nil
	case sentinel:
		return fmt.Errorf("the API server cannot call the Hook server: %s", message)
	default:
		return fmt.Errorf("the API server refused a dry-run request: %w", &apierrors.StatusError{ErrStatus: answer.Status})
	}
}

// fence is one set of sentinels.
type fence struct {
	scope *install.Scope
	nonce string
	// label is a label that the namespace of the fences got for this fence, which its webhooks select,
	// or empty. An API server receives the changes of all namespaces in their order.
	label string
	// features are what the API server does.
	features Features
	// denies is true if the sentinel of validating policies denies a request of its own, because its warning would not
	// arrive.
	denies bool
	// marks are what the sentinels leave on a response.
	marks   []string
	objects []client.Object
	// servers have the creations on the aggregated API servers that the fence is also for.
	servers map[string][]creation
}

// create writes the sentinels.
func (f *Fences) create(ctx context.Context, kinds Kinds, features Features) (*fence, error) {
	scope, err := f.namespace(ctx)
	if err != nil {
		return nil, err
	}
	current := &fence{scope: scope, features: features, nonce: fmt.Sprintf("n%d", f.count.Add(1)), servers: f.aggregatedServers()}
	if kinds.Namespaces {
		kinds.ValidatingWebhooks, current.label = true, install.ScenarioLabel+"-fence-"+current.nonce
		if err := f.labelNamespace(ctx, current.label); err != nil {
			return nil, err
		}
	}
	for _, manifest := range current.sentinels(kinds) {
		scripts := map[string]hook.Script{}
		for _, phase := range []framework.Phase{framework.Mutating, framework.Validating} {
			scripts[current.webhook(phase)] = hook.Script{Replies: []hook.Reply{{Warnings: []string{current.mark(string(phase))}}}}
		}
		installed, err := f.Install.InstallAdmission(ctx, f.scope, manifest, scripts)
		if err != nil {
			return nil, err
		}
		current.objects = append(current.objects, installed)
	}
	return current, nil
}

// Prepare creates the namespace of the fences, before something is installed that could refuse
// it.
func (f *Fences) Prepare(ctx context.Context) error {
	_, err := f.namespace(ctx)
	return err
}

// Namespace returns the name of the namespace of the fences, and creates it, once.
func (f *Fences) Namespace(ctx context.Context) (string, error) {
	scope, err := f.namespace(ctx)
	if err != nil {
		return "", err
	}
	return scope.ID, nil
}

// namespace creates the namespace of the fences, once.
func (f *Fences) namespace(ctx context.Context) (*install.Scope, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scope != nil {
		return f.scope, nil
	}
	scope, err := f.Install.NewScope(ctx, runid.Prefix(f.Install.Run)+"-fence", hook.Conversion{})
	if scope != nil {
		scope.Probes = true
	}
	f.scope = scope
	return scope, err
}

// labelNamespace adds a label to the namespace of the fences.
func (f *Fences) labelNamespace(ctx context.Context, label string) error {
	namespace := client.Namespace(f.scope.ID)
	for left := conflicts; ; left-- { // a namespace controller or another fence can write it too
		current, err := f.Client.Get(ctx, namespace)
		if err != nil {
			return err
		}
		_, err = f.Client.Update(ctx, namespace, install.WithLabels(current.Object, map[string]any{label: ""}))
		if !apierrors.IsConflict(err) || left == 0 {
			return err
		}
	}
}

// ProbeName is the name of the object of a Probe.
const ProbeName = "probe"

// Probe returns a dry-run request in the namespace of a scope: the creation of a
// ConfigMap with labels.
func Probe(scope *install.Scope, labels map[string]any) client.HTTPRequest {
	return ProbeOf(Subjects()[0], scope, labels)
}

// ProbeOf is Probe for another kind.
func ProbeOf(of Subject, scope *install.Scope, labels map[string]any) client.HTTPRequest {
	return probe(of, scope, labels, nil)
}

func probe(of Subject, scope *install.Scope, labels, annotations map[string]any) client.HTTPRequest {
	metadata := map[string]any{"name": ProbeName}
	if labels != nil {
		metadata["labels"] = labels
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	apiVersion, kind := of.ToAPIVersionAndKind()
	body, _ := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
	return client.HTTPRequest{
		Method: http.MethodPost, Path: client.URLPath(of.GroupVersion().WithResource(of.Resource), scope.ID, "", ""), Query: url.Values{"dryRun": {"All"}},
		Body: body, ContentType: "application/json",
	}
}

// ProbeRules returns the rules of a webhook or policy that match a Probe of each of Subjects.
func ProbeRules() []any {
	var rules []any
	for _, one := range Subjects() {
		rules = append(rules, map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{one.Group}, "apiVersions": []any{one.Version}, "resources": []any{one.Resource}, "scope": "Namespaced"})
	}
	return rules
}

// deniedByPolicy reports whether a ValidatingAdmissionPolicy refused a request. All of them are evaluated before that, so
// the warnings of the others have arrived.
func deniedByPolicy(answer framework.Result) bool {
	return strings.Contains(answer.Status.Message, ": ValidatingAdmissionPolicy '") && strings.Contains(answer.Status.Message, " denied request: ")
}

// missing returns the sentinels that left no mark on a response, or "".
func (f *fence) missing(answer framework.Result) string {
	if !answer.Allowed() && !deniedByPolicy(answer) {
		return fmt.Sprintf("all: the API server refused the dry-run request: %s", answer.Status.Message)
	}
	var missing []string
	for _, mark := range f.marks {
		if mark == mutatingPolicyMark {
			annotation, _, _ := unstructured.NestedString(answer.Fields(), "metadata", "annotations", markAnnotation)
			if annotation != f.nonce {
				missing = append(missing, mark)
			}
			continue
		}
		if !slices.ContainsFunc(answer.Warnings, func(warning string) bool { return strings.HasSuffix(warning, mark) }) {
			missing = append(missing, mark)
		}
	}
	return strings.Join(missing, ", ")
}
