package hook

// Conversion is how a Hook converts custom resources between the versions of
// their CustomResourceDefinition: it sets the apiVersion and moves fields.
// See https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion
type Conversion struct {
	// Renames are fields that have another place in each version: the dotted path
	// by version, {v1: spec.size, v2: spec.replicas}. A version that is not named
	// does not have the field, and loses it.
	Renames []map[string]string `json:"renames,omitempty"`
	// Fault misbehaves instead of converting: http-500, hang, reset, empty,
	// not-json or refused.
	Fault Fault `json:"fault,omitempty"`
}
