package reach

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/namespace"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/object"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// explanation is one call of Explain.
type explanation struct {
	ctx     context.Context //nolint:containedctx // it lives as long as the call
	request Request
	cluster Cluster
	lookup  namespaceLookup
	// brief leaves out the texts of Findings without an effect.
	brief    bool
	mutating admission.Attributes
	// validating differs from mutating only in the name, if the API server generates it.
	validating admission.Attributes
}

// Explain returns what each webhook, policy and binding does for a request. The Findings of
// webhooks come first, in the order of the manifests. The package comment lists which Findings
// there are. It returns an error only if a required field of the request is missing.
func (a *Admission) Explain(ctx context.Context, request Request, cluster Cluster) ([]Finding, error) {
	return a.explain(ctx, request, cluster, false)
}

// Effects is Explain without the Findings with EffectNone. It is several times faster, because it describes nothing
// that has no effect.
func (a *Admission) Effects(ctx context.Context, request Request, cluster Cluster) ([]Finding, error) {
	findings, err := a.explain(ctx, request, cluster, true)
	return slices.DeleteFunc(findings, func(f Finding) bool { return f.Effect == EffectNone }), err
}

func (a *Admission) explain(ctx context.Context, request Request, cluster Cluster, brief bool) ([]Finding, error) {
	if request.Operation == "" || request.Resource.Resource == "" || request.Kind.Kind == "" {
		return nil, fmt.Errorf("explain a request: got operation %q, resource %q and kind %q, want all of them", request.Operation, request.Resource.Resource, request.Kind.Kind)
	}
	e := &explanation{ctx: ctx, request: request, cluster: cluster, brief: brief, mutating: request.attributes(true), validating: request.attributes(false)}
	e.lookup = e.lookUp(e.mutating.GetNamespace())
	var findings []Finding
	for _, w := range a.webhooks {
		findings = append(findings, e.webhook(w))
	}
	for _, p := range a.policies {
		bindings := a.bindingsOf(p)
		if len(bindings) == 0 {
			findings = append(findings, Finding{Kind: p.kind, Name: p.name}.none(ReasonNoBinding, "no binding names it"))
		}
		for _, b := range bindings {
			finding := e.policy(p, b)
			if p.mutates() && finding.Effect == EffectNone && request.Sent != nil {
				if before := e.sent().policy(p, b); before.Effect != EffectNone {
					finding = before
				}
			}
			findings = append(findings, finding)
		}
	}
	for _, b := range a.bindings {
		if !slices.ContainsFunc(a.policies, func(p *policy) bool { return b.kind == p.kind+"Binding" && b.spec.PolicyName == p.name }) {
			kind := strings.TrimSuffix(b.kind, "Binding")
			findings = append(findings, Finding{Kind: kind, Binding: b.name}.none(ReasonNoPolicy, "there is no %s %q, which it names", kind, b.spec.PolicyName))
		}
	}
	return findings, nil
}

// sent returns the explanation of the same request with the object as it was sent.
func (e *explanation) sent() *explanation {
	before := *e
	before.request.Object = e.request.Sent
	before.mutating = before.request.attributes(true)
	return &before
}

// bindingsOf returns the bindings of a policy.
func (a *Admission) bindingsOf(p *policy) []*binding {
	return slices.DeleteFunc(slices.Clone(a.bindings), func(b *binding) bool {
		return b.kind != p.kind+"Binding" || b.spec.PolicyName != p.name
	})
}

// lookUp gets the namespace of the request from the Cluster.
func (e *explanation) lookUp(name string) namespaceLookup {
	if name == "" {
		return namespaceLookup{}
	}
	fields, err := e.cluster.Namespace(e.ctx, name)
	if err != nil || fields == nil {
		return namespaceLookup{err: err}
	}
	known := &corev1.Namespace{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(fields, known)
	return namespaceLookup{known: known, err: err}
}

// criteria decide whether a webhook, policy or binding matches a request. They do not include match
// conditions.
type criteria struct {
	*admissionregistrationv1.MatchResources
	anyRule bool // without rules, each request matches
}

// GetParsedNamespaceSelector implements namespace.NamespaceSelectorProvider.
func (c criteria) GetParsedNamespaceSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(c.NamespaceSelector)
}

