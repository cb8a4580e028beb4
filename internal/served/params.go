package served

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
)

// keeperPrefix begins the names of the policies and bindings of keepParams.
const keeperPrefix = "admissiontest-keeps-"

// keepParams makes kube-apiserver read the parameters of policies for as long as it runs, and adds that to
// the State that is restored.
//
// kube-apiserver stops the informer of a built-in paramKind with the last policy that uses it, and never
// starts it again (kubernetes/kubernetes#130887, docs/findings.md). So for each built-in paramKind that the
// Session used, one more policy remains, with a binding. It matches no request. Each plugin has its own.
func (s *Server) keepParams(ctx context.Context, before *envtest.State) error {
	client, err := dynamic.NewForConfig(s.api.Config)
	if err != nil {
		return err
	}
	var written []map[string]any
	for _, plugin := range []string{"Validating", "Mutating"} {
		created, err := keepParamsOf(ctx, client, plugin)
		if err != nil {
			return fmt.Errorf("keep the informers of parameters: %w", err)
		}
		written = append(written, created...)
	}
	if len(written) == 0 {
		return nil
	}
	// The plugin sees bindings and policies one after the other: the keepers come before the others go.
	if err := s.effective(ctx, written); err != nil {
		return err
	}
	now, err := s.api.State(ctx)
	if err != nil {
		return err
	}
	before.Add(now, func(key string) bool { return strings.Contains(key, "/"+keeperPrefix) })
	return nil
}

// effective waits until the API server acts on objects.
func (s *Server) effective(ctx context.Context, written []map[string]any) error {
	fences, err := cluster.New(ctx, cluster.Options{Config: s.api.Config, Disposable: true})
	if err != nil {
		return err
	}
	return errors.Join(fences.WaitUntilEffective(ctx, written), fences.Close(ctx))
}

// keepParamsOf creates the policies of one plugin, and returns those that are new.
func keepParamsOf(ctx context.Context, client dynamic.Interface, plugin string) ([]map[string]any, error) {
	resource := func(name string) dynamic.NamespaceableResourceInterface {
		return client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: name})
	}
	policies, bindings := resource(strings.ToLower(plugin)+"admissionpolicies"), resource(strings.ToLower(plugin)+"admissionpolicybindings")
	list, err := policies.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // the API server does not serve them
	}
	if err != nil {
		return nil, err
	}
	var written []map[string]any
	done := map[schema.GroupVersionKind]bool{}
	for _, policy := range list.Items {
		apiVersion, _, _ := unstructured.NestedString(policy.Object, "spec", "paramKind", "apiVersion")
		kind, _, _ := unstructured.NestedString(policy.Object, "spec", "paramKind", "kind")
		param := schema.FromAPIVersionAndKind(apiVersion, kind)
		if done[param] || !scheme.Scheme.Recognizes(param) {
			continue // there is none, or it is a custom resource, which kube-apiserver reads again
		}
		done[param] = true
		for of, manifest := range map[dynamic.NamespaceableResourceInterface]map[string]any{policies: keeper(plugin, param), bindings: keeperBinding(plugin, param)} {
			_, err := of.Create(ctx, &unstructured.Unstructured{Object: manifest}, metav1.CreateOptions{})
			switch {
			case err == nil:
				written = append(written, manifest)
			case !apierrors.IsAlreadyExists(err):
				return nil, err
			}
		}
	}
	return written, nil
}

func keeper(plugin string, param schema.GroupVersionKind) map[string]any {
	spec := map[string]any{
		"paramKind":     map[string]any{"apiVersion": param.GroupVersion().String(), "kind": param.Kind},
		"failurePolicy": "Ignore",
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"operations": []any{"CREATE"}, "apiGroups": []any{"nothing.admissiontest.dev"}, "apiVersions": []any{"v1"}, "resources": []any{"nothing"},
		}}},
	}
	if plugin == "Validating" {
		spec["validations"] = []any{map[string]any{"expression": "true"}}
	} else {
		spec["reinvocationPolicy"] = "Never"
		spec["mutations"] = []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{"expression": "Object{}"}}}
	}
	return keeperManifest(plugin+"AdmissionPolicy", param, spec)
}

func keeperBinding(plugin string, param schema.GroupVersionKind) map[string]any {
	spec := map[string]any{"policyName": keeperName(param)}
	if plugin == "Validating" {
		spec["validationActions"] = []any{"Audit"}
	}
	return keeperManifest(plugin+"AdmissionPolicyBinding", param, spec)
}

func keeperManifest(kind string, param schema.GroupVersionKind, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"name": keeperName(param)}, "spec": spec,
	}
}

func keeperName(param schema.GroupVersionKind) string {
	return strings.ToLower(strings.TrimSuffix(keeperPrefix+param.Kind+"."+param.Version+"."+param.Group, "."))
}
