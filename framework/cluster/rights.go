package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
)

// ErrRights marks rights that are missing for what is to be done.
var ErrRights = errors.New("rights are missing")

// Intent is what somebody is about to do on a cluster.
type Intent struct {
	// Who wants it, to name: a scenario.
	Who string
	// Requests are what is sent. A Namespace that is empty, or has a placeholder in
	// it, is one that the run creates.
	Requests []framework.Request
	// Metrics means that the feature gates of the API server need to be known.
	Metrics bool
}

// right is one thing that the operator must be allowed to do.
type right struct {
	verb, group, resource, subresource string
	// name is that of the one object, and namespace that of the one namespace, that
	// it is about. Empty are all.
	name, namespace string
	// path is what is read instead of a resource.
	path string
}

// String is as in an error: "create pods/portforward", "impersonate groups
// system:masters", "update deployments.apps".
func (r right) String() string {
	if r.path != "" {
		return r.verb + " " + r.path
	}
	text := cmp.Or(r.verb, `""`) + " " + r.resource
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.name
	}
	if r.namespace != "" {
		text += " in namespace " + r.namespace
	}
	return text
}

// rightsNamespace stands in reviews for the namespaces of a run, of which none is
// there yet: only rights in all namespaces are rights in it.
const rightsNamespace = "at-run-scenario"

// CheckRights finds out, by one review for an administrator and one more for each
// right that the first does not tell of, whether the operator may do all that is
// intended, and what the Target does about it: install, fence off, remove. The
// error, an ErrRights, names each right that is missing and who needs it. Nothing
// is created.
//
// Where the API server does not say who may what, nothing is taken to be missing.
func CheckRights(ctx context.Context, options Options, intents []Intent) error {
	t, err := newClient(options)
	if err != nil {
		return err
	}
	defer t.client.CloseIdleConnections()
	granted, err := t.rules(ctx)
	if err != nil || granted.all() {
		return err
	}
	if err := t.learn(ctx, options.Config); err != nil {
		return err
	}
	missing, err := t.denied(ctx, granted, t.resources.wanted(intents))
	if err != nil || len(missing) == 0 {
		return err
	}
	user := t.info.User
	if user == "" {
		user = "the user"
	}
	return fmt.Errorf("%s may not do all that is to be done: %w: %s; nothing was created; docs/rbac.yaml has all rights that a run needs, and --skip leaves out the scenarios that need these",
		user, ErrRights, strings.Join(missing, ", "))
}

// denied returns the rights that are not granted, as texts with who needs them.
func (t *Target) denied(ctx context.Context, granted rules, wanted map[right][]string) ([]string, error) {
	var mu sync.Mutex
	var missing []right
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(removeParallel)
	for one := range wanted {
		if granted.cover(one) {
			continue
		}
		g.Go(func() error {
			allowed, err := t.may(ctx, one)
			if err == nil && !allowed {
				mu.Lock()
				missing = append(missing, one)
				mu.Unlock()
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(missing, func(a, b right) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.String(), b.String()))
	})
	texts := make([]string, len(missing))
	for i, one := range missing {
		texts[i] = one.String()
		if whom := wanted[one]; len(whom) > 0 {
			slices.Sort(whom)
			whom = slices.Compact(whom)
			if len(whom) > 2 {
				whom = append(whom[:1:1], fmt.Sprintf("%d more", len(whom)-1))
			}
			texts[i] += " (" + strings.Join(whom, " and ") + ")"
		}
	}
	return texts, nil
}

// may asks for one right.
func (t *Target) may(ctx context.Context, one right) (bool, error) {
	spec := map[string]any{"resourceAttributes": map[string]any{
		"verb": one.verb, "group": one.group, "resource": one.resource, "subresource": one.subresource,
		"name": one.name, "namespace": one.namespace,
	}}
	if one.path != "" {
		spec = map[string]any{"nonResourceAttributes": map[string]any{"verb": one.verb, "path": one.path}}
	}
	fields, err := t.review(ctx, "SelfSubjectAccessReview", spec)
	if fields == nil || err != nil {
		return err == nil, err
	}
	status, _ := fields["status"].(map[string]any)
	allowed, _ := status["allowed"].(bool)
	return allowed, nil
}

// review asks the API server about the operator. It is nil where that is refused.
func (t *Target) review(ctx context.Context, kind string, spec map[string]any) (map[string]any, error) {
	answer, err := t.request(ctx, call{
		method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/" + strings.ToLower(kind) + "s",
		body: mustJSON(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}),
	}, http.StatusForbidden, http.StatusNotFound)
	if err != nil || !answer.Allowed() {
		return nil, err
	}
	return answer.Fields(), nil
}

// rules are what the API server says in one review of rules.
type rules struct{ resources, paths []map[string]any }

// rules asks for the rights in all namespaces. What they do not cover may be
// granted all the same: not every authorizer can list its rules.
func (t *Target) rules(ctx context.Context) (rules, error) {
	fields, err := t.review(ctx, "SelfSubjectRulesReview", map[string]any{"namespace": rightsNamespace})
	if err != nil {
		return rules{}, fmt.Errorf("ask API server at %s for the rights: %w", t.options.Config.Host, err)
	}
	list := func(name string) []map[string]any {
		var out []map[string]any
		items, _ := nestedSlice(fields, "status", name)
		for _, item := range items {
			if rule, ok := item.(map[string]any); ok {
				out = append(out, rule)
			}
		}
		return out
	}
	return rules{resources: list("resourceRules"), paths: list("nonResourceRules")}, nil
}

