package engine

import (
	"context"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Checker is a Provider that finds out, before anything is started or created,
// whether scenarios can be run at all: whether the operator has the rights for
// what they send, for instance.
type Checker interface {
	// Check returns an error where the scenarios cannot be run.
	Check(ctx context.Context, scenarios []scenario.Scenario) error
}

// Requests returns the requests of a scenario as far as they can be told before
// it runs: a creation for each object that it is given or installs, a deletion for
// each that it removes, and what its steps send. Placeholders stand as they are
// written, and Namespace is empty where it is the scenario's own.
//
// A step that means nothing is left out; running it tells what is wrong.
func Requests(s scenario.Scenario) []framework.Request {
	c := &scenarioCase{scenario: s, target: foreseen{}}
	out := installed(s.Spec.Given)
	out = append(out, c.requests(s.Spec.When)...)
	for _, h := range s.Spec.Hooks {
		out = append(out, c.requestsOf(h)...)
	}
	return out
}

// foreseen is a Target that is not there yet.
type foreseen struct{ Target }

// Namespaced leaves the namespace to be the scenario's own.
func (foreseen) Namespaced(schema.GroupVersionKind) (bool, error) { return false, nil }

func (c *scenarioCase) requests(steps []scenario.Step) []framework.Request {
	var out []framework.Request
	for _, step := range steps {
		switch {
		case step.Install != nil:
			out = append(out, installed(step.Install)...)
		case step.Remove != nil:
			for _, ref := range step.Remove {
				out = append(out, framework.Request{Verb: framework.VerbDelete, Kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), Name: ref.Name})
			}
		case step.Script != nil:
			for _, h := range step.Script {
				out = append(out, c.requestsOf(h)...)
			}
		case step.Wait != nil:
			out = append(out, c.requests([]scenario.Step{{Get: &step.Wait.ObjectReference}})...)
		case step.Parallel != nil:
			out = append(out, c.requests(step.Parallel)...)
		default:
			if request, _, err := c.compose(step); err == nil {
				out = append(out, request)
			}
		}
	}
	return out
}

// requestsOf are those that are sent while a webhook is being called.
func (c *scenarioCase) requestsOf(h scenario.Hook) []framework.Request {
	out := c.requests(h.Meanwhile)
	for _, reply := range h.Replies {
		out = append(out, c.requests(reply.Meanwhile)...)
	}
	return out
}

func installed(manifests []map[string]any) []framework.Request {
	var out []framework.Request
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{Object: manifest}
		out = append(out, framework.Request{Verb: framework.VerbCreate, Kind: kindOf(manifest), Name: object.GetName(), Object: object})
	}
	return out
}
