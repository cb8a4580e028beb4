package install

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// The advice for what narrowing prevents.
const (
	adviceNamespace = "use $(namespace) or one of spec.namespaces, or set isolation: none"
	adviceName      = "put $(id) in the name, or set isolation: none"
)

// namespaceNameLabel is the label of each namespace that has its name.
const namespaceNameLabel = "kubernetes.io/metadata.name"

// CheckDecided returns a framework.ErrNarrowed if a webhook or policy of the scenario cannot
// decide about a Request because of what narrow adds to it, or because of a namespace of
// other clients that it names:
//
//   - it would match the request, which is not in a namespace of the scenario or, for a
//     cluster-scoped object, is not among its Requests and does not have its ID in the name;
//   - its rules match the request, but its parameters are in a namespace that is not the
//     scenario's;
//   - its rules match the request, and it is only for namespaces that are not the scenario's, and
//     no other webhook or policy is for the request.
//
// The error is a framework.ErrForeign if what is installed for the run cannot decide about a
// Namespace, because that would need a label.
func (i *Installer) CheckDecided(ctx context.Context, scope *Scope, request client.Request) error {
	if scope.Open || request.Operation() == "" {
		return nil
	}
	if err := i.checkProject(ctx, request); err != nil {
		return err
	}
	all, err := i.matching(ctx, scope, request, nil)
	if err != nil || len(all) == 0 {
		return err
	}
	if IsAdmission(request.Kind) {
		return checkWritten(all[0], request)
	}
	for _, m := range all {
		if namespace := i.paramsElsewhere(scope, m); namespace != "" {
			return undecided(m, fmt.Sprintf("its paramRef names the namespace %s, which does not belong to the scenario", namespace), adviceNamespace)
		}
	}
	x := scope.subjects(i.Client.Resources)
	if !request.Resource.Namespaced && request.Resource.GroupVersionResource != client.Namespaces() {
		if scope.FieldManager && request.Verb == framework.VerbDelete {
			return i.checkManaged(ctx, scope, client.Object{Resource: request.Resource, Name: request.Name})
		}
		if scope.FieldManager || x.namedBy(scope.ID, request) {
			return nil
		}
		return undecided(all[0], "neither the object nor the user has $(id) in its name", adviceName)
	}
	outside, own, err := i.outside(ctx, x, request)
	switch {
	case err != nil:
		return err
	case own:
		return neverOwn(all, x)
	case outside == nil:
		return nil
	}
	if all, err = i.matching(ctx, scope, request, outside); err != nil || len(all) == 0 {
		return err
	}
	return undecided(all[0], outside.GetName()+" is not a namespace of the scenario", adviceNamespace)
}

// undecided returns a framework.ErrNarrowed for a webhook or policy.
func undecided(m reach.Match, why, advice string) error {
	return fmt.Errorf("%w: %s cannot decide about this request: %s: %s", framework.ErrNarrowed, nameOf(m), why, advice)
}

func nameOf(m reach.Match) string { return strings.ReplaceAll(m.Subject(), `"`, "") }

