package plugincall_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver/plugincall"
)

func TestTake(t *testing.T) {
	annotations := map[string]string{
		"example.com/other": "stays",
		plugincall.Key(100): `{"plugin": "b", "phase": "mutating", "operation": "CREATE", "resource": "pods", "started": 5, "duration": 7}`,
		plugincall.Key(99):  `{"plugin": "a", "changed": ["spec"], "refused": {"code": 403, "message": "no"}}`,
	}
	got, err := plugincall.Take(annotations)
	want := []plugincall.Record{
		{Plugin: "a", Changed: []string{"spec"}, Refused: &plugincall.Refusal{Code: 403, Message: "no"}},
		{Plugin: "b", Phase: "mutating", Operation: "CREATE", Resource: "pods", Started: 5, Duration: 7},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Take: %v, -want +got:\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]string{"example.com/other": "stays"}, annotations); diff != "" {
		t.Errorf("annotations, -want +got:\n%s", diff)
	}
	for key, value := range map[string]string{plugincall.Prefix + "x": "{}", plugincall.Key(1): "no JSON"} {
		t.Run(key, func(t *testing.T) {
			if _, err := plugincall.Take(map[string]string{key: value}); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("Take of %s = %v; want an error that names the key", key, err)
			}
		})
	}
}