// GetParsedObjectSelector implements object.ObjectSelectorProvider.
func (c criteria) GetParsedObjectSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(c.ObjectSelector)
}

// GetMatchResources implements matching.MatchCriteria.
func (c criteria) GetMatchResources() admissionregistrationv1.MatchResources {
	return *c.MatchResources
}

// criteriaOf returns the criteria of a policy or binding.
func criteriaOf(m *admissionregistrationv1.MatchResources) criteria {
	return criteria{m, len(m.ResourceRules) == 0}
}

// matched is the resource and kind that matched: a webhook or policy gets the object in this
// version.
type matched struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
}

// whyNot says why criteria do not match. Err is set if the reason is an error.
type whyNot struct {
	reason  Reason
	text    string
	err     error
	unknown string
}

// as returns the Finding for whyNot. Prefix comes before the text of a reason.
func (w *whyNot) as(f Finding, prefix string, ignore bool) Finding {
	switch {
	case w.unknown != "":
		return f.unknown("%s", w.unknown)
	case w.err != nil:
		return f.failed(ignore, w.err)
	default:
		return f.none(w.reason, "%s%s", prefix, w.text)
	}
}

// match compares criteria with the request. It compares the rules first, because an author looks
// there first for a mistake. An API server compares the selectors first, with the same result: all
// criteria must match, and an error of a selector counts only if the rules match.
func (e *explanation) match(c criteria, attributes admission.Attributes) (matched, *whyNot) {
	if is, _, err := e.anyOf(c.ExcludeResourceRules, *c.MatchPolicy, attributes); is || err != nil {
		return matched{}, &whyNot{reason: ReasonExcluded, text: "excludeResourceRules match the request", err: err}
	}
	found := matched{resource: attributes.GetResource(), kind: attributes.GetKind()}
	if !c.anyRule {
		is, as, err := e.anyOf(c.ResourceRules, *c.MatchPolicy, attributes)
		switch {
		case err != nil:
			return matched{}, &whyNot{err: err}
		case !is:
			return matched{}, e.whyNoRule(c, attributes)
		}
		found = as
	}
	byNamespace, byObject := e.matchNamespace(c, attributes), e.matchObject(c, attributes)
	if byNamespace == nil || byNamespace.unknown != "" && byObject != nil {
		return found, byObject
	}
	return found, byNamespace
}

func (e *explanation) matchNamespace(c criteria, attributes admission.Attributes) *whyNot {
	selector, invalid := c.GetParsedNamespaceSelector()
	if invalid == nil && !selector.Empty() && e.request.NotKnown != "" && comparesObject(attributes) {
		return &whyNot{unknown: "the namespace is not known, whose labels the namespaceSelector compares: " + e.request.NotKnown}
	}
	matcher := &namespace.Matcher{NamespaceLister: namespaceLister{lookup: e.lookup}}
	is, err := matcher.MatchNamespaceSelector(c, attributes)
	switch {
	case err != nil && invalid == nil && e.lookup == (namespaceLookup{}) && !comparesObject(attributes): // errNoNamespace
		return &whyNot{err: apierrors.NewNotFound(namespacesResource(), attributes.GetNamespace())}
	case err != nil && e.lookup.err != nil:
		return &whyNot{unknown: fmt.Sprintf("namespace %q is not known: %v", attributes.GetNamespace(), e.lookup.err)}
	case err != nil:
		return &whyNot{err: err}
	case is:
		return nil
	}
	given, _ := matcher.GetNamespaceLabels(attributes)
	return &whyNot{reason: ReasonNamespaceSelector, text: fmt.Sprintf("the namespaceSelector does not match namespace %q: %s", attributes.GetNamespace(), unmatched(selector, given))}
}

