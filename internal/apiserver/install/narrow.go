package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// conditionName is the name of the match condition that narrowing adds.
const conditionName = "admissiontest.dev/scenario"

// narrowTo returns a copy of a webhook configuration, policy or binding that matches
// only requests of one scenario, or of all scenarios of a run. For these requests it matches as before:
//
//   - The namespaceSelector also requires the name of a namespace of the scenario, or of a Namespace
//     that one of its requests is for. The API server gives each Namespace a label with its name.
//   - A namespaceSelector does not exclude cluster-scoped resources. For these, a match condition
//     requires the name of an object that a request of the scenario is for, or a name of the object or of
//     the user that contains the ID of the scenario. A match condition that is false takes precedence over
//     one that fails with an error.
//   - Before match conditions, an API server refuses a request for an error in the configuration of a
//     policy, such as a missing parameter, or if it cannot convert the object. So a rule of a policy with
//     parameters that can match cluster-scoped resources is divided in two: one for namespaced resources,
//     and one for cluster-scoped resources with the names of the objects. If the API server has other
//     clients, every such rule is divided. The rules of webhooks have no names; there, wildcards are
//     replaced by the resources.
//
// The ID of the scenario becomes a prefix of names and of references between these
// objects. This keeps their order.
func narrowTo(resources *client.Resources, kind schema.GroupVersionKind, manifest map[string]any, to narrowing) map[string]any {
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	id := to.id
	out := restrictTo(resources, kind, withName(manifest, id+"-"+name), to)
	spec := cloneMap(out["spec"])
	if policy, ok := spec["policyName"].(string); ok {
		spec["policyName"] = id + "-" + policy
		out["spec"] = spec
	}
	return out
}

// narrowing is what webhook configurations and policies are narrowed to.
type narrowing struct {
	// id is the prefix of names.
	id string
	// labels are the requirements for the labels of a namespace.
	labels []any
	// names are the names of cluster-scoped objects that rules of policies match, and resources are the
	// cluster-scoped resources that rules of webhooks match, by group. Nil means all.
	names     []any
	resources map[string][]string
	// others is true if the API server has other clients.
	others bool
	// condition is true for requests in a namespace, which labels has narrowed, and for the other
	// requests to match.
	condition string
	// byName is the condition if every rule is for Namespaces: these have no labels of the run. Empty if they
	// need none.
	byName string
	// ofNamespaces is true if requests for namespaces need the condition too, besides labels; always
	// if every request does.
	ofNamespaces, always bool
}

// toScenario returns the narrowing to one scenario.
func (i *Installer) toScenario(scope *Scope) narrowing {
	x := scope.subjects(i.Client.Resources)
	to := narrowing{id: scope.ID, others: i.Shared, always: x.unnamed, ofNamespaces: scope.FieldManager || len(x.objects) > 0}
	if !x.unnamed {
		to.labels = []any{requirement(namespaceNameLabel, "In", anyOf(slices.Concat(x.namespaces, x.objects))...)}
	}
	if x.complete {
		names := append([]string{scope.ID}, slices.DeleteFunc(slices.Clone(x.names), func(name string) bool { return name == scope.ID })...)
		to.names, to.resources = anyOf(names), x.resources // no names would be all names
		if x.nameless {
			to.names = append(to.names, "") // the name of a request without one
		}
	}
	to.condition = scope.condition(x)
	return to
}

func anyOf(list []string) []any {
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	return out
}

func requirement(label, operator string, values ...any) map[string]any {
	out := map[string]any{"key": label, "operator": operator}
	if len(values) > 0 {
		out["values"] = values
	}
	return out
}

// restrictTo is narrowTo without the names.
func restrictTo(resources *client.Resources, kind schema.GroupVersionKind, manifest map[string]any, to narrowing) map[string]any {
	out := maps.Clone(manifest)
	switch kind.Kind {
	case KindMutatingWebhooks, KindValidatingWebhooks:
		list, given := out["webhooks"].([]any)
		narrowed := make([]any, 0, len(list))
		for _, item := range list {
			if webhook, ok := item.(map[string]any); ok {
				rules := asList(webhook["rules"])
				to := to.of(rules)
				narrow := requireCondition(resources, requireLabels(webhook, to), rules, to)
				if len(rules) > 0 && to.resources != nil && to.others {
					narrow["rules"] = divide(resources, rules, to.inResources)
				}
				item = narrow
			}
			narrowed = append(narrowed, item)
		}
		if given {
			out["webhooks"] = narrowed
		}
	case KindValidatingPolicy, KindMutatingPolicy:
		spec, given := out["spec"].(map[string]any)
		if !given {
			return out // the API server refuses it
		}
		spec = maps.Clone(spec)
		constraints := cloneMap(spec["matchConstraints"])
		rules := asList(constraints["resourceRules"])
		to := to.of(rules)
		if len(rules) > 0 && to.names != nil && (to.others || spec["paramKind"] != nil) {
			constraints["resourceRules"] = divide(resources, rules, to.withNames)
		}
		spec["matchConstraints"] = requireLabels(constraints, to)
		out["spec"] = requireCondition(resources, spec, rules, to)
	}
	return out
}

