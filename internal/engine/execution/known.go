package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/match"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// schemaLimit limits how long the OpenAPI schema of a custom resource may be absent after its CustomResourceDefinition.
const schemaLimit = 2 * time.Second

// objects are what an expectation was compared with, by path: "request.object" in a review, "" for the value itself.
type objects map[string][]map[string]any

// vacuous returns a expect.MistakeError for what a step expects to be absent and that cannot exist: fields of
// objects that their kinds do not have, and plugins. Result is what held.
func (c *Case) vacuous(ctx context.Context, then *scenario.Expectation, of schema.GroupVersion, result framework.Result) error {
	if then == nil {
		return nil
	}
	at := c.path + ".then"
	problems := c.unknownPlugins(ctx, at, then.Plugins)
	var undecided error
	look := func(at string, expect map[string]any, in objects) {
		found, err := c.unknownFields(ctx, of, at, expect, in)
		problems, undecided = append(problems, found...), cmp.Or(undecided, err)
	}
	look(at+".object", then.Object, objects{"": {result.Fields()}})
	if then.Audit != nil && result.Audit != nil {
		look(at+".audit", then.Audit, objects{"requestObject": {result.Audit.RequestObject}, "responseObject": {result.Audit.ResponseObject}})
	}
	if calls := then.Calls; calls != nil {
		for list, expected := range map[string][]scenario.Call{"inOrder": calls.InOrder, "anyOrder": calls.AnyOrder, "include": calls.Include} {
			for i, call := range expected {
				path := fmt.Sprintf("%s.calls.%s[%d]", at, list, i)
				request, review := reviewed(result.Trace, call.Webhook)
				look(path+".request", call.Request, request)
				look(path+".review", call.Review, review)
			}
		}
	}
	return cmp.Or(asError(problems), undecided)
}

// asError returns a expect.MistakeError with the problems in the order of their positions, or nil without problems.
func asError(problems []*scenario.Error) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b *scenario.Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return &expect.MistakeError{Problems: problems}
}

// reviewed returns the objects in the requests that a webhook got, and in their reviews.
func reviewed(trace framework.Trace, webhook string) (request, review objects) {
	request, review = objects{}, objects{}
	for _, call := range trace {
		if call.Webhook != webhook {
			continue
		}
		for _, name := range []string{"object", "oldObject", "options"} {
			if one, ok := call.Request()[name].(map[string]any); ok {
				request[name] = append(request[name], one)
				review["request."+name] = request[name]
			}
		}
	}
	return request, review
}

// unknownFields returns the fields that an expectation assumes and that none of the objects it was compared with can have.
func (c *Case) unknownFields(ctx context.Context, of schema.GroupVersion, at string, expect map[string]any, seen objects) (problems []*scenario.Error, err error) {
	for _, one := range match.Assumptions(expect) {
		holder, path := "", one.Field
		for len(path) > 0 && seen[holder] == nil {
			holder, path = strings.TrimPrefix(fmt.Sprint(holder, ".", path[0]), "."), path[1:]
		}
		names, kinds, undecided := c.missing(ctx, of, path, seen[holder])
		if err = cmp.Or(err, undecided); len(kinds) > 0 {
			problems = append(problems, c.unknownField(at, one, names, kinds))
		}
	}
	return problems, err
}

// missing returns the kinds of objects if none of them has the last field of a path, and the fields that they have there.
func (c *Case) missing(ctx context.Context, of schema.GroupVersion, path []any, in []map[string]any) (names, kinds []string, err error) {
	for _, one := range in {
		kind := kindOf(one)
		found, err := c.missingField(ctx, of, kind, path)
		if found == nil || found.Index != len(path)-1 {
			return nil, nil, err
		}
		names, kinds = append(names, found.Names...), append(kinds, kind.GroupVersion().String()+" "+kind.Kind)
	}
	slices.Sort(kinds)
	return names, slices.Compact(kinds), nil
}

// unknownField returns the error of a field that an expectation assumes.
func (c *Case) unknownField(at string, assumed match.Assumption, names, kinds []string) *scenario.Error {
	name := fmt.Sprint(assumed.Field[len(assumed.Field)-1])
	hint := cmp.Or(strings.TrimPrefix(suggest.DidYouMean(name, names), "; "), "check its name and indentation")
	in := strings.Replace(strings.TrimPrefix(at, c.path+"."), ".inOrder[", "[", 1)
	if c.Scenario.IsPolicyTest() {
		in = "mutated" // the only expectation of a PolicyTest that has fields of objects
	}
	return c.Scenario.ErrorAt(at, assumed.Written.String(), fmt.Sprintf("unknown field %q in %s; expected a field of the API server's %s, because the expectation holds without such a field",
		name, in, strings.Join(kinds, " or ")), hint)
}

