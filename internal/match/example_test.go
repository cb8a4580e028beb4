package match_test

import (
	"fmt"

	"github.com/admissiontest/admissiontest/internal/match"
)

func ExampleMatch() {
	expected := map[string]any{"metadata": map[string]any{
		"name": map[string]any{"$oneOf": []any{"a", "b"}},
		"uid":  map[string]any{"$absent": true},
	}}
	actual := map[string]any{"metadata": map[string]any{"name": "c", "namespace": "x"}}
	for _, difference := range match.Match(expected, actual, "object") {
		fmt.Println(difference)
	}
	// Output:
	// object.metadata.name: expected one of "a", "b", actual "c"
}
