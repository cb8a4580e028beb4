package main

import "testing"

func TestTimesOf(t *testing.T) {
	output := "pkg: example.com/x\nBenchmarkChain/working-2   \t 1905\t 3440992 ns/op\t 175260 bare-ns\t 240808 by-Do-ns\t         1.374 times\nPASS\n"
	if got, err := timesOf([]byte(output)); got != 1.374 || err != nil {
		t.Errorf("got %v, %v; want 1.374", got, err)
	}
	if got, err := timesOf([]byte("PASS\n")); err == nil {
		t.Errorf("got %v, want an error: there is no metric", got)
	}
}