// comparesObject reports whether a namespaceSelector compares the labels of the object, as it does for the
// creation and the update of a namespace, and not the labels of the namespace on the API server.
func comparesObject(attributes admission.Attributes) bool {
	return attributes.GetResource().GroupResource() == namespacesResource() && attributes.GetSubresource() == "" && attributes.GetOperation() != admission.Delete
}

func (e *explanation) matchObject(c criteria, attributes admission.Attributes) *whyNot {
	selector, err := c.GetParsedObjectSelector()
	if err == nil && !selector.Empty() && e.request.NotKnown != "" {
		return &whyNot{unknown: "the object is not known, which the objectSelector compares: " + e.request.NotKnown}
	}
	is, statusErr := (&object.Matcher{}).MatchObjectSelector(c, attributes)
	switch {
	case statusErr != nil:
		return &whyNot{err: statusErr}
	case is:
		return nil
	}
	var texts []string
	labeled := false
	for _, fields := range []map[string]any{e.request.Object, e.request.OldObject} {
		if fields != nil && attributes.GetOperation() != admission.Connect {
			given := (&unstructured.Unstructured{Object: fields}).GetLabels()
			labeled = labeled || len(given) > 0
			texts = append(texts, unmatched(selector, given))
		}
	}
	text := "the objectSelector does not match the object: " + strings.Join(texts, "; nor the old object: ")
	switch {
	case len(texts) == 0:
		text = "the options of a connect request have no metadata, so no objectSelector matches them"
	case !labeled:
		text = fmt.Sprintf("the %s has no labels, so the objectSelector does not match: %s", attributes.GetKind().Kind, texts[0])
	}
	return &whyNot{reason: ReasonObjectSelector, text: text}
}

// anyOf reports whether one of the rules matches, and in which resource and kind. It uses the API
// server's predicate for policies, which includes everything that webhooks need.
func (e *explanation) anyOf(list []admissionregistrationv1.NamedRuleWithOperations, matchPolicy admissionregistrationv1.MatchPolicyType, attributes admission.Attributes) (bool, matched, error) {
	if len(list) == 0 {
		return false, matched{}, nil
	}
	only := criteria{MatchResources: &admissionregistrationv1.MatchResources{
		ResourceRules: list, MatchPolicy: &matchPolicy,
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
	}}
	is, resource, kind, err := matching.NewMatcher(nil, nil).Matches(attributes, objectInterfaces{mapper: e.cluster}, only)
	return is, matched{resource, kind}, err
}

// whyNoRule returns why no rule matches.
func (e *explanation) whyNoRule(c criteria, attributes admission.Attributes) *whyNot {
	if e.brief {
		return &whyNot{reason: ReasonResource}
	}
	if len(c.ResourceRules) == 0 {
		return &whyNot{reason: ReasonResource, text: "it has no rules"}
	}
	if *c.MatchPolicy == admissionregistrationv1.Exact {
		if is, as, _ := e.anyOf(c.ResourceRules, admissionregistrationv1.Equivalent, attributes); is {
			return &whyNot{reason: ReasonMatchPolicy, text: fmt.Sprintf("matchPolicy is Exact, the rules have %s, the request is for %s", as.resource.GroupVersion(), attributes.GetResource().GroupVersion())}
		}
	}
	var closest part
	most := -1
	for _, rule := range c.ResourceRules {
		parts := partsOf(rule)
		first := slices.IndexFunc(parts, func(p part) bool { return !p.matches(rule, attributes) })
		if first > most {
			closest, most = parts[first], first
		}
	}
	which := "the rule has"
	if len(c.ResourceRules) > 1 {
		which = "the rule that matches best has"
	}
	return &whyNot{reason: closest.reason, text: fmt.Sprintf("%s %s %s, the request has %s", which, closest.name, strings.Join(closest.has, ", "), closest.got(attributes))}
}

