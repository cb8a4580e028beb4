package install

import "maps"

// The labels of everything that a run creates.
const (
	// RunLabel has the ID of the run as its value. Cleanup selects by it.
	RunLabel = "admissiontest.dev/run"
	// ScenarioLabel has the ID of the scenario as its value. Webhook configurations and
	// policies are narrowed to namespaces with this label.
	ScenarioLabel = "admissiontest.dev/scenario"
)

// Labels returns the labels for an object of a scenario.
func (i *Installer) Labels(id string) map[string]any {
	return map[string]any{RunLabel: i.Run, ScenarioLabel: id}
}

// WithLabels returns a shallow copy of a manifest with more labels.
func WithLabels(manifest map[string]any, labels map[string]any) map[string]any {
	return withMetadata(manifest, func(metadata map[string]any) {
		all := cloneMap(metadata["labels"])
		maps.Copy(all, labels)
		metadata["labels"] = all
	})
}

// withNames returns a shallow copy of a manifest with another name and, if it is a binding, another name of its policy.
func withNames(manifest map[string]any, name string, policyName func(string) string) map[string]any {
	manifest = withMetadata(manifest, func(metadata map[string]any) { metadata["name"] = name })
	spec := cloneMap(manifest["spec"])
	if policy, ok := spec["policyName"].(string); ok {
		spec["policyName"] = policyName(policy)
		manifest["spec"] = spec
	}
	return manifest
}

func withMetadata(manifest map[string]any, edit func(metadata map[string]any)) map[string]any {
	out := maps.Clone(manifest)
	metadata := cloneMap(out["metadata"])
	edit(metadata)
	out["metadata"] = metadata
	return out
}

// cloneMap returns a shallow copy of a map, or an empty map.
func cloneMap(value any) map[string]any {
	object, _ := value.(map[string]any)
	if object == nil {
		return map[string]any{}
	}
	return maps.Clone(object)
}
