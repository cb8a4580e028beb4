package install

import (
	"fmt"
	"testing"
)

// A rule that matches what a run does to find out what the API server acts on is recognised: the
// creation of ConfigMaps and the update of a Namespace.
func TestMatchesProbe(t *testing.T) {
	rule := func(scope, operation, group, resource string) map[string]any {
		return map[string]any{"scope": scope, "operations": []any{operation}, "apiGroups": []any{group}, "resources": []any{resource}}
	}
	for _, test := range []struct {
		rule map[string]any
		want bool
	}{
		{rule("*", "CREATE", "", "configmaps"), true},
		{rule("*", "UPDATE", "", "namespaces"), true},
		{rule("Cluster", "*", "*", "*"), true},
		{rule("Namespaced", "UPDATE", "", "namespaces"), false},
		{rule("Cluster", "CREATE", "", "configmaps"), false},
		{rule("*", "CREATE", "", "namespaces"), false},
		{rule("*", "UPDATE", "apps", "*"), false},
		{rule("*", "DELETE", "", "*"), false},
	} {
		t.Run(fmt.Sprint(test.rule), func(t *testing.T) {
			if got := matchesProbe(test.rule); got != test.want {
				t.Errorf("%v: got %t, want %t", test.rule, got, test.want)
			}
		})
	}
}
