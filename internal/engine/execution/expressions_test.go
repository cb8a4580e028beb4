package execution

import "testing"

// An expression that a policy has many times does not fill the page with positions.
func TestPositions(t *testing.T) {
	all := []string{" (a:1:1)", " (a:2:1)", " (a:3:1)", " (a:4:1)", " (a:5:1)"}
	for count, want := range map[int]string{1: " (a:1:1)", 3: " (a:1:1) or (a:2:1) or (a:3:1)", 5: " (a:1:1) or (a:2:1) or (a:3:1) or 2 more"} {
		if got := anyOf(all[:count]); got != want {
			t.Errorf("%d positions: got %q, want %q", count, got, want)
		}
	}
}
