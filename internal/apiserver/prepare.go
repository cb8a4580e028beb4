package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/fence"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Foreign returns the webhook configurations, policies and bindings on the API server that no run of
// admissiontest installed. It leaves out a kind that the user may not list.
func (t *Target) Foreign(ctx context.Context) ([]map[string]any, error) {
	var all []map[string]any
	for _, kind := range install.AdmissionKinds() {
		res, err := t.client.Resources.Of(schema.GroupVersionKind{Group: install.AdmissionGroup, Version: "v1", Kind: kind})
		if err != nil {
			continue // the API server does not serve it
		}
		list, err := t.client.ListObjects(ctx, res, metav1.ListOptions{LabelSelector: "!" + RunLabel})
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			_, labelled := item.GetLabels()[RunLabel] // an API server can ignore selectors
			if labelled || runid.Has(item.GetName(), runid.Prefix(t.RunID())) {
				continue // a run installed it, or a request of a scenario created it
			}
			item.SetAPIVersion(install.AdmissionGroup + "/v1")
			item.SetKind(kind)
			all = append(all, item.Object)
		}
	}
	return all, nil
}

// Prepare creates what the run needs on an API server with other clients before the first Sandbox, and sends
// the dry-run request of the fence. Then it probes what the API server lacks. The error says why the API server refuses one of these, as it then would
// for every Sandbox: it is an apierrors.APIStatus if a webhook or policy of another client refuses.
func (t *Target) Prepare(ctx context.Context) error {
	if err := t.noOtherRun(ctx); err != nil {
		return err
	}
	if t.sign != nil {
		if err := t.sign.open(ctx); err != nil {
			return err
		}
	}
	if err := t.fences.Check(ctx); err != nil {
		return err
	}
	if err := t.needDryRun(ctx); err != nil {
		return err
	}
	return t.probe(ctx)
}

// noOtherRun returns an error if another run is alive on an API server without other clients: configurations of
// scenarios that run alone would decide about its requests.
func (t *Target) noOtherRun(ctx context.Context) error {
	if !t.options.Disposable || t.sign == nil {
		return nil
	}
	found, err := runs(ctx, t.client)
	for id, run := range found {
		if id != t.options.Run && run.alive() {
			return fmt.Errorf("run %s is active on this API server, which one run uses at a time: wait for its end", run)
		}
	}
	return err
}

// probed is the user that the probe of impersonation acts as.
const probed = "admissiontest:probe"

// Lacks returns what the API server was seen to lack. See target.Optional.
func (t *Target) Lacks() target.Lacks {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lacks
}

// probe finds what the API server lacks, once, each by a small request that changes nothing, and reports it. What cannot be
// found out, because a right is missing for instance, counts as there.
func (t *Target) probe(ctx context.Context) error {
	if t.Lacks() != nil {
		return nil // it is done
	}
	features, err := t.fences.Detect(ctx)
	if err != nil {
		return err
	}
	lacks := target.Lacks{}
	if features.NoWarnings {
		lacks[target.Warnings] = "the response to a request did not have the warning of a webhook that was called for it"
	}
	if features.NotNarrowed {
		lacks[target.Narrowing] = "a webhook that selects only a namespace of the run was called for a request in namespace default"
	}
	for _, one := range features.NotAdmitted {
		lacks[target.AdmissionOf(one.GroupKind())] = fmt.Sprintf("no webhook was called for the creation of a %s", one.Kind)
	}
	why, err := t.probeImpersonation(ctx)
	if err != nil {
		return err
	}
	if why != "" {
		lacks[target.Impersonation] = why
	}
	t.mu.Lock()
	t.lacks = lacks
	t.mu.Unlock()
	for _, line := range describe(lacks, features.Effective, t.info) {
		t.options.Progress(line)
	}
	return nil
}