// of returns the narrowing of what has these rules.
func (to narrowing) of(rules []any) narrowing {
	if to.byName != "" && !slices.ContainsFunc(rules, func(item any) bool { return !forNamespaces(cloneMap(item)) }) {
		to.labels, to.condition, to.always = nil, to.byName, true
	}
	return to
}

// forNamespaces reports whether a rule is for Namespaces only.
func forNamespaces(rule map[string]any) bool {
	return onlyNamespaces(texts(rule["apiGroups"]), texts(rule["resources"]))
}

// divide returns rules that match what they matched before, but among cluster-scoped objects only what
// own returns for a rule, if it is not nil. The order remains: it decides about the version in which a
// webhook or policy gets an object.
func divide(resources *client.Resources, rules []any, own func(rule map[string]any) map[string]any) []any {
	out := []any{}
	for _, item := range rules {
		rule, ok := item.(map[string]any)
		if !ok || !matchesClusterScoped(resources, rule) {
			out = append(out, item)
			continue
		}
		if rule["scope"] != "Cluster" {
			namespaced := maps.Clone(rule)
			namespaced["scope"] = "Namespaced"
			out = append(out, namespaced)
		}
		clusterScoped := maps.Clone(rule)
		clusterScoped["scope"] = "Cluster"
		if clusterScoped = own(clusterScoped); clusterScoped != nil {
			out = append(out, clusterScoped)
		}
	}
	return out
}

// withNames adds the names to a rule of a policy.
func (to narrowing) withNames(rule map[string]any) map[string]any {
	given := asList(rule["resourceNames"])
	rule["resourceNames"] = slices.DeleteFunc(slices.Clone(to.names), func(name any) bool {
		return len(given) > 0 && !slices.Contains(given, name) && name != to.id // it would be empty
	})
	return rule
}

// inResources replaces the wildcards in a rule of a webhook by the resources, or returns nil if there
// are none. Before a match condition, an API server converts an object to the version of a rule, which
// can fail for an object of another client.
func (to narrowing) inResources(rule map[string]any) map[string]any {
	groups, names := texts(rule["apiGroups"]), []any{}
	if slices.Contains(groups, "*") {
		groups = slices.Sorted(maps.Keys(to.resources))
		rule["apiGroups"] = anyOf(groups)
	}
	for _, text := range texts(rule["resources"]) {
		name, subresource, has := strings.Cut(text, "/")
		if name != "*" {
			names = append(names, text)
			continue
		}
		for _, group := range groups {
			for _, own := range to.resources[group] {
				if has {
					own += "/" + subresource
				}
				if !slices.Contains(names, any(own)) {
					names = append(names, own)
				}
			}
		}
	}
	if rule["resources"] = names; len(groups) == 0 || len(names) == 0 {
		return nil
	}
	return rule
}

// matchesClusterScoped reports whether a rule can match cluster-scoped resources.
func matchesClusterScoped(resources *client.Resources, rule map[string]any) bool {
	return rule["scope"] != "Namespaced" && !resources.AllNamespaced(texts(rule["apiGroups"]), texts(rule["resources"]))
}

// requireLabels returns a copy of an object whose namespaceSelector also requires the
// labels.
func requireLabels(object map[string]any, to narrowing) map[string]any {
	out := maps.Clone(object)
	if len(to.labels) == 0 {
		return out
	}
	selector := cloneMap(out["namespaceSelector"])
	selector["matchExpressions"] = append(slices.Clone(asList(selector["matchExpressions"])), to.labels...)
	out["namespaceSelector"] = selector
	return out
}

// requireCondition returns a copy of an object with one more match condition, if its
// rules can match a cluster-scoped resource other than namespaces, or namespaces if the condition is
// about these.
func requireCondition(resources *client.Resources, object map[string]any, rules []any, to narrowing) map[string]any {
	out := maps.Clone(object)
	if !to.always && !slices.ContainsFunc(rules, func(item any) bool {
		rule, _ := item.(map[string]any)
		return matchesClusterScoped(resources, rule) && (to.ofNamespaces || !forNamespaces(rule))
	}) {
		return out
	}
	out["matchConditions"] = append(slices.Clone(asList(out["matchConditions"])), map[string]any{
		"name": conditionName, "expression": to.condition,
	})
	return out
}

// ofNamespace is true in CEL for requests for a Namespace, whose request.namespace is its name.
const ofNamespace = `(request.resource.group == "" && request.resource.resource == "namespaces")`

