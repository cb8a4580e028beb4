package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// Subject is a kind of namespaced object that can be created with metadata alone: for dry-run requests.
type Subject struct {
	schema.GroupVersionKind
	// Resource is the resource of the kind.
	Resource string
}

// Subjects returns the kinds of dry-run requests, the usual one first. An API server can store some kinds without
// admission.
func Subjects() []Subject {
	of := func(group, kind, resource string) Subject {
		return Subject{schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, resource}
	}
	return []Subject{
		of("", "ConfigMap", "configmaps"), of("", "Secret", "secrets"), of("coordination.k8s.io", "Lease", "leases"), of("rbac.authorization.k8s.io", "Role", "roles"),
	}
}

// Features are what an API server does for requests in general. The zero value does everything.
type Features struct {
	// Subject is the kind of the dry-run requests. The zero value means the first of Subjects.
	Subject Subject
	// NotAdmitted are the Subjects that no webhook is called for.
	NotAdmitted []Subject
	// NoWarnings is true if warnings of webhooks do not arrive.
	NoWarnings bool
	// NotNarrowed is true if the webhook was called for a request outside of the namespace that it selects.
	NotNarrowed bool
	// Effective is how long it took until a new webhook configuration was effective. 0 if that is not known.
	Effective time.Duration
}

// subject returns the kind of the dry-run requests.
func (f Features) subject() Subject {
	if f.Subject.Resource == "" {
		return Subjects()[0]
	}
	return f.Subject
}

const (
	featureWebhook = "features.admissiontest.dev"
	featureMark    = "admissiontest probes the API server"
)

// notAdmittedLimit is how long a webhook is not called for a kind, after it was called for another one, before the
// kind counts as not admitted.
const notAdmittedLimit = 2 * time.Second

// Detect finds the Features of the API server by a webhook and dry-run requests, once. If the webhook is not called, it
// finds nothing.
func (f *Fences) Detect(ctx context.Context) (Features, error) {
	f.detecting.Lock()
	defer f.detecting.Unlock()
	if f.detected {
		return f.features, nil
	}
	if _, err := f.Namespace(ctx); err != nil {
		return Features{}, err
	}
	recording := f.Install.Hooks.Record(f.scope.ID)
	defer recording.Stop()
	began := time.Now()
	installed, err := f.Install.InstallAdmission(ctx, f.scope, map[string]any{
		"apiVersion": install.AdmissionGroup + "/v1", "kind": install.KindValidatingWebhooks, "metadata": map[string]any{"name": "features"},
		"webhooks": []any{map[string]any{"name": featureWebhook, "rules": ProbeRules(), "failurePolicy": "Ignore", "timeoutSeconds": int64(5)}},
	}, map[string]hook.Script{featureWebhook: {Replies: []hook.Reply{{Warnings: []string{featureMark}}}}})
	if err != nil {
		return Features{}, err
	}
	found, err := f.tryEach(ctx, recording, began)
	if err == nil {
		f.features, f.detected = found, true
	}
	return found, errors.Join(err, f.Client.Delete(ctx, installed))
}

// callsOutside reports whether a webhook for the namespace of the fences is called for a request in the namespace
// default, which must not be touched.
func (f *Fences) callsOutside(ctx context.Context, of Subject, recording *hook.Recording) (bool, error) {
	before := len(recording.Calls())
	_, err := f.Client.Send(ctx, probe(of, metav1.NamespaceDefault, map[string]any{"name": ProbeName}))
	return len(recording.Calls()) > before, err
}

