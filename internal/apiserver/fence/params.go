package fence

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// The limits of the wait for a parameter. An API server makes a new list of the kinds that it serves every 30
// seconds (k8s.io/apiserver/pkg/server/options/admission.go). Once it knows the kind, a change of a
// parameter takes milliseconds. After a kind whose parameters were not seen, others of it are not waited for.
const (
	kindLimit  = 50 * time.Second
	paramLimit = 10 * time.Second
	againLimit = time.Second
)

// paramsLabel is the label of a probe that a reader answers, a mutating one by paramAnnotation. The probe has the name
// of the parameter in nameAnnotation.
const (
	paramsLabel     = "admissiontest.dev/params"
	paramAnnotation = "fence-param"
	nameAnnotation  = "fence-param-name"
)

// reader is a policy with a paramKind, or one of its bindings, which names every parameter in one
// namespace. Its answer to a probe is the version in which the plugin sees one of them, as a warning or as
// an annotation.
type reader struct {
	once sync.Once
	err  error
	// name is the name of the policy, without prefix, or the value of paramsLabel for the binding.
	name string
	// written is true when it exists, and effective is true when a fence was effective after that. Failed is
	// true after a wait for it ran out. They are guarded by Fences.mu.
	written, effective, failed bool
	// seen is true after the policy saw a parameter of the kind. It is guarded by Fences.mu.
	seen bool
}

// readerOf returns the reader with a key.
func (f *Fences) readerOf(key install.Param) *reader {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers == nil {
		f.readers = map[install.Param]*reader{}
	}
	if f.readers[key] == nil {
		f.readers[key] = &reader{name: install.ReaderPrefix + strconv.FormatInt(f.count.Add(1), 10)}
	}
	return f.readers[key]
}

// Watch makes the API server read parameters of a kind in a namespace until the run ends. WaitForParams needs
// it; if it was called before a fence, it does not need another one.
//
// It also keeps the informer of the kind running between the scenarios of a run: a built-in kind has none
// any more after the last policy with this paramKind (docs/findings.md).
func (f *Fences) Watch(ctx context.Context, p install.Param) error {
	binding := f.binding(p)
	binding.once.Do(func() {
		binding.err = f.write(ctx, p, binding)
		f.mu.Lock()
		defer f.mu.Unlock()
		binding.written = binding.err == nil
	})
	return binding.err
}

// written returns the readers that exist and for which there was no fence yet.
func (f *Fences) written(kinds Kinds) []*reader {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []*reader
	for key, one := range f.readers {
		of := kinds.ValidatingPolicies && key.Policy == install.KindValidatingPolicy || kinds.MutatingPolicies && key.Policy == install.KindMutatingPolicy
		if of && one.written && !one.effective {
			found = append(found, one)
		}
	}
	return found
}

// effective notes that there was a fence after readers were written.
func (f *Fences) effective(written []*reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range written {
		one.effective = true
	}
}

// binding returns the reader of a kind in a namespace.
func (f *Fences) binding(p install.Param) *reader {
	p.Object.Name = ""
	return f.readerOf(p)
}

// policy returns the reader of a kind.
func (f *Fences) policy(p install.Param) *reader {
	return f.readerOf(install.Param{Policy: p.Policy, Kind: p.Kind})
}

// write creates a reader of a namespace, and its policy if it is the first one of the kind. Every parameter of
// the namespace is selected, not one by its name: newer API servers read a parameter from storage if
// its name is not in the cache.
func (f *Fences) write(ctx context.Context, p install.Param, binding *reader) error {
	scope, err := f.namespace(ctx)
	if err != nil {
		return err
	}
	policy := f.policy(p)
	policy.once.Do(func() {
		_, policy.err = f.Install.InstallAdmission(ctx, scope, readerPolicy(p, policy.name), nil)
	})
	if policy.err != nil {
		return fmt.Errorf("read parameters of kind %s: %w", p.Kind.Kind, policy.err)
	}
	ref := map[string]any{"selector": map[string]any{}, "parameterNotFoundAction": "Allow"}
	if p.Object.Namespace != "" {
		ref["namespace"] = p.Object.Namespace
	}
	spec := map[string]any{
		"policyName": policy.name, "paramRef": ref,
		"matchResources": map[string]any{"objectSelector": map[string]any{"matchLabels": map[string]any{paramsLabel: binding.name}}},
	}
	if p.Policy == install.KindValidatingPolicy {
		spec["validationActions"] = []any{"Warn"}
	}
	if features := f.current(); features.NoWarnings && p.Policy == install.KindValidatingPolicy {
		spec["validationActions"] = []any{"Deny"}
	}
	if _, err = f.Install.InstallAdmission(ctx, scope, manifest(p.Policy+"Binding", binding.name, spec), nil); err != nil {
		return fmt.Errorf("read parameters of kind %s: %w", p.Kind.Kind, err)
	}
	return nil
}

