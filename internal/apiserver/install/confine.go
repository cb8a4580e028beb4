package install

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// disposable is the advice for what only a server without other clients can have.
const disposable = "use a server that ends with the run, such as target envtest, or --disposable if the API server is only for tests"

// Confine returns a framework.ErrForeign that says why a request of the scenario with that ID is not sent on an API server with
// other clients, or nil. It may send requests for objects in its namespaces, which have its ID in their names, and for these
// Namespaces themselves.
func Confine(id string, resource client.Resource, request framework.Request) error {
	why := fmt.Sprintf("%s are in no namespace, so other clients can use the object or its name: %s", resource.Resource, disposable)
	path := slices.ContainsFunc([]string{request.Name, request.Namespace, request.Subresource}, func(part string) bool { return strings.Contains(part, "/") || strings.Contains(part, "..") })
	switch {
	case path || strings.Contains(request.HTTP.ProxyPath, ".."):
		why = "a name changes the URL path of the request: remove \"..\", and \"/\" from names"
	case resource.Namespaced && runid.Has(request.Namespace, id):
		return nil
	case resource.Namespaced && request.Namespace == "":
		why = "the request is for all namespaces: set the namespace $(namespace)"
	case resource.Namespaced:
		why = fmt.Sprintf("namespace %s does not belong to the scenario, whose namespaces have $(id) in their names: use one of these, or run it on an API server that is only for tests: --disposable", request.Namespace)
	case request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review"):
		return nil // reviews are not stored
	case resource.GroupVersionResource == client.Namespaces() && isOwn(id, request):
		return nil
	}
	return fmt.Errorf("%s: %w: %s", request, framework.ErrForeign, why)
}

// isOwn reports whether a request is for one Namespace of the scenario.
func isOwn(id string, request framework.Request) bool {
	if request.Verb == framework.VerbList || request.Verb == framework.VerbDeleteCollection {
		return false
	}
	name := request.Name
	if request.Verb == framework.VerbCreate && request.Subresource == "" {
		sent, ok := request.Object.(*unstructured.Unstructured)
		if !ok || request.HTTP.RawBody != nil {
			return false
		}
		name = sent.GetName()
	}
	return runid.Has(name, id)
}

// ConfineInstalled is Confine for an object to install: in its namespaces a scenario may install everything, besides them webhook
// configurations and policies, which are narrowed to its namespaces, and CustomResourceDefinitions. Install checks the namespaces.
func ConfineInstalled(id string, resource client.Resource, manifest map[string]any) error {
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	strategy, _, _ := unstructured.NestedString(manifest, "spec", "conversion", "strategy")
	why := "it is in no namespace, so other clients can use the object or its name"
	switch isDefinition := resource.Resource == "customresourcedefinitions"; {
	case resource.Namespaced, object.IsAdmission(manifest), isDefinition && strategy != "Webhook", resource.GroupVersionResource == client.Namespaces() && runid.Has(name, id):
		return nil
	case isDefinition: // lists of its objects fail for every client
		why = "if the run is killed, the conversion webhook of the CustomResourceDefinition no longer answers, and the garbage collection of the cluster waits for it"
	}
	return fmt.Errorf("install %s %s: %w: %s: %s", resource.Resource, name, framework.ErrForeign, why, disposable)
}

// superusers is the group that may do everything.
const superusers = "system:masters"

const rbacGroup = "rbac.authorization.k8s.io"

// grantee is a user who gets rights in a namespace, or for cluster-scoped objects if that is empty.
type grantee struct{ user, namespace string }

