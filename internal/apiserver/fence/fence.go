package fence

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// refusedLimit limits how long the dry-run request can be refused without an interruption: a policy that was removed is
// effective for up to a second, and an API server that has just started refuses until it has read the roles.
const refusedLimit = 10 * time.Second

// Fences creates fences. All exported fields are required. Its methods can be called by
// several goroutines at the same time.
type Fences struct {
	Client  *client.Client
	Install *install.Installer
	// HooksErr returns why webhook calls can no longer arrive, or nil.
	HooksErr func() error
	// Limit limits the wait for the sentinels.
	Limit time.Duration
	// Unknown is true if the API server can lack Features, which the first fence then detects.
	Unknown bool

	detecting sync.Mutex // guards the fields below
	detected  bool
	features  Features

	count atomic.Int64
	mu    sync.Mutex // guards what follows, and what servers and readers have
	scope *install.Scope
	// servers are the aggregated API servers that serve resources of scenarios, by their Services.
	servers map[string]*aggregated
	// readers are by the kind of their policy, the paramKind and the namespace.
	readers map[install.Param]*reader
	// validated and mutated are the last number of count for which a fence for the kind of policy was effective.
	validated, mutated int64
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
	if features.NoWarnings && kinds.ValidatingPolicies {
		return fmt.Errorf("%w: the API server sends no warnings, so it is not known which validating policies are effective", framework.ErrTimeout)
	}
	written := f.count.Load()
	current, err := f.create(ctx, kinds, features.subject())
	if err != nil {
		return fmt.Errorf("create fence: %w", err)
	}
	if err := f.waitFor(ctx, current); err != nil {
		return fmt.Errorf("wait until the API server uses the installed configurations: %w", err)
	}
	f.fenced(kinds, written)
	for _, sentinel := range current.objects {
		if err := f.Client.Delete(ctx, sentinel); err != nil {
			return fmt.Errorf("remove a configuration that only tested whether the API server uses the installed ones: %w", err)
		}
	}
	return nil
}

// waitFor waits until each sentinel leaves its mark.
func (f *Fences) waitFor(ctx context.Context, current *fence) error {
	interval := client.Soon
	if current.kinds.ValidatingPolicies || current.kinds.MutatingPolicies {
		interval = client.Later
	}
	var missing string
	var refusals refusals
	err := client.Poll(ctx, interval, f.Limit, func() (bool, error) {
		answer, lacks, err := f.send(ctx, current, probe(current.subject, current.scope.ID, map[string]any{"name": current.probe()}))
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
		return false, refusals.note(answer)
	})
	if err != nil && missing != "" && (errors.Is(err, framework.ErrTimeout) || ctx.Err() != nil) {
		return fmt.Errorf("%w: not effective yet: %s", err, missing)
	}
	if err != nil {
		return err
	}
	return f.waitForAggregated(ctx, current, interval)
}

// send sends a dry-run request of a fence to each API server, and returns which sentinels left no mark.
func (f *Fences) send(ctx context.Context, current *fence, request client.HTTPRequest) (answer framework.Result, missing string, err error) {
	recording := f.Install.Hooks.Record(current.scope.ID)
	defer recording.Stop()
	seen := 0
	return f.Client.SendToAll(ctx, request, func(answer framework.Result) string {
		calls := recording.Calls()
		since := calls[seen:]
		seen = len(calls)
		return current.missing(answer, since)
	})
}

// Check sends the dry-run request without sentinels. The error is as that of Wait.
func (f *Fences) Check(ctx context.Context) error {
	namespace, err := f.Namespace(ctx)
	if err != nil {
		return fmt.Errorf("create the namespace of the fences: %w", err)
	}
	var refusals refusals
	return client.Poll(ctx, client.Later, f.Limit, func() (bool, error) {
		answer, err := f.Client.Send(ctx, Probe(namespace))
		if err != nil {
			return false, err
		}
		return answer.Allowed(), refusals.note(answer)
	})
}

// refusals is since when the dry-run request is refused.
type refusals struct{ since time.Time }

