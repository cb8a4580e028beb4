package main

import (
	"path/filepath"
	"testing"
)

// Each reason is about a mutant that survived with one of the seeds.
func TestEquivalent(t *testing.T) {
	reasons, err := equivalent()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("verdicts/seed-*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no verdicts: %v, %v", files, err)
	}
	last := map[string]string{}
	for _, file := range files {
		kept := &verdicts{by: map[string]judged{}}
		if err := kept.read(file); err != nil {
			t.Fatal(err)
		}
		for id, one := range kept.by {
			last[id] = one.Verdict
		}
	}
	for id := range reasons {
		if partOf(id) == "" {
			t.Errorf("no part of the code has %s", id)
		}
		if last[id] != survived {
			t.Errorf("%s has a reason, but its verdict is %q, not %q: remove the entry", id, last[id], survived)
		}
	}
}
