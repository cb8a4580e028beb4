package vary

import (
	"context"
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
