package execution

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
)

// errorsOf returns how errors about a manifest of the scenario are written. Path is its path in the
// spec: "given[1]".
func (c *Case) errorsOf(path string, manifest map[string]any) expect.Manifest {
	return expect.Manifest{
		Object: manifest, Name: c.describeAt(path, manifest),
		At: func(field, message, hint string) *scenario.Error {
			return c.Scenario.ErrorAt(path, field, message, hint)
		},
		In: func(field string, at [2]int, message string) *scenario.Error {
			return c.Scenario.ErrorIn(path, field, at, message)
		},
		// Without the reason, the author of a file cannot mend it. Secrets are not shown anyway.
		Private: c.Scenario.FromFile(path) && kindOf(manifest).Kind == "Secret",
	}
}

// asMistake returns a expect.MistakeError if an API server refused a manifest because it is not valid, or
// stores something else. It returns any other error unchanged. Path is the path of the
// manifest in the spec: "given[1]".
func (c *Case) asMistake(err error, path string, manifest map[string]any) error {
	if lost := (*framework.ManifestError)(nil); errors.As(err, &lost) {
		return &expect.MistakeError{Problems: []*scenario.Error{c.Scenario.ErrorAt(path, lost.Field, fmt.Sprintf("%s: %v", c.describeAt(path, manifest), lost.Err), "")}, Cause: err}
	}
	return c.errorsOf(path, manifest).OfRefusal(err)
}

// describeAt names a manifest at a field path of the spec: "given[1] ConfigMap a". A case of a PolicyTest
// has no spec in its file.
func (c *Case) describeAt(path string, manifest map[string]any) string {
	if c.Scenario.IsPolicyTest() {
		return object.Describe(manifest)
	}
	return path + " " + object.Describe(manifest)
}

// misspelt returns a expect.MistakeError if a step sent fields that the API server does not know. A step
// that says by options.fieldValidation what is to happen, expects warnings or has a raw
// body is about such fields, and has none that are a mistake.
func (c *Case) misspelt(step scenario.Step, result framework.Result) error {
	if _, set := step.Options[fieldValidation]; set || step.Body != nil || step.Then != nil && step.Then.Warnings != nil {
		return nil
	}
	path, manifest := c.sent(step)
	if manifest == nil {
		return nil
	}
	var problems []*scenario.Error
	for _, warning := range result.Warnings {
		if problem := c.errorsOf(path, manifest).OfWarning(warning); problem != nil {
			problems = append(problems, problem)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	for _, problem := range problems {
		if c.Scenario.IsPolicyTest() {
			break // a case of a PolicyTest has no options
		}
		problem.Hint += "; if the scenario is about such fields, write options: {fieldValidation: Warn}"
	}
	return &expect.MistakeError{Problems: problems}
}

// fieldValidation is the option of a request by which an API server refuses unknown fields.
// See https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation
const fieldValidation = "fieldValidation"

// sent returns the manifest that a step sends and its path in the spec, or nil.
func (c *Case) sent(step scenario.Step) (string, map[string]any) {
	switch {
	case step.Create != nil:
		return c.path + ".create", step.Create
	case step.Update != nil:
		return c.path + ".update", step.Update
	case step.Apply != nil:
		return c.path + ".apply", step.Apply
	case step.Patch != nil:
		patch := map[string]any{"apiVersion": step.Patch.APIVersion, "kind": step.Patch.Kind, "metadata": map[string]any{"name": step.Patch.Name}}
		for name, set := range map[string]bool{".json": step.Patch.JSON != nil, ".merge": step.Patch.Merge != nil, ".strategic": step.Patch.Strategic != nil} {
			if set {
				return c.path + ".patch" + name, patch
			}
		}
		return c.path + ".patch", patch
	default:
		return "", nil
	}
}

// unchangeable returns a expect.MistakeError if an update of a PolicyTest changes what an API server ignores or
// refuses in it: the policies would decide about an object that is not the one in the file.
func (c *Case) unchangeable(step scenario.Step, request framework.Request) error {
	if !c.Scenario.IsPolicyTest() || step.Patch == nil || step.Patch.Merge == nil {
		return nil
	}
	var problems []*scenario.Error
	ignored := func(field, hint string) {
		problems = append(problems, c.Scenario.ErrorAt(c.path+".patch.merge", field, field+": the API server does not take this field in an update, so the policies would not meet it", hint))
	}
	merge := step.Patch.Merge
	spec, _ := merge["spec"].(map[string]any)
	if request.Subresource == "" && request.Kind == schema.FromAPIVersionAndKind("v1", "Pod") && spec["ephemeralContainers"] != nil {
		ignored("spec.ephemeralContainers", "use subresource: ephemeralcontainers")
	}
	if request.Subresource == "" && merge["status"] != nil && c.hasStatus(request.Kind) {
		ignored("status", "write it in old too, or use subresource: status")
	}
	for _, field := range slices.Sorted(maps.Keys(merge)) {
		if request.Subresource == "status" && field != "status" && field != "metadata" {
			ignored(field, "write it in old too, or leave out subresource")
		}
	}
	metadata, _ := merge["metadata"].(map[string]any)
	for _, field := range []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "selfLink"} {
		if metadata[field] != nil {
			ignored("metadata."+field, "write it in old too, or remove it")
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &expect.MistakeError{Problems: problems}
}
