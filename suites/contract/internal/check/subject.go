package check

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// Subject describes the plugin to check, and how to test it. Source is required.
type Subject struct {
	// Name is the name of the plugin in messages. Empty means the name of the test.
	Name string
	// Source builds the plugin. Each check builds new plugins. Required.
	Source harness.Source
	// World has the options of the fake cluster of each plugin, such as its objects, schemes and
	// mappings. Nil means an empty World.
	World []fakes.Option
	// Inject returns Injectors for values that your API server injects and other API servers do
	// not. Nil means that there are none.
	Inject func(*fakes.World) []fakes.Injector
	// Scheme has the types of the objects in requests, if the World's schemes do not have them. Nil
	// means that they do.
	Scheme *runtime.Scheme
	// Config is the configuration of the plugin. Empty means none.
	Config string
	// Configs has more configurations, for the rules about the factory.
	Configs Configs
	// Allow has requests that the plugin must admit. Reject has requests that the plugin must
	// refuse. Choose requests that reach every branch: each operation that the plugin handles, and
	// objects that it changes. Without requests, most rules are inconclusive.
	Allow, Reject []framework.Request
	// RejectWith has more requests that the plugin refuses, each with the refusal that it
	// must get.
	RejectWith []Refusal
	// AnnotationPrefix is the prefix of the keys of the plugin's audit annotations, such as
	// "podsecurity.example.com/". Empty means that the prefix is not checked.
	AnnotationPrefix string
	// Subresources are the subresources on which the plugin acts, such as "status" and "binding",
	// in addition to the resources of the requests. AnySubresource means all subresources.
	Subresources []string
	// Enforced are the JSON paths of fields in which the plugin intentionally overwrites the value
	// of the user, such as "metadata.labels[team]" and "spec.containers[].imagePullPolicy" ([]
	// means every element of the list). Fields below these paths are included. A path that no object
	// of the requests can have is reported as a mistake in the Subject.
	Enforced []string
}

// Refusal is a request that the plugin must refuse, and how. An empty Reason, Field or Text is not
// checked.
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
	// Valid has configurations that the factory must accept. Subject.Config is checked too, so it
	// need not be in Valid.
	Valid []string
	// Invalid has configurations that the factory must refuse.
	Invalid []string
	// Required means that the factory must refuse to build a plugin without a configuration.
	Required bool
}

// Requests returns all requests of the Subject: first those that it admits.
func (s Subject) Requests() []framework.Request {
	return append(append([]framework.Request{}, s.Allow...), s.Refused()...)
}

// Refused returns all requests that the plugin refuses.
func (s Subject) Refused() []framework.Request {
	refused := append([]framework.Request{}, s.Reject...)
	for _, each := range s.RejectWith {
		refused = append(refused, each.Request)
	}
	return refused
}
