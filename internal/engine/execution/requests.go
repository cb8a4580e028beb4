package execution

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Of returns the requests of a scenario as far as they are known before it runs: a
// create for each object that it is given or installs, a delete for each object that it
// removes, and the requests of its steps. Placeholders are not replaced. Namespace is
// empty if it is the namespace of the scenario.
//
// A step without a valid request is left out; running it reports the problem.
func Of(s scenario.Scenario) []framework.Request {
	return append(Given(s), Composer{Namespaced: unknown}.Steps(s)...)
}

// Given returns the requests that create what a scenario is given.
func Given(s scenario.Scenario) []framework.Request { return installed(s.Spec.Given) }

// Steps returns the requests of the steps and webhooks of a scenario, as far as they are known before it
// runs.
func (c Composer) Steps(s scenario.Scenario) []framework.Request {
	var out []framework.Request
	_ = EachStep(s.Spec, func(_ string, step scenario.Step) error { // it returns no error
		out = append(out, c.requests(step)...)
		return nil
	})
	return out
}

// unknown is the Composer.Namespaced of an API server that is not started yet: it leaves the
// namespace empty.
func unknown(schema.GroupVersionKind) (bool, error) { return false, nil }

// NeedsMetrics reports whether the metrics of the API server must be read to know whether
// it can run the scenario, or for one of its steps.
func NeedsMetrics(s scenario.Scenario) bool {
	plugins := slices.ContainsFunc(s.Spec.Needs, func(need string) bool { return strings.HasPrefix(need, framework.PluginPrefix) })
	reads := slices.ContainsFunc(s.Spec.When, func(step scenario.Step) bool { return step.Metrics != nil })
	return s.Spec.FeatureGate != "" || plugins || reads
}

// requests returns the requests of one step.
func (c Composer) requests(step scenario.Step) []framework.Request {
	out := installed(step.Install)
	for _, ref := range step.Remove {
		out = append(out, framework.Request{Verb: framework.VerbDelete, Kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), Name: ref.Name})
	}
	if step.Wait != nil {
		step.Get = &step.Wait.ObjectReference
	}
	if request, _, err := c.Compose(step); err == nil { // another step has no request for an object
		out = append(out, request)
	}
	return out
}

func installed(manifests []map[string]any) []framework.Request {
	var out []framework.Request
	for _, manifest := range manifests {
		kind, _ := object.Kind(manifest) // without one, the kind is the zero value
		subject := &unstructured.Unstructured{Object: manifest}
		request := framework.Request{Verb: framework.VerbCreate, Kind: kind, Name: subject.GetName(), Object: subject}
		out = append(out, request)
		if manifest["status"] != nil && kind.Kind != "CustomResourceDefinition" && !object.IsAdmission(manifest) {
			request.Verb, request.Subresource = framework.VerbUpdate, "status"
			out = append(out, request)
		}
	}
	return out
}
