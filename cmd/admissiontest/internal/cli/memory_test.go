package cli

import (
	"runtime/debug"
	"testing"
)

// Only a run of more scenarios than the catalogue has gets more memory, and not if the user of the process chose a limit.
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
