package contract

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// AnySubresource in Subject.Subresources means that the plugin acts on every subresource.
const AnySubresource = "*"

// Subject is a plugin with everything that is needed to test it.
type Subject struct {
	// Name is the name of the plugin in messages. Empty means the name of the test.
	Name string
	// Source returns new plugins. Required.
	Source harness.Source
	// World has options for the World of each plugin: its objects, schemes and mappings.
	// Nil means an empty World.
	World []fakes.Option
	// Inject returns what a plugin gets in addition to what every API server injects. Nil
	// means nothing.
	Inject func(*fakes.World) []fakes.Injector
	// Scheme is the scheme of the objects in requests if the World does not know it. Nil
	// means that the World does.
	Scheme *runtime.Scheme
	// Config is the configuration of the plugin. Empty means none.
	Config string
	// Configs has more configurations, for the rules about the factory.
	Configs Configs
	// Allow has requests that the plugin admits, Reject those that it refuses. Choose
	// requests that reach every branch: each operation that the plugin handles, and objects
	// that it changes. Without requests most rules are inconclusive.
	Allow, Reject []framework.Request
	// RejectWith has more requests that the plugin refuses, each with the refusal that it
	// must get.
	RejectWith []Refusal
	// AnnotationPrefix is the prefix of the keys of the plugin's audit annotations, such as
	// "podsecurity.example.com/". Empty means that the prefix is not checked.
	AnnotationPrefix string
	// Subresources are those on which the plugin acts, such as "status" and "binding".
	// AnySubresource means all. Empty means none, except those in Allow and Reject.
	Subresources []string
	// Enforced are the fields in which the plugin overwrites the value of the user, by their JSON
	// paths, such as "metadata.labels[team]" and "spec.containers[].imagePullPolicy". All
	// fields below them are included.
	Enforced []string
}

// Refusal is a request with the refusal that the plugin must answer it with. An empty
// Reason, Field or Text is not checked.
type Refusal struct {
	Request framework.Request
	// Reason is the reason of the Status, such as Forbidden.
	Reason metav1.StatusReason
	// Field is the field of one of the causes of the Status, such as "spec.replicas".
	Field string
	// Text is a part of the message of the Status.
	Text string
}

// Configs has configurations of a plugin.
type Configs struct {
	// Valid configurations are accepted. Subject.Config is valid too.
	Valid []string
	// Invalid configurations are refused by the factory.
	Invalid []string
	// Required means that the factory refuses to build a plugin without a configuration.
	Required bool
}

func (s Subject) internal() check.Subject {
	var refusals []check.Refusal
	for _, each := range s.RejectWith {
		refusals = append(refusals, check.Refusal(each))
	}
	return check.Subject{
		Name: s.Name, Source: s.Source, World: s.World, Inject: s.Inject, Scheme: s.Scheme,
		Config: s.Config, Configs: check.Configs(s.Configs),
		Allow: s.Allow, Reject: s.Reject, RejectWith: refusals,
		AnnotationPrefix: s.AnnotationPrefix, Subresources: s.Subresources, Enforced: s.Enforced,
	}
}
