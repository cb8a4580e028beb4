package object

import "strings"

// IsAdmission reports whether a manifest is one of admissionregistration.k8s.io: a webhook
// configuration, a policy or a binding.
func IsAdmission(manifest map[string]any) bool {
	kind, err := Kind(manifest)
	return err == nil && kind.Group == "admissionregistration.k8s.io"
}

// IsPolicy reports whether a manifest is a policy or a binding.
func IsPolicy(manifest map[string]any) bool {
	kind, _ := manifest["kind"].(string)
	return IsAdmission(manifest) && strings.Contains(kind, "Policy")
}

// Describe names a manifest by its kind and name: "ConfigMap subject". Without a name, it has
// generateName.
func Describe(manifest map[string]any) string {
	kind, _ := manifest["kind"].(string)
	metadata, _ := manifest["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		name, _ = metadata["generateName"].(string)
	}
	return strings.TrimSpace(kind + " " + name)
}
