package processes

import "testing"

func TestDescribe(t *testing.T) {
	for entry, want := range map[string]string{
		"1 @ 0x1 0x2\n# labels: {\"a\":\"b\"}\n#\t0x1\tmain.inner+0x1c\t/src/inner.go:7\n#\t0x2\tmain.outer+0x20\t/src/outer.go:9": "1 × main.outer (outer.go:9), now in main.inner (inner.go:7)",
		"2 @ 0x1\n# labels: {\"a\":\"b\"}\n#\t0x1\tmain.outer+0x20\t/src/outer.go:9":                                               "2 × main.outer (outer.go:9)",
		"1 @ 0x48c8c1\n# labels: {\"a\":\"b\"}":                                                                                    "1 × a goroutine that was started and has not run yet",
		"goroutine profile: total 3":                                                                                               "goroutine profile: total 3",
	} {
		t.Run(want, func(t *testing.T) {
			if got := describe(entry); got != want {
				t.Errorf("%q: got %q, want %q", entry, got, want)
			}
		})
	}
}