// describe returns the lines about what an API server lacks, and what that costs, and one about what it has.
func describe(lacks target.Lacks, effective time.Duration, info framework.TargetInfo) []string {
	first := "the API server has dry run" // without it, nothing of this is found out
	if effective > 0 {
		first += fmt.Sprintf("; a configuration is effective after %s", effective.Round(time.Millisecond))
	}
	lines := []string{first}
	for _, feature := range slices.Sorted(maps.Keys(lacks)) {
		costs := "scenarios that need it are unsupported"
		if feature == target.Narrowing {
			costs = "scenarios run one at a time"
		}
		lines = append(lines, fmt.Sprintf("the API server lacks %s (%s): %s", feature, lacks[feature], costs))
	}
	if info.FeatureGates == nil {
		lines = append(lines, "the API server shows no metrics: a failure that a disabled feature gate or plugin can explain is inconclusive")
	}
	missing := slices.DeleteFunc(framework.Capabilities(), func(one string) bool { return slices.Contains(info.Capabilities, one) })
	if len(missing) > 0 {
		lines = append(lines, fmt.Sprintf("this run lacks %s: scenarios that need them are unsupported", strings.Join(missing, ", ")))
	}
	return lines
}

// needDryRun returns a target.ErrNoDryRun if the API server stored the object of the dry-run request of the fence,
// and removes the object.
func (t *Target) needDryRun(ctx context.Context) error {
	namespace, err := t.fences.Namespace(ctx)
	if err != nil {
		return err
	}
	stored := fence.Probe(namespace)
	answer, err := t.client.Send(ctx, client.HTTPRequest{Method: http.MethodGet, Path: stored.Path + "/" + fence.ProbeName})
	if err != nil || !answer.Allowed() {
		return err
	}
	_, err = t.client.Send(ctx, client.HTTPRequest{Method: http.MethodDelete, Path: stored.Path + "/" + fence.ProbeName})
	return errors.Join(fmt.Errorf("%w: a ConfigMap that was created with dryRun=All in namespace %s was stored; the API server, or a proxy in front of it, ignores the query parameter dryRun", target.ErrNoDryRun, namespace), err)
}

func (t *Target) probeImpersonation(ctx context.Context) (string, error) {
	answer, err := t.client.Send(ctx, client.HTTPRequest{
		Method: http.MethodPost, Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", ContentType: "application/json",
		Body: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`), User: &framework.User{Name: probed},
	})
	if err != nil {
		return "", err
	}
	message := answer.Status.Message
	switch {
	case answer.Status.Code == http.StatusForbidden && !strings.Contains(message, " cannot impersonate"), answer.Status.Code == http.StatusUnauthorized:
		return fmt.Sprintf("a request as user %s got %d %s", probed, answer.Status.Code, message), nil
	case !answer.Allowed():
		return "", nil // the run has no right, or the API server has no such review
	}
	name, _, _ := unstructured.NestedString(answer.Fields(), "status", "userInfo", "username")
	if name != "" && name != probed {
		return fmt.Sprintf("a request as user %s was carried out as %s", probed, name), nil
	}
	return "", nil
}

// Plugins returns the names of the enabled admission plugins, sorted: those that the API
// server reports as called in its metrics, after a create and an update that are dry runs
// and change nothing. Each plugin of Kubernetes handles one of these operations. The list
// is incomplete if there is an error too: a plugin that is not in it can be enabled.
func (t *Target) Plugins(ctx context.Context) ([]string, error) {
	const namespace = "default"
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "admissiontest-", "namespace": namespace},
	}}
	of := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}).GroupVersionKind()
	refused := ""
	for _, request := range []framework.Request{
		{Verb: framework.VerbCreate, Kind: object.GroupVersionKind(), Namespace: namespace, Object: object, DryRun: true},
		{Verb: framework.VerbPatch, Kind: of, Name: namespace, DryRun: true, HTTP: framework.HTTP{Patch: []byte("{}"), PatchType: types.MergePatchType}},
	} {
		result, err := t.Do(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("find the admission plugins: %w", err)
		}
		if !result.Allowed() {
			refused = fmt.Sprintf("%s was refused with %d %s", request, result.Status.Code, result.Status.Message)
		}
	}
	found, err := t.client.CalledPlugins(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the admission plugins: %w", err)
	}
	if refused != "" {
		return found, fmt.Errorf("find the admission plugins: a dry-run request did not reach all of them: %s", refused)
	}
	return found, nil
}
