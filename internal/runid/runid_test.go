package runid

import (
	"fmt"
	"strings"
	"testing"
)

func TestNewIsRandom(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := New()
		if len(id) != Len || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Fatalf("New() = %q, want %d lower-case letters and digits", id, Len)
		}
		if seen[id] {
			t.Fatalf("New() returned %q twice in %d", id, len(seen))
		}
		seen[id] = true
	}
}

// With names that only contain an ID in part, the webhook of one scenario would decide
// about the requests of another.
func TestHasIsExact(t *testing.T) {
	for _, c := range []struct {
		name, id string
		want     bool
	}{
		{"at-x-100", "at-x-100", true},
		{"at-x-100-far", "at-x-100", true},
		{"widgets.at-x-100.example.com", "at-x-100", true},
		{"system:serviceaccount:at-x-100:default", "at-x-100", true},
		{"at-x-1000", "at-x-100", false},
		{"at-x-1000-at-x-100", "at-x-100", true},
		{"at-xy-100", "at-x-100", false},
		{"chat-x-100", "at-x-100", false},
		{"at-x-100a", "at-x-100", false},
		{"at-x-100A", "at-x-100", false},
		{"", "at-x-100", false},
		{"at-x-100", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Has(c.name, c.id); got != c.want {
				t.Errorf("Has(%q, %q) = %t, want %t", c.name, c.id, got, c.want)
			}
		})
	}
}

// No ID of a run with 3,000 scenarios is in a name of another scenario.
func TestScenariosAreDistinct(t *testing.T) {
	const count = 3000
	for _, a := range []int{1, 10, 100, 101, 300, 999, 1000} {
		t.Run(fmt.Sprint(a), func(t *testing.T) {
			id := Scenario("x", a)
			for b := 1; b <= count; b++ {
				other := Scenario("x", b)
				if Has(other+"-far", id) != (a == b) || strings.HasPrefix(other, id) != (a == b) {
					t.Fatalf("scenario %d (%s) and %d (%s) are not distinguished", a, id, b, other)
				}
			}
		})
	}
}

func TestWritten(t *testing.T) {
	for name, want := range map[string]string{
		"at-x-00001-a.b": "a.b", "at-x-installed-a": "a", "at-x-00002-a": "at-x-00002-a", "at-y-installed-a": "at-y-installed-a", "a": "a", "at-x-00001": "at-x-00001",
	} {
		t.Run(name, func(t *testing.T) {
			if got := Written(name, Scenario("x", 1)); got != want {
				t.Errorf("Written(%q) = %q, want %q", name, got, want)
			}
		})
	}
	if got := Written("at-x-00001-a", ""); got != "at-x-00001-a" {
		t.Errorf("without an ID: got %q", got)
	}
}
