package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// Only a process that loads more scenarios than the catalogue has gets more memory, and not if the user of the process chose a limit.
func TestMakeRoom(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, test := range []struct {
		limit     int64
		scenarios int
		want      int64
	}{
		{MemoryLimit, ofCatalogue, MemoryLimit}, {MemoryLimit, ofCatalogue + 1024, 2 * MemoryLimit}, {MemoryLimit + 1, 3000, MemoryLimit + 1},
	} {
		debug.SetMemoryLimit(test.limit)
		makeRoom(test.scenarios)
		if got := debug.SetMemoryLimit(-1); got != test.want {
			t.Errorf("%d scenarios with the limit %d: got %d, want %d", test.scenarios, test.limit, got, test.want)
		}
	}
}

// A shard of many scenarios gets the memory for all of them, because all are loaded.
func TestMakeRoomForShard(t *testing.T) {
	before := debug.SetMemoryLimit(MemoryLimit)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	var many strings.Builder
	for i := range 2 * ofCatalogue {
		fmt.Fprintf(&many, "---\napiVersion: admissiontest.dev/v1alpha1\nkind: Scenario\nmetadata: {name: many.s%d}\nspec: {level: SHOULD, requirement: It can be read., source: [https://example.com], when: [{get: {apiVersion: v1, kind: ConfigMap, name: a}}]}\n", i)
	}
	file, kubeconfig := filepath.Join(t.TempDir(), "many.yaml"), filepath.Join(t.TempDir(), "kubeconfig")
	if err := errors.Join(os.WriteFile(file, []byte(many.String()), 0o600), os.WriteFile(kubeconfig, []byte(
		"{current-context: c, contexts: [{name: c, context: {cluster: d}}], clusters: [{name: d, cluster: {server: 'http://127.0.0.1:1'}}]}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	onCatalogue(t.Context(), "run", file, "--shard", "1/700", "--kubeconfig", kubeconfig).check(t, exitInfrastructure)
	if got, want := debug.SetMemoryLimit(-1), int64(MemoryLimit+ofCatalogue*perScenario); got != want {
		t.Errorf("the limit is %d, want %d", got, want)
	}
}