// note returns the error of a dry-run request that was refused for some time. An API server or a Hook that has too much
// to do is not a cause to give up.
func (r *refusals) note(answer framework.Result) error {
	message := answer.Status.Message
	sentinel := strings.Contains(message, sentinelSuffix+`"`)
	if answer.Allowed() || client.Overloaded(answer.Status.Code) || sentinel && strings.Contains(message, "context deadline exceeded") {
		r.since = time.Time{}
		return nil
	}
	if r.since.IsZero() {
		r.since = time.Now()
	}
	switch {
	case time.Since(r.since) <= refusedLimit:
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
	kinds Kinds
	nonce string
	// label is a label that the namespace of the fences got for this fence, which its webhooks select,
	// or empty. An API server receives the changes of all namespaces in their order.
	label string
	// subject is the kind of the dry-run requests.
	subject Subject
	objects []client.Object
	// servers have the creations on the aggregated API servers that the fence is also for.
	servers map[string][]creation
}

// probe is the name of the objects of the dry-run requests. It contains the ID of the run.
func (f *fence) probe() string { return f.scope.ID + "-" + f.nonce }

// create writes the sentinels.
func (f *Fences) create(ctx context.Context, kinds Kinds, subject Subject) (*fence, error) {
	if _, err := f.Namespace(ctx); err != nil {
		return nil, err
	}
	current := &fence{scope: f.scope, kinds: kinds, subject: subject, nonce: fmt.Sprintf("n%d", f.count.Add(1)), servers: f.aggregatedServers()}
	if kinds.Namespaces {
		current.kinds.ValidatingWebhooks, current.label = true, install.ScenarioLabel+"-fence-"+current.nonce
		if err := f.labelNamespace(ctx, current.label); err != nil {
			return nil, err
		}
	}
	for _, manifest := range current.sentinels() {
		installed, err := f.Install.InstallAdmission(ctx, f.scope, manifest, nil)
		if err != nil {
			return nil, err
		}
		current.objects = append(current.objects, installed)
	}
	return current, nil
}

// Namespace returns the name of the namespace of the fences, and creates it, once: before something is installed that
// could refuse it.
func (f *Fences) Namespace(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.scope == nil {
		scope, err := f.Install.NewScope(ctx, runid.Prefix(f.Install.Run)+"-fence", hook.Conversion{})
		if err != nil {
			return "", err
		}
		scope.Probes = true
		f.scope = scope
	}
	return f.scope.ID, nil
}

// labelNamespace adds a label to the namespace of the fences.
func (f *Fences) labelNamespace(ctx context.Context, label string) error {
	namespace := client.Namespace(f.scope.ID)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a namespace controller or another fence can write it too
		current, err := f.Client.Get(ctx, namespace)
		if err == nil {
			_, err = f.Client.Update(ctx, namespace, install.WithLabels(current.Object, map[string]any{label: ""}))
		}
		return err
	})
}

// ProbeName is the name of the object of a Probe.
const ProbeName = "probe"

// Probe returns a dry-run request in a namespace: the creation of a ConfigMap.
func Probe(namespace string) client.HTTPRequest {
	return probe(Subjects()[0], namespace, map[string]any{"name": ProbeName})
}

// probe is Probe for another kind, with other metadata.
func probe(of Subject, namespace string, metadata map[string]any) client.HTTPRequest {
	apiVersion, kind := of.ToAPIVersionAndKind()
	return client.DryRun(of.GroupVersion().WithResource(of.Resource), namespace, map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
}

// ProbeRules returns the rules of a webhook or policy that match a Probe of each of Subjects.
func ProbeRules() []any {
	var rules []any
	for _, one := range Subjects() {
		rules = append(rules, map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{one.Group}, "apiVersions": []any{one.Version}, "resources": []any{one.Resource}, "scope": "Namespaced"})
	}
	return rules
}

// Kinds are the kinds of object that a fence is for. Namespaces are those whose labels changed: a
// namespace that is new is read from the API server, but of one that it knows selectors and policies
// can see old labels.
type Kinds struct{ MutatingWebhooks, ValidatingWebhooks, ValidatingPolicies, MutatingPolicies, Namespaces bool }

