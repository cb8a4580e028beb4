package object

import "reflect"

// MergePatch returns the JSON Merge Patch (RFC 7386) from one map to another. It shares values with the other one.
func MergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, ok := to[key]; !ok {
			patch[key] = nil
		}
	}
	for key, after := range to {
		before, had := from[key]
		inner, isMapping := after.(map[string]any)
		old, wasMapping := before.(map[string]any)
		switch {
		case had && reflect.DeepEqual(before, after):
		case isMapping && wasMapping:
			patch[key] = MergePatch(old, inner)
		default:
			patch[key] = after
		}
	}
	return patch
}