// Grant gives the user of each request the right to send it, by a role in the namespace of the request, or
// by a ClusterRole for a kind that does not live in namespaces. A kind that the API server does not serve is left out. A second call for the scope replaces the roles of the first.
func (i *Installer) Grant(ctx context.Context, scope *Scope, requests []framework.Request) error {
	var order []grantee
	rules := map[grantee][]any{}
	for _, request := range requests {
		res, err := i.Client.Resources.Of(request.Kind)
		if err != nil || !NeedsGrant(request) {
			continue
		}
		to := grantee{user: request.User.Name}
		if res.Namespaced {
			to.namespace = request.Namespace
		}
		if rules[to] == nil {
			order = append(order, to)
		}
		for _, rule := range RulesFor(i.Client.Resources, res, request) {
			if !slices.ContainsFunc(rules[to], func(known any) bool { return reflect.DeepEqual(known, rule) }) {
				rules[to] = append(rules[to], rule)
			}
		}
	}
	for n, to := range order {
		if err := i.grant(ctx, scope, fmt.Sprintf("%s-user-%d", scope.ID, n+1), to, rules[to]); err != nil {
			return fmt.Errorf("give user %q the right to send requests: %w", to.user, err)
		}
	}
	return nil
}

// grant installs a role and its binding.
func (i *Installer) grant(ctx context.Context, scope *Scope, name string, to grantee, rules []any) error {
	kind, metadata := "ClusterRole", map[string]any{"name": name}
	if to.namespace != "" {
		kind, metadata["namespace"] = "Role", to.namespace
	}
	return errors.Join(
		i.Install(ctx, scope, map[string]any{"apiVersion": rbacGroup + "/v1", "kind": kind, "metadata": metadata, "rules": rules}, nil),
		i.Install(ctx, scope, map[string]any{
			"apiVersion": rbacGroup + "/v1", "kind": kind + "Binding", "metadata": metadata, "roleRef": map[string]any{"apiGroup": rbacGroup, "kind": kind, "name": name},
			"subjects": []any{map[string]any{"apiGroup": rbacGroup, "kind": "User", "name": to.user}},
		}, nil))
}

// NeedsGrant reports whether the user of a request may need a role to send it.
func NeedsGrant(request framework.Request) bool {
	return request.User != nil && !slices.Contains(request.User.Groups, superusers)
}

// RulesFor returns the rules of a role for a request: its verb, so that an expression that asks the authorizer for another one gets
// the answer no; and the rights that the API server requires besides: for what an update creates, the rules of a role, the role of a
// binding, the signer of a certificate, the parameters of a policy.
func RulesFor(resources *client.Resources, res client.Resource, request framework.Request) []map[string]any {
	rule := func(group string, resource string, verbs ...any) map[string]any {
		return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": verbs}
	}
	verbs := []any{string(request.Verb)}
	switch request.Verb {
	case framework.VerbUpdate:
		verbs = append(verbs, "create")
	case framework.VerbApply:
		verbs = []any{"patch", "create"}
	case framework.VerbConnect:
		verbs = []any{"create", "get", "update", "patch", "delete"} // by the HTTP method
	}
	rules := []map[string]any{rule(res.Group, strings.TrimSuffix(res.Resource+"/"+request.Subresource, "/"), verbs...)}
	switch res.GroupResource() {
	case schema.GroupResource{Group: rbacGroup, Resource: "roles"}, schema.GroupResource{Group: rbacGroup, Resource: "clusterroles"}:
		rules = append(rules, rule(rbacGroup, res.Resource, "escalate"))
	case schema.GroupResource{Group: rbacGroup, Resource: "rolebindings"}, schema.GroupResource{Group: rbacGroup, Resource: "clusterrolebindings"}:
		rules = append(rules, rule(rbacGroup, "roles", "bind"), rule(rbacGroup, "clusterroles", "bind"))
	case schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:
		rules = append(rules, rule("certificates.k8s.io", "signers", "approve", "sign"))
	case schema.GroupResource{Group: AdmissionGroup, Resource: "validatingadmissionpolicies"}, schema.GroupResource{Group: AdmissionGroup, Resource: "mutatingadmissionpolicies"}:
		policy, _ := request.Object.(runtime.Unstructured)
		if policy == nil {
			break
		}
		if param, err := resources.Of(paramKind(policy.UnstructuredContent())); err == nil {
			rules = append(rules, rule(param.Group, param.Resource, "get"))
		}
	}
	return rules
}
