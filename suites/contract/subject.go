package contract

import (
	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"k8s.io/apimachinery/pkg/runtime"
)

// Subject is a plugin with all it takes to test it.
type Subject struct {
	// Name is how messages call the plugin. Empty means the name of the test.
	Name string
	// Source is where the plugin comes from. Required.
	Source harness.Source
	// World is what the World of each plugin is made of: its objects, schemes and
	// mappings. Nil means an empty one.
	World []fakes.Option
	// Inject returns what a plugin of a World is given besides what every API server
	// gives. Nil means nothing.
	Inject func(*fakes.World) []fakes.Injector
	// Scheme is that of the objects in requests, where the World does not know them.
	Scheme *runtime.Scheme
	// Config is the configuration that plugins are built with. Empty means none.
	Config string
	// Configs are configurations for the properties of the factory.
	Configs Configs
	// Allow are requests that the plugin admits, Reject those that it refuses. Good
	// ones reach every branch: each operation it handles, objects that it mutates.
	Allow, Reject []framework.Request
	// AnnotationPrefix is what the keys of its audit annotations begin with:
	// "podsecurity.example.com/". Empty leaves that unchecked.
	AnnotationPrefix string
	// Subresources are those that the plugin acts upon: "status", "binding". That it
	// acts upon all is AnySubresource.
	Subresources []string
}

// Configs are configurations of a plugin.
type Configs struct {
	// Valid ones are accepted. Subject.Config is one of them.
	Valid []string
	// Invalid ones are refused by the factory.
	Invalid []string
	// Required is true of a plugin that cannot do without one.
	Required bool
}

// seeds returns all requests of a Subject.
func (s Subject) seeds() []framework.Request {
	return append(append([]framework.Request{}, s.Allow...), s.Reject...)
}