func readerPolicy(p install.Param, name string) map[string]any {
	const version = `params.metadata.uid + " " + params.metadata.resourceVersion`
	spec := map[string]any{
		"paramKind": map[string]any{"apiVersion": p.Kind.GroupVersion().String(), "kind": p.Kind.Kind}, "failurePolicy": "Fail",
		"matchConstraints": map[string]any{
			"resourceRules":  ProbeRules(),
			"objectSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": paramsLabel, "operator": "Exists"}}},
		},
		"matchConditions": []any{map[string]any{"name": "named", "expression": fmt.Sprintf("params.metadata.name == object.metadata.annotations[%q]", nameAnnotation)}},
	}
	if p.Policy == install.KindValidatingPolicy {
		spec["validations"] = []any{map[string]any{"expression": "false", "messageExpression": `"param " + ` + version}}
		return manifest(p.Policy, name, spec)
	}
	spec["reinvocationPolicy"] = "Never"
	spec["mutations"] = []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
		"expression": fmt.Sprintf(`Object{metadata: Object.metadata{annotations: {%q: "param " + %s}}}`, paramAnnotation, version),
	}}}
	return manifest(p.Policy, name, spec)
}

// WaitForParams returns when the policy plugins of each API server that can be reached know the kinds of
// parameters, and see the parameters as they are now.
//
// The error is a framework.ErrTimeout if they do not.
func (f *Fences) WaitForParams(ctx context.Context, params []install.Param) error {
	kinds := Kinds{}
	for _, p := range params {
		if err := f.Watch(ctx, p); err != nil {
			return err
		}
		binding := f.binding(p)
		f.mu.Lock()
		if !binding.effective {
			kinds.ValidatingPolicies = kinds.ValidatingPolicies || p.Policy == install.KindValidatingPolicy
			kinds.MutatingPolicies = kinds.MutatingPolicies || p.Policy == install.KindMutatingPolicy
		}
		f.mu.Unlock()
	}
	if err := f.Wait(ctx, kinds); err != nil {
		return err
	}
	for _, p := range params {
		if err := f.waitForParam(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// waitForParam waits for one parameter, or for its kind.
func (f *Fences) waitForParam(ctx context.Context, p install.Param) error {
	binding, policy := f.binding(p), f.policy(p)
	f.mu.Lock()
	limit := paramLimit
	if policy.failed {
		limit = againLimit
	}
	f.mu.Unlock()
	var lacks string
	var known time.Time
	err := client.Poll(ctx, client.Later, kindLimit, func() (bool, error) {
		current, err := f.read(ctx, p)
		if err != nil {
			return false, err
		}
		_, lacks, err = f.Client.SendToAll(ctx, paramProbe(f.current().subject(), f.scope, binding.name, p.Object.Name), func(answer framework.Result) string {
			f.noteSeen(policy, answer)
			if deniedByAnother(answer) && (current != nil || f.hasSeen(policy) || strings.Contains(answer.Status.Message, noParams)) {
				answer.Status = metav1.Status{Code: http.StatusOK} // the warnings of the reader have arrived
			}
			return unseen(p, answer, current)
		})
		switch {
		case err != nil || lacks == "":
			return err == nil, err
		case known.IsZero() && !strings.Contains(lacks, kindUnknown):
			known = time.Now()
		case !known.IsZero() && time.Since(known) > limit:
			return false, fmt.Errorf("%w after %s", framework.ErrTimeout, limit)
		}
		return false, nil
	})
	if err == nil || lacks == "" || ctx.Err() != nil {
		return err
	}
	f.mu.Lock()
	policy.failed = true
	f.mu.Unlock()
	return fmt.Errorf("%w: %s: %s", err, lacks, whyUnseen(lacks))
}

// deniedByAnother reports whether a policy refused a request that is no reader, and knows its own paramKind.
func deniedByAnother(answer framework.Result) bool {
	message := answer.Status.Message
	return deniedByPolicy(answer) && !strings.Contains(message, "-"+install.ReaderPrefix) && !strings.Contains(message, kindUnknown)
}

// noteSeen notes that the policy of a reader saw a parameter. Then it knows the kind.
func (f *Fences) noteSeen(policy *reader, answer framework.Result) {
	if slices.ContainsFunc(answer.Warnings, seenParam.MatchString) {
		f.mu.Lock()
		defer f.mu.Unlock()
		policy.seen = true
	}
}

func (f *Fences) hasSeen(policy *reader) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return policy.seen
}

// current returns the Features that were detected.
func (f *Fences) current() Features {
	f.detecting.Lock()
	defer f.detecting.Unlock()
	return f.features
}

// read returns the parameter, or nil if there is none.
func (f *Fences) read(ctx context.Context, p install.Param) (*unstructured.Unstructured, error) {
	if p.Object.Name == "" {
		return nil, nil
	}
	found, err := f.Client.Get(ctx, p.Object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// paramProbe is a Probe that one reader answers, about the parameter with a name.
func paramProbe(of Subject, scope *install.Scope, reader, name string) client.HTTPRequest {
	return probe(of, scope, map[string]any{paramsLabel: reader}, map[string]any{nameAnnotation: name})
}

// kindUnknown is a part of the refusal of a policy whose paramKind the plugin does not know.
const kindUnknown = "failed to find resource referenced by paramKind"

// noParams is a part of the refusal of a policy that knows its paramKind, and finds no parameter in the namespace of the
// probe. Policies of scenarios that run alone are asked too.
const noParams = "no params found for policy binding"

// whyUnseen returns why a parameter is probably not seen.
func whyUnseen(lacks string) string {
	if strings.Contains(lacks, kindUnknown) {
		return "kube-apiserver learns of a new kind every 30 s (kubernetes/kubernetes#124237)"
	}
	return "kube-apiserver stops reading a built-in kind of parameters when the last policy that uses it is removed, and reads it again only after a restart (kubernetes/kubernetes#130887, kubernetes/kubernetes#133827)"
}

// seenParam matches the answer of a reader.
var seenParam = regexp.MustCompile(`(?:^|: )param (\S+) (\S+)$`)

// unseen returns how an answer differs from the parameter, or from that there is none, or "".
func unseen(p install.Param, answer framework.Result, current *unstructured.Unstructured) string {
	denial := seenParam.FindStringSubmatch(answer.Status.Message)
	if !answer.Allowed() && denial == nil {
		why := answer.Status.Message
		if _, of, own := strings.Cut(why, "-"+install.ReaderPrefix); own { // not "policy X denied the request", which is of no interest
			if _, cause, ok := strings.Cut(of, "denied request: "); ok {
				why = cause
			}
		}
		return fmt.Sprintf("a %s cannot read parameters of kind %s: %s", p.Policy, p.Kind.Kind, why)
	}
	annotation, _, _ := unstructured.NestedString(answer.Fields(), "metadata", "annotations", paramAnnotation)
	var uid, version string
	for _, text := range append([]string{annotation, answer.Status.Message}, answer.Warnings...) {
		if found := seenParam.FindStringSubmatch(text); found != nil {
			uid, version = found[1], found[2]
		}
	}
	sees := func(how string) string {
		return fmt.Sprintf("a %s %s %s", p.Policy, how, p.Kind.Kind+" "+p.Object.Name)
	}
	switch {
	case current == nil && uid == "":
		return ""
	case current == nil:
		return sees("still has the parameter") + ", which does not exist any more"
	case uid == "":
		return sees("does not see the parameter")
	case uid != string(current.GetUID()) || !atLeast(version, current.GetResourceVersion()):
		return sees("sees an old version of the parameter")
	}
	return ""
}

// atLeast reports whether a resource version is another one or a later one. etcd's resource versions are numbers.
func atLeast(version, wanted string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(wanted, 10, 64)
	return version == wanted || errA == nil && errB == nil && a >= b
}
