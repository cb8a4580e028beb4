package vary

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Matches reports whether a rule matches one of the operations on a resource or subresource.
func Matches(rule admissionregistrationv1.RuleWithOperations, served metav1.APIResource, operations ...admission.Operation) bool {
	resource, subresource, _ := strings.Cut(served.Name, "/")
	namespace := ""
	if served.Namespaced {
		namespace = metav1.NamespaceDefault
	}
	return slices.ContainsFunc(operations, func(operation admission.Operation) bool {
		attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, namespace, "", schema.GroupVersionResource{Group: served.Group, Version: served.Version, Resource: resource}, subresource, operation, nil, false, nil)
		return (&rules.Matcher{Rule: rule, Attr: attributes}).Matches()
	})
}

// Server is what Requests needs of an API server.
type Server struct {
	// Resources are the resources and subresources that it serves, and OpenAPI returns its document for a group and version.
	Resources []metav1.APIResource
	OpenAPI   func(ctx context.Context, of schema.GroupVersion) (map[string]any, error)
	// Create sends a creation as a dry run, in a namespace if the kind has one.
	Create func(ctx context.Context, manifest map[string]any) (framework.Result, error)
}

// Request is a request that rules match, with the smallest object that an API server accepts.
type Request struct {
	Operation  admission.Operation
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Object is the object, and Response what the API server makes of its creation.
	Object, Response map[string]any
}

// mostKinds limits the kinds for which there are requests.
const mostKinds = 8

// Requests returns a request for each operation and kind that rules match: CREATE, UPDATE, DELETE. Missing says, a line each, for what
// there is none.
func (s Server) Requests(ctx context.Context, rules []admissionregistrationv1.RuleWithOperations) (all []Request, missing []string, err error) {
	match := func(served metav1.APIResource, operations ...admission.Operation) bool {
		return slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
			return Matches(rule, served, operations...)
		})
	}
	chosen, missing := s.choose(match)
	for _, served := range chosen {
		m := &maker{kind: schema.GroupVersionKind{Group: served.Group, Version: served.Version, Kind: served.Kind}}
		if m.document, err = Document(ctx, s.OpenAPI, m.kind.GroupVersion()); err != nil {
			return nil, nil, err
		}
		manifest, result, err := s.accepted(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete} {
			switch {
			case !match(served, operation):
			case !result.Allowed():
				missing = append(missing, fmt.Sprintf("%s of %s: no object found that the API server accepts: %s", operation, served.Kind, result.Status.Message))
			default:
				all = append(all, Request{operation, m.kind, served.Namespaced, manifest, result.Fields()})
			}
		}
	}
	return all, missing, nil
}

// choose returns the resources that match. If these are many, and ConfigMaps are among them, they stand for all.
func (s Server) choose(match func(metav1.APIResource, ...admission.Operation) bool) (chosen []metav1.APIResource, missing []string) {
	served := slices.SortedStableFunc(slices.Values(s.Resources), func(a, b metav1.APIResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	for _, each := range served {
		switch known := func(r metav1.APIResource) bool { return r.Group == each.Group && r.Name == each.Name }; {
		case each.Version == "*" || !match(each, admission.Create, admission.Update, admission.Delete, admission.Connect) || slices.ContainsFunc(chosen, known):
		case strings.Contains(each.Name, "/"):
			missing = append(missing, each.Name+": only requests for the object itself are written")
		default:
			chosen = append(chosen, each)
		}
	}
	if len(chosen) == 0 {
		missing = append(missing, "the rules match no object that this API server serves")
	}
	if at := slices.IndexFunc(chosen, func(r metav1.APIResource) bool { return r.Group == "" && r.Name == "configmaps" }); at >= 0 && len(chosen) > mostKinds {
		return chosen[at : at+1], []string{fmt.Sprintf("the rules match %d kinds: only requests for a ConfigMap are written", len(chosen))}
	}
	if len(chosen) > mostKinds {
		missing = append(missing, fmt.Sprintf("the rules match %d kinds: requests are only written for %d", len(chosen), mostKinds))
	}
	return chosen[:min(len(chosen), mostKinds)], missing
}

// openAPILimit is how long an API server may take to publish the schemas of a new CustomResourceDefinition.
const openAPILimit = 10 * time.Second

// Document reads the OpenAPI document of a group and version. It waits for that of a new CustomResourceDefinition.
func Document(ctx context.Context, read func(context.Context, schema.GroupVersion) (map[string]any, error), version schema.GroupVersion) (document map[string]any, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, openAPILimit, true, func(ctx context.Context) (bool, error) {
		document, err = read(ctx, version)
		return !apierrors.IsNotFound(err), nil
	})
	return document, err
}

// accepted returns the smallest object that the API server accepts, with the last response. Its status says whether it was found.
func (s Server) accepted(ctx context.Context, m *maker) (manifest map[string]any, result framework.Result, err error) {
	const rounds = 12
	manifest = m.object()
	for range rounds {
		result, err = s.Create(ctx, manifest)
		completed := m.completed(manifest, result.Status)
		if err != nil || result.Allowed() || completed == nil {
			break
		}
		manifest = completed
	}
	return manifest, result, err
}

// Expected returns what an object has that another one lacks or has otherwise, as an expectation: lists as a whole.
func Expected(before, after map[string]any) map[string]any {
	return withAbsent(object.MergePatch(before, after))
}

// withAbsent returns a merge patch as an expectation: what it removes is absent.
func withAbsent(patch map[string]any) map[string]any {
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			patch[name] = map[string]any{"$absent": true}
		case map[string]any:
			withAbsent(value)
		}
	}
	return patch
}
