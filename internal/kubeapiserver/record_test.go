package kubeapiserver_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
)

func TestTake(t *testing.T) {
	annotations := map[string]string{
		"example.com/other":    "stays",
		kubeapiserver.Key(100): `{"plugin": "b", "phase": "mutating", "operation": "CREATE", "resource": "pods", "started": 5, "duration": 7}`,
		kubeapiserver.Key(99):  `{"plugin": "a", "changed": ["spec"], "refused": {"code": 403, "message": "no"}}`,
	}
	got, err := kubeapiserver.Take(annotations)
	want := []kubeapiserver.Record{
		{Plugin: "a", Changed: []string{"spec"}, Refused: &kubeapiserver.Refusal{Code: 403, Message: "no"}},
		{Plugin: "b", Phase: "mutating", Operation: "CREATE", Resource: "pods", Started: 5, Duration: 7},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Take: %v, -want +got:\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]string{"example.com/other": "stays"}, annotations); diff != "" {
		t.Errorf("annotations, -want +got:\n%s", diff)
	}
	key := kubeapiserver.Key(1)
	if _, err := kubeapiserver.Take(map[string]string{key: "no JSON"}); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("Take of no JSON = %v; want an error that names the key", err)
	}
}
