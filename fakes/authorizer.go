package fakes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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
type rule struct{ user, verb, resource string }

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
// matches every value. Write a subresource as "pods/exec". For a request that is not about a
// resource, give the path: "/healthz".
func (a *Authorizer) Unless(user, verb, resource string) *Authorizer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unless = append(a.unless, rule{user, verb, resource})
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
			allow, why = !a.allow, fmt.Sprintf("by Unless(%q, %q, %q)", r.user, r.verb, r.resource)
			break
		}
	}
	if allow {
		return authorizer.DecisionAllow, "fakes.Authorizer allows it " + why, nil
	}
	return authorizer.DecisionNoOpinion, "fakes.Authorizer does not allow it " + why, nil
}

// matches reports whether the rule is about the request.
func (r rule) matches(asked authorizer.AttributesRecord) bool {
	name := ""
	if asked.User != nil {
		name = asked.User.GetName()
	}
	what := asked.Path
	if asked.ResourceRequest {
		what = strings.TrimSuffix(asked.Resource+"/"+asked.Subresource, "/")
	}
	return covers(r.user, name) && covers(r.verb, asked.Verb) && covers(r.resource, what)
}

// covers reports whether a pattern matches a value.
func covers(pattern, value string) bool { return pattern == "*" || pattern == value }

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