// KindsOf returns the kinds of manifests.
func KindsOf(manifests []map[string]any) Kinds {
	var found Kinds
	for _, manifest := range manifests {
		kind, err := object.Kind(manifest)
		if err == nil && kind.Group == "" && kind.Kind == "Namespace" {
			found.Namespaces = true
		}
		if err != nil || kind.Group != install.AdmissionGroup {
			continue
		}
		switch kind.Kind {
		case install.KindMutatingWebhooks:
			found.MutatingWebhooks = true
		case install.KindValidatingWebhooks:
			found.ValidatingWebhooks = true
		case install.KindValidatingPolicy, install.KindValidatingBinding:
			found.ValidatingPolicies = true
		case install.KindMutatingPolicy, install.KindMutatingBinding:
			found.MutatingPolicies = true
		}
	}
	return found
}

// markAnnotation is the mark of the sentinel of mutating policies, with the nonce of the fence. The mark of the sentinel of
// validating policies is a warning, and that of webhooks their call.
const markAnnotation = "fence-map"

// sentinelSuffix is the end of the names of the webhooks of sentinels.
const sentinelSuffix = ".admissiontest-fence"

// sentinels returns the manifests of a fence.
func (f *fence) sentinels() []map[string]any {
	var out []map[string]any
	for _, phase := range f.phases() {
		webhook := map[string]any{"name": f.webhook(phase), "rules": f.rules(), "timeoutSeconds": int64(5)}
		if f.label != "" {
			webhook["namespaceSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": f.label, "operator": "Exists"}}}
		}
		kind := install.KindValidatingWebhooks
		if phase == framework.Mutating {
			kind = install.KindMutatingWebhooks
		}
		out = append(out, map[string]any{"apiVersion": install.AdmissionGroup + "/v1", "kind": kind, "metadata": map[string]any{"name": f.nonce}, "webhooks": []any{webhook}})
	}
	if f.kinds.ValidatingPolicies {
		out = append(out, manifest(install.KindValidatingPolicy, f.nonce, map[string]any{
			"matchConstraints": map[string]any{"resourceRules": f.rules()},
			"validations":      []any{map[string]any{"expression": "false", "message": f.warning()}},
		}), manifest(install.KindValidatingBinding, f.nonce, map[string]any{"policyName": f.nonce, "validationActions": []any{"Warn"}}))
	}
	if f.kinds.MutatingPolicies {
		out = append(out, manifest(install.KindMutatingPolicy, f.nonce, map[string]any{
			"matchConstraints": map[string]any{"resourceRules": f.rules()}, "reinvocationPolicy": "Never", "failurePolicy": "Ignore",
			"mutations": []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
				"expression": fmt.Sprintf(`Object{metadata: Object.metadata{annotations: {%q: %q}}}`, markAnnotation, f.nonce),
			}}},
		}), manifest(install.KindMutatingBinding, f.nonce, map[string]any{"policyName": f.nonce}))
	}
	return out
}

func manifest(kind, name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": install.AdmissionGroup + "/v1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}
}

// phases returns the phases that have a webhook.
func (f *fence) phases() []framework.Phase {
	var all []framework.Phase
	if f.kinds.MutatingWebhooks {
		all = append(all, framework.Mutating)
	}
	if f.kinds.ValidatingWebhooks {
		all = append(all, framework.Validating)
	}
	return all
}

func (f *fence) webhook(phase framework.Phase) string {
	return f.nonce + "." + string(phase) + sentinelSuffix
}

func (f *fence) warning() string { return "fence policy " + f.nonce }

// deniedByPolicy reports whether a ValidatingAdmissionPolicy refused a request. All of them are evaluated before that, so
// the warnings of the others have arrived.
func deniedByPolicy(answer framework.Result) bool {
	return strings.Contains(answer.Status.Message, ": ValidatingAdmissionPolicy '") && strings.Contains(answer.Status.Message, " denied request: ")
}

// missing returns the sentinels that left no mark on a dry-run request with a response and calls of Hooks, or "".
func (f *fence) missing(answer framework.Result, calls framework.Trace) string {
	if !answer.Allowed() && !deniedByPolicy(answer) {
		return fmt.Sprintf("all: the API server refused the dry-run request: %s", answer.Status.Message)
	}
	var missing []string
	for _, phase := range f.phases() {
		if !slices.ContainsFunc(calls, func(call framework.Call) bool {
			name, _, _ := unstructured.NestedString(call.Request(), "object", "metadata", "name")
			return call.Webhook == f.webhook(phase) && name == f.probe() // not that of another fence
		}) {
			missing = append(missing, fmt.Sprintf("fence %s %s", phase, f.nonce))
		}
	}
	if f.kinds.ValidatingPolicies && !slices.ContainsFunc(answer.Warnings, func(warning string) bool { return strings.HasSuffix(warning, f.warning()) }) {
		missing = append(missing, f.warning())
	}
	annotation, _, _ := unstructured.NestedString(answer.Fields(), "metadata", "annotations", markAnnotation)
	if f.kinds.MutatingPolicies && annotation != f.nonce {
		missing = append(missing, "fence mutating policy")
	}
	return strings.Join(missing, ", ")
}