// all reports whether everything is granted.
func (r rules) all() bool {
	return r.cover(right{verb: "*", group: "*", resource: "*"}) && r.cover(right{verb: "*", path: "*"})
}

// cover reports whether a right is granted.
func (r rules) cover(one right) bool {
	has := func(rule map[string]any, field, wanted string) bool {
		list := texts(rule[field])
		return slices.Contains(list, "*") || slices.Contains(list, wanted)
	}
	if one.path != "" {
		return slices.ContainsFunc(r.paths, func(rule map[string]any) bool {
			return has(rule, "verbs", one.verb) && has(rule, "nonResourceURLs", one.path)
		})
	}
	resource := one.resource
	if one.subresource != "" {
		resource += "/" + one.subresource
	}
	return slices.ContainsFunc(r.resources, func(rule map[string]any) bool {
		named := texts(rule["resourceNames"])
		return has(rule, "verbs", one.verb) && has(rule, "apiGroups", one.group) && has(rule, "resources", resource) &&
			(len(named) == 0 || one.name != "" && slices.Contains(named, one.name))
	})
}

// want collects rights and who needs them.
type want struct {
	resources *resources
	rights    map[right][]string
}

// wanted returns all rights that intents need, each with those who need it; the
// run itself is nobody.
func (r *resources) wanted(intents []Intent) map[right][]string {
	w := want{resources: r, rights: map[right][]string{}}
	w.ofTheRun()
	for _, intent := range intents {
		for _, request := range intent.Requests {
			if request.Kind.Kind == "CustomResourceDefinition" {
				r.addCRD(fieldsOf(request))
			}
		}
	}
	for _, intent := range intents {
		if intent.Metrics {
			w.add(intent.Who, right{verb: "get", path: "/metrics"})
		}
		for _, request := range intent.Requests {
			w.ofRequest(intent.Who, request)
			w.ofReferences(intent, request)
		}
	}
	return w.rights
}

// add notes that somebody needs a right.
func (w want) add(who string, one right) {
	if old, known := w.rights[one]; !known || who != "" && len(old) > 0 {
		w.rights[one] = append(old, who)
	}
	if who == "" {
		w.rights[one] = nil
	}
}

// ofTheRun adds what a Target does whatever the scenarios: it makes and removes
// namespaces, and fences off.
func (w want) ofTheRun() {
	for _, verb := range []string{"create", "get", "list", "update", "patch", "delete"} {
		w.add("", right{verb: verb, resource: "namespaces"})
	}
	w.add("", right{verb: "update", resource: "namespaces", subresource: "finalize"})
	w.managed("", resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Deletable: true})
	for _, name := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		w.managed("", resource{GroupVersionResource: schema.GroupVersionResource{Group: admissionGroup, Version: "v1", Resource: name}, Deletable: true})
	}
	w.add("", right{verb: "list", group: "discovery.k8s.io", resource: "endpointslices", namespace: "default"})
}

// managed adds what it takes to make objects of a resource, change them, find them
// again and remove them.
func (w want) managed(who string, res resource) {
	verbs := []string{"create"}
	if res.Deletable {
		verbs = append(verbs, "get", "list", "update", "patch", "delete", "deletecollection")
	}
	for _, verb := range verbs {
		w.add(who, right{verb: verb, group: res.Group, resource: res.Resource})
	}
}

// ofRequest adds what it takes to send one request.
func (w want) ofRequest(who string, request framework.Request) {
	res, err := w.resources.of(request.Kind)
	if err != nil {
		return // nobody serves it, which running the scenario will tell
	}
	if request.User != nil {
		w.impersonates(who, *request.User)
	} else {
		one := right{verb: verbOf(request), group: res.Group, resource: res.Resource, subresource: request.Subresource}
		w.add(who, one)
	}
	if request.Verb == framework.VerbGet || request.Verb == framework.VerbList || res.Resource == "namespaces" || request.Subresource != "" {
		return
	}
	w.managed(who, res)
}

// verbOf is the verb of a request as authorizers know it. See
// https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
func verbOf(request framework.Request) string {
	switch request.Verb {
	case framework.VerbApply:
		return "patch"
	case framework.VerbConnect:
		switch request.Method {
		case http.MethodGet, http.MethodHead:
			return "get"
		case http.MethodPut:
			return "update"
		case http.MethodPatch:
			return "patch"
		case http.MethodDelete:
			return "delete"
		case "", http.MethodPost:
			return "create"
		default:
			return "" // OPTIONS has none
		}
	default:
		return string(request.Verb)
	}
}

// impersonates adds what it takes to act as somebody. A name with a placeholder in
// it may be any. See https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
func (w want) impersonates(who string, user framework.User) {
	orAny := func(name string) string {
		if strings.Contains(name, "$(") {
			return ""
		}
		return name
	}
	w.add(who, right{verb: "impersonate", resource: "users", name: orAny(user.Name)})
	for _, group := range user.Groups {
		w.add(who, right{verb: "impersonate", resource: "groups", name: orAny(group)})
	}
	if user.UID != "" {
		w.add(who, right{verb: "impersonate", group: "authentication.k8s.io", resource: "uids", name: orAny(user.UID)})
	}
	for key, values := range user.Extra {
		for _, value := range values {
			w.add(who, right{verb: "impersonate", group: "authentication.k8s.io", resource: "userextras", subresource: key, name: orAny(value)})
		}
	}
}

func fieldsOf(request framework.Request) map[string]any {
	if object, ok := request.Object.(interface{ UnstructuredContent() map[string]any }); ok {
		return object.UnstructuredContent()
	}
	return nil
}
