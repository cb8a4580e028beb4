package fence

import (
	"context"
	"fmt"
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
// parameter takes milliseconds.
const (
	kindLimit  = 50 * time.Second
	paramLimit = 10 * time.Second
)

// paramsLabel is the label of a probe that a reader answers, a validating one by warnings, and a mutating one by annotations
// that begin with paramAnnotation. The reader answers about the parameters whose UID begins with the value of
// partAnnotation: a response has room for some twenty warnings.
const (
	paramsLabel     = "admissiontest.dev/params"
	paramAnnotation = "fence-param-"
	partAnnotation  = "fence-params"
	partSize        = 15
)

// reader is a policy with a paramKind, or one of its bindings, which names every parameter in one
// namespace. Its answer to a probe are the versions in which the plugin sees them.
type reader struct {
	once sync.Once
	err  error
	// name is the name of the policy, without prefix, or of the binding, and then the value of paramsLabel.
	name string
	// written is the number of Fences.count when it had been written. It is guarded by Fences.mu.
	written int64
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
	binding := f.readerOf(p)
	binding.once.Do(func() {
		if binding.err = f.write(ctx, p, binding.name); binding.err != nil {
			binding.err = fmt.Errorf("read parameters of kind %s: %w", p.Kind.Kind, binding.err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		binding.written = f.count.Add(1)
	})
	return binding.err
}

// fenced notes that a fence was effective for everything that was written until a number of count.
func (f *Fences) fenced(kinds Kinds, until int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kinds.ValidatingPolicies {
		f.validated = max(f.validated, until)
	}
	if kinds.MutatingPolicies {
		f.mutated = max(f.mutated, until)
	}
}

// write creates the reader of a namespace, and its policy if it is the first one of the kind.
func (f *Fences) write(ctx context.Context, p install.Param, name string) error {
	if _, err := f.Namespace(ctx); err != nil {
		return err
	}
	policy := f.readerOf(install.Param{Policy: p.Policy, Kind: p.Kind})
	policy.once.Do(func() {
		_, policy.err = f.Install.InstallAdmission(ctx, f.scope, readerPolicy(p, policy.name), nil)
	})
	if policy.err != nil {
		return policy.err
	}
	ref := map[string]any{"selector": map[string]any{}, "parameterNotFoundAction": "Allow"}
	if p.Namespace != "" {
		ref["namespace"] = p.Namespace
	}
	spec := map[string]any{
		"policyName": policy.name, "paramRef": ref,
		"matchResources": map[string]any{"objectSelector": map[string]any{"matchLabels": map[string]any{paramsLabel: name}}},
	}
	if p.Policy == install.KindValidatingPolicy {
		spec["validationActions"] = []any{"Warn"}
	}
	_, err := f.Install.InstallAdmission(ctx, f.scope, manifest(p.Policy+"Binding", name, spec), nil)
	return err
}

func readerPolicy(p install.Param, name string) map[string]any {
	spec := map[string]any{
		"paramKind": map[string]any{"apiVersion": p.Kind.GroupVersion().String(), "kind": p.Kind.Kind}, "failurePolicy": "Fail",
		"matchConstraints": map[string]any{
			"resourceRules":  ProbeRules(),
			"objectSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": paramsLabel, "operator": "Exists"}}},
		},
		"matchConditions": []any{map[string]any{"name": "part", "expression": fmt.Sprintf("params.metadata.uid.startsWith(object.metadata.annotations[%q])", partAnnotation)}},
	}
	if p.Policy == install.KindValidatingPolicy {
		spec["validations"] = []any{map[string]any{"expression": "false", "messageExpression": `"param " + params.metadata.uid + " " + params.metadata.resourceVersion`}}
		return manifest(p.Policy, name, spec)
	}
	spec["reinvocationPolicy"] = "Never"
	spec["mutations"] = []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
		"expression": fmt.Sprintf(`Object{metadata: Object.metadata{annotations: {%q + params.metadata.uid: params.metadata.resourceVersion}}}`, paramAnnotation),
	}}}
	return manifest(p.Policy, name, spec)
}

