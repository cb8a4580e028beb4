package execution

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// writtenFields are the fields that a scenario writes itself, so that it can expect that the API server or a
// conversion drops them: in manifests, patches, and the schemas of its CustomResourceDefinitions.
type writtenFields struct {
	// paths are paths of names without the items of lists, each name ended by "\x00".
	paths map[string]bool
	// texts have field names that are not known as such: bodies, and the expressions of policies that
	// mutate.
	texts []string
}

// writesField reports whether the scenario itself writes a field.
func (c *Case) writesField(path []any) bool {
	var names []string
	for _, step := range path {
		if name, ok := step.(string); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return true
	}
	written := c.written()
	for ; len(names) > 0; names = names[1:] {
		if written.paths[pathOf(names)] {
			return true
		}
		if names[0] != "items" {
			break // the objects of a list are written one at a time
		}
	}
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(names[len(names)-1]) + `\b`)
	return slices.ContainsFunc(written.texts, word.MatchString)
}

func pathOf(names []string) string { return strings.Join(names, "\x00") + "\x00" }

// written returns what the scenario writes.
func (c *Case) written() writtenFields {
	w := writtenFields{paths: map[string]bool{}}
	for _, manifest := range c.Given {
		w.manifest(manifest)
	}
	w.steps(c.Scenario.Spec.When)
	w.hooks(c.Scenario.Spec.Hooks)
	return w
}

func (w *writtenFields) steps(steps []scenario.Step) {
	for _, step := range steps {
		for _, manifest := range append(slices.Clone(step.Install), step.Create, step.Update, step.Apply) {
			w.manifest(manifest)
		}
		if patch := step.Patch; patch != nil {
			w.value(nil, patch.Merge)
			w.value(nil, patch.Strategic)
			w.patch(patch.JSON)
		}
		if step.Body != nil {
			w.texts = append(w.texts, *step.Body)
		}
		w.steps(step.Parallel)
		w.hooks(step.Script)
	}
}

func (w *writtenFields) hooks(hooks map[string]scenario.Hook) {
	for _, script := range hooks {
		for _, reply := range append(slices.Clone(script.Replies), script.Reply) {
			w.patch(reply.Patch)
			w.steps(reply.Meanwhile)
		}
	}
}

func (w *writtenFields) patch(operations []hook.PatchOperation) {
	for _, operation := range operations {
		names := strings.Split(strings.TrimPrefix(operation.Path, "/"), "/")
		for i := range names {
			names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(names[i])
			w.paths[pathOf(names[:i+1])] = true
		}
		w.value(names, operation.Value)
	}
}

func (w *writtenFields) manifest(manifest map[string]any) {
	w.value(nil, manifest)
	spec, _ := manifest["spec"].(map[string]any)
	switch manifest["kind"] {
	case "MutatingAdmissionPolicy":
		if text, err := json.Marshal(spec["mutations"]); err == nil {
			w.texts = append(w.texts, string(text))
		}
	case "CustomResourceDefinition":
		versions, _ := spec["versions"].([]any)
		for _, item := range versions {
			version, _ := item.(map[string]any)
			holder, _ := version["schema"].(map[string]any)
			w.schema(nil, holder["openAPIV3Schema"])
		}
	}
}

// value adds the fields of a value at a path.
func (w *writtenFields) value(path []string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			here := append(slices.Clip(path), name)
			w.paths[pathOf(here)] = true
			w.value(here, inner)
		}
	case []any:
		for _, item := range value {
			w.value(path, item)
		}
	}
}

// schema adds the fields of a schema of a CustomResourceDefinition.
func (w *writtenFields) schema(path []string, value any) {
	at, ok := value.(map[string]any)
	if !ok {
		return
	}
	properties, _ := at["properties"].(map[string]any)
	for name, inner := range properties {
		here := append(slices.Clip(path), name)
		w.paths[pathOf(here)] = true
		w.schema(here, inner)
	}
	w.schema(path, at["items"])
}