// condition returns a CEL expression that is true for requests in a namespace of the scenario, and for
// its requests for cluster-scoped objects. It must not fail for any request, because an error counts as
// a match. Empty fields of request are absent in CEL.
func (s *Scope) condition(x subjects) string {
	within := `has(request.namespace) && request.namespace != ""`
	switch {
	case x.unnamed: // no selector
		within = fmt.Sprintf(`has(request.namespace) && request.namespace.matches(%q) && !`+ofNamespace, runid.Pattern(s.ID))
	case len(x.objects) > 0:
		within = fmt.Sprintf(`has(request.namespace) && request.namespace in [%s] && !`+ofNamespace, quoted(x.namespaces))
	case s.FieldManager:
		within += ` && !` + ofNamespace
	}
	if s.FieldManager {
		return within + " || " + ofManager(s.ID)
	}
	return within + " || " + matching(x.pattern(s.ID), runid.Pattern(s.ID))
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = fmt.Sprintf("%q", text)
	}
	return strings.Join(out, ", ")
}

// scenarioCondition returns a CEL expression like that of condition, for names that contain an ID.
func scenarioCondition(id string) string {
	return `has(request.namespace) && request.namespace != "" || ` + matching(runid.Pattern(id), runid.Pattern(id))
}

// matching returns a CEL expression that is true for requests whose object has a name that matches a
// pattern, or whose user does.
func matching(pattern, user string) string {
	of := func(object string) string {
		return fmt.Sprintf(`(%[1]s != null && has(%[1]s.metadata) && (has(%[1]s.metadata.name) && %[1]s.metadata.name.matches(%[2]q) || has(%[1]s.metadata.generateName) && %[1]s.metadata.generateName.matches(%[2]q)))`, object, pattern)
	}
	return strings.Join([]string{
		fmt.Sprintf(`has(request.name) && request.name.matches(%q)`, pattern),
		fmt.Sprintf(`request.userInfo.username.matches(%q)`, user),
		of("object"), of("oldObject"),
	}, " || ")
}

// ofManager returns a CEL expression that is true for requests with the field manager of a scope, and
// for a dry run that deletes an object that was installed for it: a deletion has no field manager.
func ofManager(id string) string {
	return fmt.Sprintf(`has(request.options) && has(request.options.fieldManager) && request.options.fieldManager == %q`, runid.CaseManager(id)) +
		fmt.Sprintf(` || request.operation == "DELETE" && has(request.dryRun) && request.dryRun && oldObject != null && has(oldObject.metadata) && has(oldObject.metadata.managedFields) && oldObject.metadata.managedFields.exists(m, has(m.manager) && m.manager == %q)`, id)
}

// onlyNamespaces reports whether a rule names only core namespaces, which a
// namespaceSelector does exclude.
func onlyNamespaces(groups, names []string) bool {
	if len(groups) != 1 || groups[0] != "" || len(names) == 0 {
		return false
	}
	for _, name := range names {
		name, _, _ = strings.Cut(name, "/")
		if name != "namespaces" {
			return false
		}
	}
	return true
}

func asList(value any) []any { list, _ := value.([]any); return list }

// texts returns the strings in a list.
func texts(value any) []string {
	var out []string
	for _, item := range asList(value) {
		if text, ok := item.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// checkHarmless returns a framework.ErrForeign if a webhook configuration or policy could refuse requests
// of other clients, although it is narrowed: what an API server evaluates before match conditions cannot
// be narrowed to names that are not known.
func (i *Installer) checkHarmless(kind schema.GroupVersionKind, manifest map[string]any, to narrowing) error {
	if !i.Shared {
		return nil
	}
	const remedy = "use a server that ends with the run, such as target envtest"
	if len(to.labels) == 0 && !strings.HasSuffix(kind.Kind, "Binding") {
		return fmt.Errorf("%w: a Namespace has no label before its name is generated, so that no namespaceSelector can exclude the namespaces of other clients: %s", framework.ErrForeign, remedy)
	}
	spec := cloneMap(manifest["spec"])
	ignores := spec["failurePolicy"] == "Ignore"
	named := to.names != nil && !slices.Contains(to.names, "")
	clusterScoped := slices.ContainsFunc(asList(cloneMap(spec["matchConstraints"])["resourceRules"]), func(item any) bool {
		return matchesClusterScoped(i.Client.Resources, cloneMap(item))
	})
	if kind.Kind != KindValidatingPolicy && kind.Kind != KindMutatingPolicy || spec["paramKind"] == nil || ignores || named || !clusterScoped {
		return nil
	}
	return fmt.Errorf("%w: an API server refuses a request for a missing parameter before it evaluates match conditions, and a rule for cluster-scoped objects cannot be narrowed to names that are not known before the requests: give these objects names, write scope: Namespaced, or %s", framework.ErrForeign, remedy)
}
