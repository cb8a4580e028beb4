package fakes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Authorizer decides by rules and records the requests. It implements authorizer.Authorizer of
// every Kubernetes minor that this module supports: methods that later minors added to the
// interface decide by the same rules. Make an Authorizer with Allow or Deny. Its methods are safe
// for concurrent use.
type Authorizer struct {
	authorizer.AuthorizerFunc

	allow bool

	mu       sync.Mutex
	unless   []rule
	err      error
	requests []authorizer.AttributesRecord
	contexts []context.Context
}

var _ authorizer.Authorizer = &Authorizer{}

// rule is one call of Unless: a request that matches gets the opposite decision.
type rule struct {
	user, verb, resource string
	objects              []string
}

// Allow returns an Authorizer that allows everything but what [Authorizer.Unless] names.
func Allow() *Authorizer { return newAuthorizer(true) }

// Deny returns an Authorizer that allows only what [Authorizer.Unless] names. For other requests
// its decision is DecisionNoOpinion, as with RBAC, and not DecisionDeny. A plugin must refuse in
// both cases: a plugin that refuses only on DecisionDeny admits everything.
func Deny() *Authorizer { return newAuthorizer(false) }

func newAuthorizer(allow bool) *Authorizer {
	a := &Authorizer{allow: allow}
	a.AuthorizerFunc = a.Authorize // for the methods that AuthorizerFunc adds
	return a
}

// Unless reverses the decision for a user, verb and resource, and returns the Authorizer. "*"
// matches every value. Write a resource as for [Calls.Has]: "pods" of any group, "deployments.apps",
// "pods/exec". For a request that is not about a resource, give the path: "/healthz".
//
// With objects, the rule is only for these. Write an object as "namespace/name". Either part can be
// "*", which also matches the empty name of a list. A name alone is in any namespace or none:
//
//	fakes.Deny().Unless("joe", "get", "secrets", "blue/*").Unless("joe", "use", "teams.example.com", "red")
func (a *Authorizer) Unless(user, verb, resource string, objects ...string) *Authorizer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unless = append(a.unless, rule{user, verb, resource, slices.Clone(objects)})
	return a
}

// FailWith makes Authorize return this error with DecisionNoOpinion. FailWith(nil) makes the rules
// decide again. It returns the Authorizer.
func (a *Authorizer) FailWith(err error) *Authorizer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	return a
}

// Authorize implements authorizer.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if attributes == nil {
		return authorizer.DecisionNoOpinion, "", errors.New("authorize: the attributes are nil: give an authorizer.AttributesRecord")
	}
	asked := record(attributes)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, asked)
	a.contexts = append(a.contexts, ctx)
	if a.err != nil {
		return authorizer.DecisionNoOpinion, "", a.err
	}
	allow, why := a.allow, "by default"
	for _, r := range a.unless {
		if r.matches(asked) {
			allow, why = !a.allow, fmt.Sprintf("by Unless(%s)", r)
			break
		}
	}
	if allow {
		return authorizer.DecisionAllow, "fakes.Authorizer allows it " + why, nil
	}
	return authorizer.DecisionNoOpinion, "fakes.Authorizer does not allow it " + why, nil
}

// String returns the arguments of Unless.
func (r rule) String() string {
	quoted := make([]string, 0, 3+len(r.objects))
	for _, argument := range append([]string{r.user, r.verb, r.resource}, r.objects...) {
		quoted = append(quoted, strconv.Quote(argument))
	}
	return strings.Join(quoted, ", ")
}

// matches reports whether the rule is about the request.
func (r rule) matches(asked authorizer.AttributesRecord) bool {
	name := ""
	if asked.User != nil {
		name = asked.User.GetName()
	}
	if !equals(r.user, name) || !equals(r.verb, asked.Verb) {
		return false
	}
	if !asked.ResourceRequest {
		return equals(r.resource, asked.Path) && len(r.objects) == 0
	}
	return covers(r.resource, schema.GroupResource{Group: asked.APIGroup, Resource: asked.Resource}, asked.Subresource) &&
		(len(r.objects) == 0 || slices.ContainsFunc(r.objects, func(object string) bool {
			namespace, name, namespaced := strings.Cut(object, "/")
			if !namespaced {
				namespace, name = "*", object
			}
			return equals(namespace, asked.Namespace) && equals(name, asked.Name)
		}))
}

// equals reports whether a value is this one, or "*" was given for every value.
func equals(given, value string) bool { return given == "*" || given == value }

// record copies the attributes of a request.
func record(asked authorizer.Attributes) authorizer.AttributesRecord {
	fieldRequirements, fieldErr := asked.GetFieldSelector()
	labelRequirements, labelErr := asked.GetLabelSelector()
	return authorizer.AttributesRecord{
		User: copyUser(asked.GetUser()), Verb: asked.GetVerb(), Namespace: asked.GetNamespace(),
		APIGroup: asked.GetAPIGroup(), APIVersion: asked.GetAPIVersion(),
		Resource: asked.GetResource(), Subresource: asked.GetSubresource(), Name: asked.GetName(),
		ResourceRequest: asked.IsResourceRequest(), Path: asked.GetPath(),
		FieldSelectorRequirements: fieldRequirements, FieldSelectorParsingErr: fieldErr,
		LabelSelectorRequirements: labelRequirements, LabelSelectorParsingErr: labelErr,
	}
}

// copyUser returns a copy of the user, so that later changes are not in the record. Nil for nil.
func copyUser(info user.Info) user.Info {
	if info == nil {
		return nil
	}
	extra := maps.Clone(info.GetExtra())
	for key, values := range extra {
		extra[key] = slices.Clone(values)
	}
	return &user.DefaultInfo{Name: info.GetName(), UID: info.GetUID(), Groups: slices.Clone(info.GetGroups()), Extra: extra}
}

// Requests returns the attributes of the calls of Authorize, in order.
func (a *Authorizer) Requests() []authorizer.AttributesRecord {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Contexts returns the contexts of the calls of Authorize, in the order of Requests.
func (a *Authorizer) Contexts() []context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.contexts)
}