// matching returns the webhooks and policies of a scope that match a Request as its author wrote them, as
// far as that is known before the Request: whatever the labels of its namespace, if that is nil.
func (i *Installer) matching(ctx context.Context, scope *Scope, request client.Request, namespace *unstructured.Unstructured) ([]reach.Match, error) {
	manifests := scope.manifests()
	if len(manifests) == 0 {
		return nil, nil
	}
	operations := []string{request.Operation()}
	if request.Verb == framework.VerbApply {
		operations = append(operations, "CREATE")
	}
	seen := reach.Request{Resource: request.Resource.GroupVersionResource, Subresource: request.Subresource, Kind: request.Kind, DryRun: request.DryRun, WebhooksForReviews: i.WebhooksForReviews}
	seen.Name, _ = namesOf(request)
	if request.Resource.Namespaced {
		seen.Namespace = request.Namespace
	}
	if seen.Object = createdObject(request); seen.Object == nil {
		seen.NotKnown = "the request was not sent yet"
	}
	var all []reach.Match
	for _, seen.Operation = range operations {
		found, err := reach.Matching(ctx, manifests, seen, before{Resources: i.Client.Resources, namespace: namespace})
		if err != nil {
			return nil, fmt.Errorf("find out whether the configurations of the scenario decide about %s: %w", request, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// createdObject returns the object that a Request creates, or nil. An object that exists is not known, and an
// objectSelector is matched against both.
func createdObject(request client.Request) map[string]any {
	if request.Verb != framework.VerbCreate || request.Object == nil || request.HTTP.RawBody != nil {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object)
	if err != nil {
		return nil
	}
	if name, _ := namesOf(request); request.Resource.GroupVersionResource == client.Namespaces() && request.Subresource == "" {
		return WithLabels(fields, map[string]any{namespaceNameLabel: name}) // the API server sets it
	}
	return fields
}

// before is the reach.MatchCluster before a Request.
type before struct {
	*client.Resources
	namespace *unstructured.Unstructured
}

// Namespace implements reach.MatchCluster.
func (b before) Namespace(context.Context, string) (map[string]any, error) {
	if b.namespace == nil {
		return nil, errors.New("the scenario can change its labels")
	}
	return b.namespace.Object, nil
}

// paramsElsewhere returns the namespace of the parameters that a binding names, if these are not the
// scenario's.
func (i *Installer) paramsElsewhere(scope *Scope, m reach.Match) string {
	if m.ParamKind == nil || m.ParamRef == nil || runid.Has(m.ParamRef.Namespace, scope.ID) || slices.Contains(i.Foreign, m.ParamRef.Namespace) {
		return ""
	}
	res, err := i.Client.Resources.Of(schema.FromAPIVersionAndKind(m.ParamKind.APIVersion, m.ParamKind.Kind))
	if err != nil || !res.Namespaced {
		return ""
	}
	return m.ParamRef.Namespace
}

// checkManaged returns a framework.ErrNarrowed if an object has no field manager by which webhooks and
// policies recognize its deletion.
func (i *Installer) checkManaged(ctx context.Context, scope *Scope, o client.Object) error {
	found, err := i.Client.Get(ctx, o)
	if err != nil || slices.ContainsFunc(found.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Manager == scope.ID }) {
		return nil //nolint:nilerr // the API server's response to the request says more
	}
	return fmt.Errorf("%w: the API server notes no field manager for %s, so no webhook or policy would decide about its deletion: give it a label or another field", framework.ErrNarrowed, o)
}

// checkWritten returns a framework.ErrNarrowed if a policy of the scenario matches a webhook configuration
// that Prepare narrows: the policy would see what the scenario did not write.
func checkWritten(policy reach.Match, request client.Request) error {
	if request.DryRun || request.Object == nil || request.Subresource != "" {
		return nil
	}
	if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object); err != nil || len(asList(fields["webhooks"])) == 0 {
		return nil //nolint:nilerr // sending it is an error
	}
	return fmt.Errorf("%w: %s would decide about a webhook configuration that is narrowed to the scenario, not about the one that the scenario has: send it with dryRun: true, or set isolation: none", framework.ErrNarrowed, nameOf(policy))
}

// checkProject is CheckDecided for what is installed for the run.
func (i *Installer) checkProject(ctx context.Context, request client.Request) error {
	written := request.Verb == framework.VerbCreate || request.Operation() == "UPDATE"
	if !i.Shared || i.project == nil || request.Resource.GroupVersionResource != client.Namespaces() || request.Subresource != "" || !written {
		return nil
	}
	all, err := i.matching(ctx, i.project, request, nil)
	if err != nil {
		return err
	}
	for _, m := range all {
		if slices.ContainsFunc(m.Criteria[0].ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
			return !onlyNamespaces(r.APIGroups, r.Resources)
		}) {
			return fmt.Errorf("%w: %s is installed for the run, and is narrowed by labels that a Namespace of a request does not have: use a server that ends with the run, such as target envtest", framework.ErrForeign, nameOf(m))
		}
	}
	return nil
}

// neverOwn returns an error if none of what matches can match a namespace of the scenario.
func neverOwn(all []reach.Match, x subjects) error {
	var first error
	for _, m := range all {
		why := onlyOthers(m, x)
		if why == "" {
			return nil
		}
		if first == nil {
			first = undecided(m, fmt.Sprintf("its namespaceSelector requires %q, and no namespace of the scenario matches", why), adviceNamespace)
		}
	}
	return first
}

// onlyOthers returns a requirement of a namespaceSelector that holds for no namespace of a scenario:
// the names of others. Otherwise it returns "".
func onlyOthers(m reach.Match, x subjects) string {
	for _, criteria := range m.Criteria {
		selector, err := metav1.LabelSelectorAsSelector(criteria.NamespaceSelector)
		if err != nil {
			continue // the API server refuses it
		}
		requirements, _ := selector.Requirements()
		for _, one := range requirements {
			names := one.Key() == namespaceNameLabel && one.Values().Len() > 0 && one.Matches(labels.Set{namespaceNameLabel: one.Values().UnsortedList()[0]})
			if names && !x.unnamed && !slices.ContainsFunc(one.Values().UnsortedList(), x.isNamespace) {
				return one.String()
			}
		}
	}
	return ""
}

// isNamespace reports whether a selector of narrow matches the namespace of that name.
func (x subjects) isNamespace(name string) bool {
	return slices.Contains(x.namespaces, name) || slices.Contains(x.objects, name)
}

// outside returns the namespace of a Request if it does not belong to the scenario. Own is true if it
// does. For a Request for a Namespace, it is that Namespace. If the namespace does not exist, outside returns
// nil and false.
func (i *Installer) outside(ctx context.Context, x subjects, request client.Request) (found *unstructured.Unstructured, own bool, err error) {
	name := request.Namespace
	if !request.Resource.Namespaced {
		name, _ = namesOf(request)
	}
	if slices.Contains(x.namespaces, name) || !request.Resource.Namespaced && (x.unnamed || slices.Contains(x.objects, name)) {
		return nil, true, nil
	}
	found, err = i.Client.Get(ctx, client.Namespace(name))
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("find out whether the configurations of the scenario decide about %s: %w", request, err)
	}
	return found, false, nil
}

// namedBy reports whether the condition of narrow holds, by a name, for a Request for a cluster-scoped
// object. The objects that a deletecollection is for are not known.
func (x subjects) namedBy(id string, request client.Request) bool {
	pattern, own := regexp.MustCompile(x.pattern(id)), regexp.MustCompile(runid.Pattern(id))
	name, generated := namesOf(request)
	return request.Verb == framework.VerbDeleteCollection || pattern.MatchString(name) || pattern.MatchString(generated) ||
		request.User != nil && own.MatchString(request.User.Name)
}
