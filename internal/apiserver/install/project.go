package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
//   - Parameters get the prefix too: namespaced ones in the name of their namespace. Bindings refer to
//     the new names.
//   - CustomResourceDefinitions keep their names. If the API server already has the same one, the run
//     uses it.
//
// The error is a framework.ManifestError.
func (i *Installer) InstallForRun(ctx context.Context, manifests []map[string]any) error {
	p := &project{Installer: i, scope: &Scope{ID: projectID(i.Run)}, manifests: manifests}
	i.mu.Lock()
	i.scopes, i.project = append(i.scopes, p.scope), p.scope
	i.mu.Unlock()
	for rank := range projectRanks {
		for index, manifest := range manifests {
			kind, err := object.Kind(manifest)
			if err == nil && projectRank(kind) != rank {
				continue
			}
			if err == nil {
				err = p.install(ctx, kind, manifest)
			}
			if err != nil {
				failed := &framework.ManifestError{Index: index, Err: err}
				if narrowed := (*unmatchableError)(nil); errors.As(err, &narrowed) {
					failed.Field = narrowed.field
				}
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

// project is the installation for one run.
type project struct {
	*Installer
	scope     *Scope
	manifests []map[string]any
}

func (p *project) install(ctx context.Context, kind schema.GroupVersionKind, manifest map[string]any) error {
	res, err := p.Client.Resources.Of(kind)
	if err != nil {
		return err
	}
	switch {
	case isCRD(kind):
		return p.installShared(ctx, p.scope, res, manifest)
	case IsAdmission(kind):
		return p.installAdmission(ctx, kind, res, manifest)
	default:
		return p.installParam(ctx, res, manifest)
	}
}

func (p *project) installAdmission(ctx context.Context, kind schema.GroupVersionKind, res client.Resource, manifest map[string]any) error {
	if err := matchable(kind, manifest); err != nil {
		return err
	}
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	installed := client.Object{Resource: res, Name: p.scope.ID + "-" + name, Manager: p.scope.ID}
	authored := p.withParams(manifest)
	manifest, err := withWebhooks(kind, authored, func(webhook map[string]any, h hook.Hook) (map[string]any, error) {
		h.Owner, h.Shared = p.scope.ID, true
		return p.forward(webhook, h)
	})
	if err != nil {
		return err
	}
	manifest = narrow(p.Client.Resources, kind, manifest, toRun(p.Run, !p.Shared))
	if _, err = p.createOrReplace(ctx, installed, WithLabels(manifest, p.Labels(p.scope.ID))); err == nil {
		p.scope.remember(kind, name, authored)
	}
	return err
}

// installParam installs a parameter of policies.
func (p *project) installParam(ctx context.Context, res client.Resource, manifest map[string]any) error {
	if !res.Namespaced {
		name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
		return p.installOwn(ctx, p.scope, res, withName(manifest, p.scope.ID+"-"+name))
	}
	namespace, _, _ := unstructured.NestedString(manifest, "metadata", "namespace")
	namespace = p.scope.ID + "-" + namespace
	_, err := p.Client.Create(ctx, client.Namespace(namespace), map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace, "labels": p.Labels(p.scope.ID)},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return p.installOwn(ctx, p.scope, res, withMetadata(manifest, func(metadata map[string]any) { metadata["namespace"] = namespace }))
}

// withParams returns a copy of a binding that names the installed parameters.
func (p *project) withParams(binding map[string]any) map[string]any {
	ref, found, _ := unstructured.NestedMap(binding, "spec", "paramRef")
	if !found {
		return binding
	}
	namespace, _ := ref["namespace"].(string)
	name, _ := ref["name"].(string)
	installed := slices.ContainsFunc(p.manifests, func(param map[string]any) bool {
		kind, err := object.Kind(param)
		own := (&unstructured.Unstructured{Object: param})
		return err == nil && projectRank(kind) == 1 && own.GetNamespace() == namespace && (own.GetName() == name || name == "")
	})
	switch {
	case !installed:
		return binding
	case namespace != "":
		ref["namespace"] = p.scope.ID + "-" + namespace
	case name != "":
		ref["name"] = p.scope.ID + "-" + name
	}
	out, spec := maps.Clone(binding), cloneMap(binding["spec"])
	spec["paramRef"] = ref
	out["spec"] = spec
	return out
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

// unmatchableError is the error of a configuration that matches no namespace of a run.
type unmatchableError struct {
	field string
	names []string
}

// Error names the namespaces.
func (e *unmatchableError) Error() string {
	return fmt.Sprintf("%s only selects namespace %s, and scenarios have their own namespaces: change it for the test, or leave the object out", e.field, strings.Join(e.names, ", "))
}

// matchable returns an unmatchableError if a namespaceSelector only selects namespaces by their names.
// Together with the narrowing it would never match, and no scenario would notice.
func matchable(kind schema.GroupVersionKind, manifest map[string]any) error {
	selectors := map[string]any{}
	for k, item := range asList(manifest["webhooks"]) {
		webhook, _ := item.(map[string]any)
		selectors[fmt.Sprintf("webhooks[%d].namespaceSelector", k)] = webhook["namespaceSelector"]
	}
	if kind.Kind != KindMutatingWebhooks && kind.Kind != KindValidatingWebhooks {
		for _, field := range []string{"matchConstraints", "matchResources"} {
			selector, _, _ := unstructured.NestedMap(manifest, "spec", field, "namespaceSelector")
			selectors["spec."+field+".namespaceSelector"] = selector
		}
	}
	for _, field := range slices.Sorted(maps.Keys(selectors)) {
		selector, _ := selectors[field].(map[string]any)
		if names := namesIn(selector); len(names) > 0 {
			return &unmatchableError{field, names}
		}
	}
	return nil
}

// namesIn returns the names to which a selector restricts namespaces, or none.
func namesIn(selector map[string]any) []string {
	if name, ok := cloneMap(selector["matchLabels"])[corev1.LabelMetadataName].(string); ok {
		return []string{name}
	}
	for _, item := range asList(selector["matchExpressions"]) {
		expression, _ := item.(map[string]any)
		if expression["key"] == corev1.LabelMetadataName && expression["operator"] == "In" {
			return texts(expression["values"])
		}
	}
	return nil
}