// tryEach sends dry-run requests for each of Subjects, until it is known which of them the webhook is called for.
func (f *Fences) tryEach(ctx context.Context, recording *hook.Recording, began time.Time) (Features, error) {
	var found Features
	var first time.Time // when the webhook was called first
	warned := false
	left := Subjects()
	err := client.Poll(ctx, client.Later, f.Limit, func() (bool, error) {
		found.NotAdmitted = nil
		for _, one := range slices.Clone(left) {
			before := len(recording.Calls())
			answer, err := f.Client.Send(ctx, probe(one, f.scope.ID, map[string]any{"name": ProbeName}))
			if err != nil {
				return false, err
			}
			called := len(recording.Calls()) > before
			switch {
			case called && first.IsZero():
				first, found.Subject, found.Effective = time.Now(), one, time.Since(began)
			case !called && answer.Allowed():
				found.NotAdmitted = append(found.NotAdmitted, one)
			}
			if called || !first.IsZero() && !answer.Allowed() { // which can mean that a right is missing
				left = slices.DeleteFunc(left, func(other Subject) bool { return other == one })
			}
			warned = warned || slices.ContainsFunc(answer.Warnings, func(text string) bool { return strings.HasSuffix(text, featureMark) })
		}
		return !first.IsZero() && (len(left) == 0 || time.Since(first) > notAdmittedLimit+found.Effective), nil
	})
	if errors.Is(err, framework.ErrTimeout) {
		return Features{}, nil // the fence says what is missing
	}
	if err == nil {
		found.NotNarrowed, err = f.callsOutside(ctx, found.subject(), recording)
	}
	if i := slices.Index(Subjects(), found.Subject); i > 0 && !slices.Contains(found.NotAdmitted, Subjects()[0]) {
		found.Subject = Subject{} // the usual one only was tried too early
	}
	found.NoWarnings = !warned
	return found, err
}

// hookTimeout is the timeoutSeconds of the webhooks that probe: how long an address
// that does not respond delays the response of the API server.
const hookTimeout = 2

// HookServers returns for each Hook server whether the API server can call it. It
// installs one validating webhook for each server, in one configuration, and sends
// dry-run requests until one of the servers is called or the limit is reached. All
// webhooks are called for one request, so the first request that reaches one server has
// tried all. The webhooks ignore failures and match nothing else.
//
// The caller removes what was installed in the scope. An error means that it could not
// find out.
func HookServers(ctx context.Context, installer *install.Installer, scope *install.Scope, servers []*hook.Server, limit time.Duration) ([]bool, error) {
	reached := make([]bool, len(servers))
	recordings := make([]*hook.Recording, len(servers))
	var webhooks []any
	for i, server := range servers {
		name := fmt.Sprintf("n%d.reach.admissiontest.dev", i)
		registered, err := server.Register(hook.Hook{Owner: scope.ID, Configuration: "reach", Webhook: name, Phase: framework.Validating})
		if err != nil {
			return reached, err
		}
		recordings[i] = server.Record(scope.ID)
		defer recordings[i].Stop()
		defer server.Unregister(scope.ID)
		webhooks = append(webhooks, map[string]any{
			"name": name, "rules": ProbeRules(), "failurePolicy": "Ignore", "timeoutSeconds": int64(hookTimeout),
			"clientConfig": install.URLClientConfig(registered),
		})
	}
	_, err := installer.InstallAdmission(ctx, scope, map[string]any{
		"apiVersion": install.AdmissionGroup + "/v1", "kind": install.KindValidatingWebhooks,
		"metadata": map[string]any{"name": "reach"}, "webhooks": webhooks,
	}, nil)
	if err != nil {
		return reached, err
	}
	var refused error
	err = client.Poll(ctx, client.Later, limit, func() (bool, error) {
		for _, subject := range slices.Backward(Subjects()) { // an API server can store some kinds without admission
			answer, err := installer.Client.Send(ctx, probe(subject, scope.ID, map[string]any{"name": ProbeName}))
			if err != nil {
				return false, err
			}
			refused = nil
			if !answer.Allowed() { // the last one is of the usual kind
				refused = fmt.Errorf("the API server refused the dry-run request: %d %w", answer.Status.Code, &apierrors.StatusError{ErrStatus: answer.Status})
			}
		}
		for i, recording := range recordings {
			reached[i] = len(recording.Calls()) > 0
		}
		return slices.Contains(reached, true), nil
	})
	if errors.Is(err, framework.ErrTimeout) {
		err = refused // without a refusal the API server just cannot call any of the servers
	}
	return reached, err
}
