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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/fence"
	"github.com/admissiontest/admissiontest/internal/target"
)

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