// WaitForParams returns when the policy plugins of each API server that can be reached know the kinds of
// parameters, and see the parameters as they are now, and no others.
//
// The error is a framework.ErrTimeout if they do not.
func (f *Fences) WaitForParams(ctx context.Context, params []install.Param) error {
	kinds := Kinds{}
	for _, p := range params {
		if err := f.Watch(ctx, p); err != nil {
			return err
		}
		binding := f.readerOf(p)
		f.mu.Lock()
		kinds.ValidatingPolicies = kinds.ValidatingPolicies || p.Policy == install.KindValidatingPolicy && binding.written > f.validated
		kinds.MutatingPolicies = kinds.MutatingPolicies || p.Policy == install.KindMutatingPolicy && binding.written > f.mutated
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

// waitForParam waits for the parameters of a kind in one namespace.
func (f *Fences) waitForParam(ctx context.Context, p install.Param) error {
	var lacks string
	var known time.Time
	err := client.Poll(ctx, client.Later, kindLimit, func() (_ bool, err error) {
		lacks, err = f.readParams(ctx, p)
		switch {
		case err != nil || lacks == "":
			return err == nil, err
		case known.IsZero() && !strings.Contains(lacks, kindUnknown):
			known = time.Now()
		case !known.IsZero() && time.Since(known) > paramLimit:
			return false, fmt.Errorf("%w after %s", framework.ErrTimeout, paramLimit)
		}
		return false, nil
	})
	if err == nil || lacks == "" || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %s: %s", err, lacks, whyUnseen(lacks))
}

// readParams returns how the parameters that the plugin sees differ from the parameters in the API server, or "".
func (f *Fences) readParams(ctx context.Context, p install.Param) (lacks string, err error) {
	current, err := f.Client.List(ctx, p.Resource, p.Namespace, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err): // a step has deleted the CustomResourceDefinition
		return "", nil
	case err != nil:
		return "", err
	}
	parts := []string{""}
	if len(current.Items) > partSize {
		parts = strings.Split("0123456789abcdef", "")
	}
	f.detecting.Lock()
	subject := f.features.subject()
	f.detecting.Unlock()
	for _, part := range parts {
		items := slices.DeleteFunc(slices.Clone(current.Items), func(item metav1.PartialObjectMetadata) bool { return !strings.HasPrefix(string(item.UID), part) })
		request := probe(subject, f.scope.ID, map[string]any{
			"name": ProbeName, "labels": map[string]any{paramsLabel: f.readerOf(p).name}, "annotations": map[string]any{partAnnotation: part},
		})
		_, lacks, err = f.Client.SendToAll(ctx, request, func(answer framework.Result) string { return unseen(p, answer, items) })
		if err != nil || lacks != "" {
			return lacks, err
		}
	}
	return "", nil
}

// kindUnknown is a part of the refusal of a policy whose paramKind the plugin does not know.
const kindUnknown = "failed to find resource referenced by paramKind"

// whyUnseen returns why a parameter is probably not seen.
func whyUnseen(lacks string) string {
	if strings.Contains(lacks, kindUnknown) {
		return "kube-apiserver learns of a new kind every 30 s (kubernetes/kubernetes#124237)"
	}
	return "kube-apiserver stops reading a built-in kind of parameters when the last policy that uses it is removed, and reads it again only after a restart (kubernetes/kubernetes#130887, kubernetes/kubernetes#133827)"
}

// seenParam matches the answer of a reader.
var seenParam = regexp.MustCompile(`(?:^|: )param (\S+) (\S+)$`)

// unseen returns how an answer differs from the parameters, or "". If a policy of a scenario
// that runs alone refused the request, the warnings of the reader have arrived: configuration errors of policies, such as
// a parameter that is missing in the namespace of the probe, come before match conditions.
func unseen(p install.Param, answer framework.Result, current []metav1.PartialObjectMetadata) string {
	why := answer.Status.Message
	_, own, isOwn := strings.Cut(why, "-"+install.ReaderPrefix)
	if !answer.Allowed() && (isOwn || strings.Contains(why, kindUnknown) || !deniedByPolicy(answer)) {
		if _, cause, ok := strings.Cut(own, "denied request: "); ok { // not "policy X denied the request", which is of no interest
			why = cause
		}
		return fmt.Sprintf("a %s cannot read parameters of kind %s: %s", p.Policy, p.Kind.Kind, why)
	}
	seen, _, _ := unstructured.NestedStringMap(answer.Fields(), "metadata", "annotations")
	versions := map[string]string{}
	for name, version := range seen {
		if uid, ok := strings.CutPrefix(name, paramAnnotation); ok {
			versions[uid] = version
		}
	}
	for _, text := range answer.Warnings {
		if found := seenParam.FindStringSubmatch(text); found != nil {
			versions[found[1]] = found[2]
		}
	}
	for _, item := range current {
		version, ok := versions[string(item.UID)]
		if !ok {
			return fmt.Sprintf("a %s does not see the parameter %s %s", p.Policy, p.Kind.Kind, item.Name)
		}
		if !atLeast(version, item.ResourceVersion) {
			return fmt.Sprintf("a %s sees an old version of the parameter %s %s", p.Policy, p.Kind.Kind, item.Name)
		}
		delete(versions, string(item.UID))
	}
	if len(versions) > 0 {
		return fmt.Sprintf("a %s still has a parameter of kind %s, which does not exist any more", p.Policy, p.Kind.Kind)
	}
	return ""
}

// atLeast reports whether a resource version is another one or a later one. etcd's resource versions are numbers.
func atLeast(version, wanted string) bool {
	a, errA := strconv.ParseUint(version, 10, 64)
	b, errB := strconv.ParseUint(wanted, 10, 64)
	return version == wanted || errA == nil && errB == nil && a >= b
}