// part is one part of a rule.
type part struct {
	reason Reason
	name   string
	has    []string
	// only reduces the rule to this part. The other parts match everything.
	only func(every, rule *admissionregistrationv1.RuleWithOperations)
	got  func(admission.Attributes) string
}

// partsOf returns the parts of a rule in the order in which they are compared. The closest rule is
// the rule of which the most parts match.
func partsOf(rule admissionregistrationv1.NamedRuleWithOperations) []part {
	type ruleOf = admissionregistrationv1.RuleWithOperations
	scope := admissionregistrationv1.AllScopes
	if rule.Scope != nil {
		scope = *rule.Scope
	}
	return []part{
		{ReasonGroup, "apiGroups", quoted(rule.APIGroups), func(every, r *ruleOf) { every.APIGroups = r.APIGroups }, func(a admission.Attributes) string { return fmt.Sprintf("%q", a.GetResource().Group) }},
		{ReasonResource, "resources", rule.Resources, func(every, r *ruleOf) { every.Resources = withAnySubresource(r.Resources) }, resourceIn},
		{ReasonSubresource, "resources", rule.Resources, func(every, r *ruleOf) { every.Resources = r.Resources }, resourceIn},
		{ReasonVersion, "apiVersions", rule.APIVersions, func(every, r *ruleOf) { every.APIVersions = r.APIVersions }, func(a admission.Attributes) string { return a.GetResource().Version }},
		{ReasonOperation, "operations", strings.Fields(strings.Trim(fmt.Sprint(rule.Operations), "[]")), func(every, r *ruleOf) { every.Operations = r.Operations }, func(a admission.Attributes) string { return string(a.GetOperation()) }},
		{ReasonScope, "scope", []string{string(scope)}, func(every, r *ruleOf) { every.Scope = r.Scope }, scopeOf},
		{ReasonResourceName, "resourceNames", rule.ResourceNames, nil, func(a admission.Attributes) string { return fmt.Sprintf("%q", a.GetName()) }},
	}
}

// matches reports whether this part of a rule matches, according to the API server's predicate.
func (p part) matches(rule admissionregistrationv1.NamedRuleWithOperations, attributes admission.Attributes) bool {
	if p.only == nil {
		return false
	}
	every := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
	}
	p.only(&every, &rule.RuleWithOperations)
	return (&rules.Matcher{Rule: every, Attr: attributes}).Matches()
}

func quoted(texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, text := range texts {
		out = append(out, fmt.Sprintf("%q", text))
	}
	return out
}

func withAnySubresource(resources []string) []string {
	out := make([]string, 0, len(resources))
	for _, resource := range resources {
		name, _, _ := strings.Cut(resource, "/")
		out = append(out, name+"/*")
	}
	return out
}

func resourceIn(a admission.Attributes) string {
	if a.GetSubresource() == "" {
		return a.GetResource().Resource
	}
	return a.GetResource().Resource + "/" + a.GetSubresource()
}

func scopeOf(a admission.Attributes) string {
	if a.GetNamespace() == "" || a.GetResource().GroupResource() == namespacesResource() {
		return "a cluster-scoped resource"
	}
	return "a namespaced resource"
}

// unmatched describes the first requirement of a selector that labels do not meet.
func unmatched(selector labels.Selector, given map[string]string) string {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if r.Matches(labels.Set(given)) {
			continue
		}
		value, has := given[r.Key()]
		is := fmt.Sprintf("label %q is missing", r.Key())
		if has {
			is = fmt.Sprintf("label %q is %q", r.Key(), value)
		}
		values := strings.Join(quoted(r.ValuesUnsorted()), " or ")
		switch r.Operator() {
		case "in", "=", "==":
			return is + ", want " + values
		case "notin", "!=":
			return is + ", want another value"
		case "exists":
			return is
		default: // "!"
			return is + ", want no such label"
		}
	}
	return "it matches nothing"
}
