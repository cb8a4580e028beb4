package object

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// A merge patch from one object to another makes the other.
func TestMergePatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same values in each run
	for range 2000 {
		from, to := randomMapping(random, 3), randomMapping(random, 3)
		patch := MergePatch(from, to)
		patched, err := jsonpatch.MergePatch(encoded(t, from), encoded(t, patch))
		if err != nil {
			t.Fatal(err)
		}
		if !jsonpatch.Equal(patched, encoded(t, to)) {
			t.Fatalf("from %s to %s: the patch %s makes %s", encoded(t, from), encoded(t, to), encoded(t, patch), patched)
		}
	}
}

func encoded(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// randomMapping returns a map of few keys, so that two of them often have the same.
func randomMapping(random *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"k", "l", "m"} {
		switch random.IntN(5) {
		case 0:
			out[key] = float64(random.IntN(3))
		case 1:
			out[key] = []any{"a", float64(random.IntN(2))}
		case 2, 3:
			if depth > 0 {
				out[key] = randomMapping(random, depth-1)
			}
		}
	}
	return out
}
