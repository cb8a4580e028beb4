package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// InstallForRun installs objects for all scenarios of the run: webhook configurations, policies and
// bindings, CustomResourceDefinitions, and objects of other kinds, which are the parameters of these
// policies. It is called at most once, before the first scenario.
//
//   - Webhook configurations, policies and bindings get a prefix, and are narrowed to the namespaces of
//     all scenarios and to the cluster-scoped objects of the run. A webhook of a Service is
//     redirected as its Endpoint says. A call through a Hook belongs to the scenario that sent the request.
//   - Parameters are installed as they are, with their namespaces: only if the API server has no other clients.
//   - CustomResourceDefinitions keep their names. If the API server already has the same one, the run
//     uses it.
//
// The error is a framework.ManifestError.
func (i *Installer) InstallForRun(ctx context.Context, manifests []map[string]any) error {
	scope := &Scope{ID: projectID(i.Run), Open: !i.Shared}
	i.mu.Lock()
	i.scopes, i.project = append(i.scopes, scope), scope
	i.mu.Unlock()
	for rank := range projectRanks {
		for index, manifest := range manifests {
			kind, err := object.Kind(manifest)
			if err == nil && projectRank(kind) == rank {
				err = i.installForRun(ctx, scope, kind, manifest)
			}
			if err != nil {
				failed := &framework.ManifestError{Index: index, Err: err}
				if lost := (*framework.ManifestError)(nil); errors.As(err, &lost) {
					failed.Field = lost.Field
				}
				return failed
			}
		}
	}
	return nil
}

// projectID returns the ID of what is installed for a run: the prefix of names, and the value of
// ScenarioLabel.
func projectID(run string) string { return runid.Installed(run) }

// The ranks of objects for their installation: what others refer to comes first.
const projectRanks = 4

func projectRank(kind schema.GroupVersionKind) int {
	switch {
	case isCRD(kind):
		return 0
	case !IsAdmission(kind):
		return 1
	case !strings.HasSuffix(kind.Kind, "Binding"):
		return 2
	default:
		return 3
	}
}

func isCRD(kind schema.GroupVersionKind) bool {
	return kind.Group == "apiextensions.k8s.io" && kind.Kind == "CustomResourceDefinition"
}

// installForRun installs one object for the run.
func (i *Installer) installForRun(ctx context.Context, scope *Scope, kind schema.GroupVersionKind, manifest map[string]any) error {
	res, err := i.Client.Resources.Of(kind)
	if err != nil {
		return err
	}
	namespace, _, _ := unstructured.NestedString(manifest, "metadata", "namespace")
	switch {
	case IsAdmission(kind):
		return i.installAdmissionForRun(ctx, scope, kind, res, manifest)
	case isCRD(kind):
	case i.Shared:
		return fmt.Errorf("install %s for all scenarios: %w: on an API server with other clients, give a parameter in the scenarios; else %s", object.Describe(manifest), framework.ErrForeign, disposable)
	case res.Namespaced && namespace != "":
		if _, err := i.Client.Get(ctx, client.Namespace(namespace)); apierrors.IsNotFound(err) {
			err = i.Install(ctx, scope, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}, nil)
			if err != nil {
				return err
			}
		}
	}
	return i.installOwn(ctx, scope, res, manifest)
}

func (i *Installer) installAdmissionForRun(ctx context.Context, scope *Scope, kind schema.GroupVersionKind, res client.Resource, manifest map[string]any) error {
	if err := matchable(manifest); err != nil {
		return err
	}
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	installed := client.Object{Resource: res, Name: scope.ID + "-" + name, Manager: scope.ID}
	connected, err := withWebhooks(kind, manifest, func(webhook map[string]any, h hook.Hook) (map[string]any, error) {
		h.Owner, h.Shared = scope.ID, true
		return i.forward(webhook, h)
	})
	if err != nil {
		return err
	}
	connected = narrow(kind, connected, toRun(i.Run, !i.Shared))
	if _, err = i.createOrReplace(ctx, installed, WithLabels(connected, i.Labels(scope.ID))); err == nil {
		scope.remember(kind, name, manifest)
	}
	return err
}

// toRun returns the narrowing to all scenarios of a run: not to the namespaces in which the run itself
// works. If the API server ends with the run, all other namespaces belong to scenarios, except the namespaces of
// Kubernetes, and so do cluster-scoped objects, except the Namespaces that the run creates for scenarios.
func toRun(run string, ends bool) narrowing {
	prefix := runid.Prefix(run)
	to := narrowing{id: projectID(run), labels: []any{requirement(ScenarioLabel, "NotIn", prefix+"-fence", prefix+"-ready", prefix+"-reach", projectID(run))}}
	if !ends {
		to.labels = append(to.labels, requirement(RunLabel, "In", run), requirement(ScenarioLabel, "Exists"))
		return to
	}
	to.labels = append(to.labels, requirement(corev1.LabelMetadataName, "NotIn", "default", "kube-node-lease", "kube-public", "kube-system"))
	to.clusterScoped = true
	to.condition = fmt.Sprintf(`!(request.operation == "CREATE" && request.resource.group == "" && request.resource.resource == "namespaces" && has(object.metadata.name) && object.metadata.name.matches(%q))`, "^"+prefix+"-[0-9]+$")
	return to
}

// matchable returns a framework.ManifestError if a namespaceSelector only selects namespaces by their names.
// Together with the narrowing it would never match, and no scenario would notice.
func matchable(manifest map[string]any) error {
	selectors := map[string]any{}
	for k, item := range asList(manifest["webhooks"]) {
		selectors[fmt.Sprintf("webhooks[%d].namespaceSelector", k)] = cloneMap(item)["namespaceSelector"]
	}
	for _, field := range []string{"matchConstraints", "matchResources"} {
		selectors["spec."+field+".namespaceSelector"] = cloneMap(cloneMap(manifest["spec"])[field])["namespaceSelector"]
	}
	for field, item := range selectors {
		selector := cloneMap(item)
		names := texts([]any{cloneMap(selector["matchLabels"])[corev1.LabelMetadataName]})
		for _, item := range asList(selector["matchExpressions"]) {
			if expression := cloneMap(item); expression["key"] == corev1.LabelMetadataName && expression["operator"] == "In" {
				names = append(names, texts(expression["values"])...)
			}
		}
		if len(names) > 0 {
			return &framework.ManifestError{Field: field, Err: fmt.Errorf("%s only selects namespace %s, and scenarios have their own namespaces: change it for the test, or leave the object out", field, strings.Join(names, ", "))}
		}
	}
	return nil
}