// maxCreations limits how many different creations are tried on an aggregated API server: it can refuse some.
const maxCreations = 8

// aggregated is an aggregated API server, which has caches of its own.
type aggregated struct {
	// creations are dry runs of creations, without the name. One that the API server allows shows which
	// sentinels are effective there.
	creations []creation
	// err is why it is not known what is effective there, or nil.
	err error
}

type creation struct {
	resource client.Resource
	object   map[string]any
}

// Note notes the API server that a request of a scenario is for. If that is an aggregated one, Wait
// also waits for it from then on.
func (f *Fences) Note(request client.Request) {
	server := f.Client.Resources.Aggregated(request.Resource.GroupVersion())
	if server == "" || request.Subresource != "" || f.Install.Shared && !request.Resource.Namespaced {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.servers == nil {
		f.servers = map[string]*aggregated{}
	}
	if f.servers[server] == nil {
		f.servers[server] = &aggregated{}
	}
	known := f.servers[server]
	switch {
	case len(known.creations) >= maxCreations:
	case request.Verb == framework.VerbCreate && request.Object != nil:
		known.creations = slices.Insert(known.creations, 0, creation{request.Resource, (framework.Result{Object: request.Object}).Fields()})
	case len(known.creations) == 0:
		known.creations = []creation{{request.Resource, map[string]any{"apiVersion": request.Kind.GroupVersion().String(), "kind": request.Kind.Kind}}}
	}
}

// Effective returns an error if it is not known whether what was installed is effective for a request, because
// Wait has waited in vain for the aggregated API server that serves the resource.
func (f *Fences) Effective(request client.Request) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.servers[f.Client.Resources.Aggregated(request.Resource.GroupVersion())]; known != nil {
		return known.err
	}
	return nil
}

// waitForAggregated waits for the aggregated API servers that are noted. If one does not use the sentinels in
// time, requests to it fail from then on, and others do not.
func (f *Fences) waitForAggregated(ctx context.Context, current *fence, interval time.Duration) error {
	for _, name := range slices.Sorted(maps.Keys(current.servers)) {
		missing := ""
		err := client.Poll(ctx, interval, f.Limit, func() (bool, error) {
			var err error
			for _, one := range current.servers[name] {
				_, missing, err = f.send(ctx, current, one.dryRun(current))
				if err != nil || missing == "" {
					break
				}
			}
			return missing == "", errors.Join(err, f.HooksErr())
		})
		if ctx.Err() != nil || f.HooksErr() != nil {
			return errors.Join(err, f.HooksErr())
		}
		if err != nil {
			f.mu.Lock()
			f.servers[name].err = fmt.Errorf("wait until the aggregated API server %s uses the installed configurations: %w: not effective yet: %s; it may lack a right to read them (see `admissiontest rbac --aggregated`)", name, err, missing)
			f.mu.Unlock()
		}
	}
	return nil
}

// aggregatedServers returns the creations on the aggregated API servers to wait for.
func (f *Fences) aggregatedServers() map[string][]creation {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string][]creation{}
	for name, known := range f.servers {
		if known.err == nil {
			found[name] = slices.Clone(known.creations)
		}
	}
	return found
}

// dryRun returns the request.
func (c creation) dryRun(of *fence) client.HTTPRequest {
	object, namespace := maps.Clone(c.object), ""
	object["metadata"] = map[string]any{"name": of.probe()}
	if c.resource.Namespaced {
		namespace = of.scope.ID
	}
	return client.DryRun(c.resource.GroupVersionResource, namespace, object)
}

