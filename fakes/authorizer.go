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

// Authorizer answers by rules and records what it was asked. It has every method of
// the authorizer.Authorizer of the Kubernetes version it is compiled against: methods
// that later minors have added answer by the same rules. Make it with Allow or Deny; its
// methods are safe to call from many goroutines.
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

// rule is one Unless.
type rule struct{ user, verb, resource string }

// Allow returns an Authorizer that allows everything, [Authorizer.Unless] told otherwise.
func Allow() *Authorizer { return newAuthorizer(true) }

// Deny returns an Authorizer that allows nothing, Unless told otherwise. It answers as
// RBAC does, NoOpinion: a plugin that looks for DecisionDeny alone lets everything pass.
func Deny() *Authorizer { return newAuthorizer(false) }

func newAuthorizer(allow bool) *Authorizer {
	a := &Authorizer{allow: allow}
	a.AuthorizerFunc = a.Authorize // for the methods that AuthorizerFunc adds
	return a
}

// Unless has the Authorizer decide the opposite for a user, verb and resource; "*" is
// every one, a subresource is written "pods/exec", a path that is no resource's with
// its slash, "/healthz".
func (a *Authorizer) Unless(user, verb, resource string) *Authorizer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unless = append(a.unless, rule{user, verb, resource})
	return a
}

// FailWith has the Authorizer answer every question with this error and no opinion. Nil
// ends that.
func (a *Authorizer) FailWith(err error) *Authorizer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	return a
}

// Authorize implements authorizer.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if attributes == nil {
		return authorizer.DecisionNoOpinion, "", errors.New("authorize: the attributes are nil: ask with an authorizer.AttributesRecord")
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

// matches is whether the rule is about the request.
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

// covers is whether a pattern means this one or every one.
func covers(pattern, value string) bool { return pattern == "*" || pattern == value }

// record copies what was asked.
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

// copyUser returns the user as it is now; nil stays nil.
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

// Requests returns what was asked, in order, and Contexts with which contexts.
func (a *Authorizer) Requests() []authorizer.AttributesRecord {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Contexts returns the contexts of the Requests.
func (a *Authorizer) Contexts() []context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.contexts)
}