// missingField returns the first field of a path that a kind does not have, and nil if it is there, if the scenario writes it
// itself, or if the API server refuses to say which fields there are; without a response, an error. The schema is in the OpenAPI
// document of the group and version of the kind, and that of a subresource in the one of the request.
func (c *Case) missingField(ctx context.Context, of schema.GroupVersion, kind schema.GroupVersionKind, path []any) (*kinds.Missing, error) {
	missing, builtIn := kinds.MissingInKind(kind, path)
	read := c.target.Optional().OpenAPI
	if kind.Kind == "" || builtIn && missing == nil || read == nil || c.writesField(path) {
		return nil, nil
	}
	given, written := c.groups()
	late, until := !builtIn && slices.Contains(append(given, written...), kind.Group), time.Now().Add(schemaLimit)
	var failed error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(ctx context.Context) (bool, error) {
		failed = nil
		for _, in := range slices.Compact([]schema.GroupVersion{kind.GroupVersion(), of}) {
			if in.Version == "" {
				continue // the requests of a parallel step are of several kinds
			}
			document, err := read(ctx, in)
			if found, known := kinds.MissingInDocument(document, kind, path); known {
				missing, failed = found, nil
				return true, nil
			} else if !apierrors.IsNotFound(err) {
				failed = cmp.Or(failed, err)
			}
		}
		refused := apierrors.APIStatus(nil)
		return errors.As(failed, &refused) || failed == nil && (!late || time.Now().After(until)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: the fields of %s are unknown: %w", framework.ErrTimeout, kind.Kind, cmp.Or(failed, err))
	} else if failed != nil {
		return nil, nil //nolint:nilerr // without a schema, nothing is unknown
	}
	return missing, nil
}

// writesField reports whether the scenario itself writes the field of a path: in a manifest, a patch, the schema of a
// CustomResourceDefinition, an expression or a body. It can expect that the API server drops such a field.
func (c *Case) writesField(path []any) bool {
	text, err := json.Marshal([]any{c.Given, c.Scenario.Spec.When, c.Scenario.Spec.Hooks})
	var written any
	var names []string
	for _, step := range path {
		if name, ok := step.(string); ok {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	if err != nil || json.Unmarshal(text, &written) != nil || len(names) == 0 {
		return true
	}
	// A schema has other names between the names of fields, and a path of a patch has items.
	fields := regexp.MustCompile(`/` + strings.Join(names, `/((properties|items|additionalProperties|-|[0-9]+)/)*`) + `/$`)
	inText := regexp.MustCompile(`(?s)\b` + strings.Join(names, `\b.*\b`) + `\b`)
	return writes(written, "/", func(at string, value any) bool {
		text, _ := value.(string)
		return fields.MatchString(at) || inText.MatchString(text)
	})
}

// writes reports whether a function returns true for one of the values in a value, besides expectations. It gets the place
// of each as a JSON pointer with a slash at the end. The value of an operation of a JSON patch is at the path of the
// operation.
func writes(value any, at string, is func(at string, value any) bool) bool {
	if is(at, value) {
		return true
	}
	if list, ok := value.([]any); ok {
		return slices.ContainsFunc(list, func(item any) bool { return writes(item, at, is) })
	}
	fields, _ := value.(map[string]any)
	pointer, _ := fields["path"].(string)
	return slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(name string) bool {
		here := at + name + "/"
		if name == "value" && strings.HasPrefix(pointer, "/") {
			here = strings.TrimSuffix(pointer, "/") + "/"
		}
		return name != "then" && name != "wait" && writes(fields[name], here, is)
	})
}

// kubernetesPlugins are all admission plugins of the supported versions (k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go).
func kubernetesPlugins() []string {
	return strings.Fields(`AlwaysAdmit AlwaysDeny AlwaysPullImages CertificateApproval CertificateSigning
		CertificateSubjectRestriction ClusterTrustBundleAttest DefaultIngressClass DefaultStorageClass
		DefaultTolerationSeconds DenyServiceExternalIPs EventRateLimit ExtendedResourceToleration ImagePolicyWebhook
		JobValidation LimitPodHardAntiAffinityTopology LimitRanger MutatingAdmissionPolicy MutatingAdmissionWebhook
		NamespaceAutoProvision NamespaceExists NamespaceLifecycle NodeDeclaredFeatureValidator NodeRestriction
		OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize PodGroupProtection PodGroupWorkloadExists
		PodNodeSelector PodResizeValidator PodSecurity PodTolerationRestriction PodTopologyLabels Priority ResourceQuota
		RuntimeClass ServiceAccount StorageObjectInUseProtection TaintNodesByCondition ValidatingAdmissionPolicy
		ValidatingAdmissionWebhook`)
}

// unknownPlugins returns errors for plugins that an expectation at a field path excludes and that no API server has.
func (c *Case) unknownPlugins(ctx context.Context, at string, expect *scenario.Plugins) []*scenario.Error {
	if expect == nil || len(expect.Exclude) == 0 {
		return nil
	}
	names := append(kubernetesPlugins(), c.target.Info().Plugins...)
	if enabled := c.target.Optional().Plugins; enabled != nil {
		found, _ := enabled(ctx) // an incomplete list helps too
		names = append(names, found...)
	}
	var problems []*scenario.Error
	for i, name := range expect.Exclude {
		if !slices.Contains(names, name) {
			problems = append(problems, c.Scenario.ErrorAt(at, fmt.Sprintf("plugins.exclude[%d]", i),
				fmt.Sprintf("there is no admission plugin %q; expected one of Kubernetes or of the API server", name),
				strings.TrimPrefix(suggest.DidYouMean(name, names), "; ")))
		}
	}
	return problems
}