// rules returns the rules of the sentinels, which match all dry runs.
func (f *fence) rules() []any {
	all := ProbeRules()
	for _, name := range slices.Sorted(maps.Keys(f.servers)) {
		for _, one := range f.servers[name] {
			all = append(all, map[string]any{
				"operations": []any{"CREATE"}, "apiGroups": []any{one.resource.Group}, "apiVersions": []any{one.resource.Version}, "resources": []any{one.resource.Resource},
			})
		}
	}
	return all
}

// The limits of the wait for the webhooks under test.
const (
	// answerTimeout limits one attempt.
	answerTimeout = 5 * time.Second
	// answerInterval keeps the log of a webhook short.
	answerInterval = 100 * time.Millisecond
)

// Webhooks waits for the webhooks under test that Hooks call: see install.Endpoints. One that the API server calls by its
// Service is not waited for. The exported fields are required.
type Webhooks struct {
	Endpoints install.Endpoints
	// Run is the ID of the run.
	Run string
	// Limit limits the wait for each webhook.
	Limit time.Duration
	// Progress receives a line for each longer action.
	Progress func(string)

	mu       sync.Mutex
	answered map[string]bool // by URL
}

// Wait returns when each webhook under test in the configurations has accepted a connection, with a certificate that
// Hooks trust. Each URL is asked once in a run. The error says which webhook does not answer, and why.
func (w *Webhooks) Wait(ctx context.Context, manifests []map[string]any) error {
	for _, manifest := range manifests {
		list, _ := manifest["webhooks"].([]any)
		for _, item := range list {
			fields, _ := item.(map[string]any)
			clientConfig, _ := fields["clientConfig"].(map[string]any)
			_, known := w.Endpoints.ByAddress[install.AddressOf(clientConfig)]
			to, service := w.Endpoints.Upstream(clientConfig), install.ServiceOf(clientConfig)
			if service.Namespace != "" && to == nil && w.Endpoints.URLs && !strings.HasPrefix(service.Namespace, runid.Prefix(w.Run)) {
				return fmt.Errorf("call the webhook under test: Service %[1]s: an API server on this machine cannot call Services: give the URL of one that runs elsewhere with --endpoint %[1]s=URL", service)
			}
			if !known || to == nil || !w.first(to.URL) {
				continue
			}
			if err := w.waitFor(ctx, install.AddressOf(clientConfig), to); err != nil {
				return err
			}
		}
	}
	return nil
}

// first reports whether a URL was not asked yet.
func (w *Webhooks) first(address string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answered == nil {
		w.answered = map[string]bool{}
	}
	asked := w.answered[address]
	w.answered[address] = true
	return !asked
}

func (w *Webhooks) waitFor(ctx context.Context, address string, to *hook.Upstream) error {
	w.Progress(fmt.Sprintf("waiting for the webhook under test: %s, called at %s", address, to.URL))
	var last error
	err := client.Poll(ctx, answerInterval, w.Limit, func() (bool, error) {
		last = handshake(ctx, to)
		return last == nil, nil
	})
	if errors.Is(err, framework.ErrTimeout) {
		// This error is not an ErrTimeout: the webhook is to blame, not the API server.
		return fmt.Errorf("wait for the webhook under test: %s, called at %s, does not answer within %s: %v; start it before the run, at the address that --endpoint gives, "+
			"with a certificate that is valid for the host that is called and signed by the caBundle or by --endpoint-ca %s=FILE; a PROGRAM can use the one in {cert-dir}", address, to.URL, w.Limit, last, address)
	}
	return err
}

// handshake connects to a webhook. Its certificate must be valid for the host of the URL or for its Service.
func handshake(ctx context.Context, to *hook.Upstream) (err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	address, err := url.Parse(to.URL)
	if err != nil {
		return err
	}
	var roots *x509.CertPool // nil means the CAs of this machine
	if len(to.CABundle) > 0 {
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(to.CABundle)
	}
	port := address.Port()
	if port == "" {
		port = fmt.Sprint(install.DefaultPort)
	}
	for _, name := range []string{address.Hostname(), to.ServiceName} {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}}
		var connection net.Conn
		if connection, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(address.Hostname(), port)); err == nil {
			return connection.Close()
		}
		if to.ServiceName == "" || !errors.As(err, new(x509.HostnameError)) {
			return err
		}
	}
	return err
}
