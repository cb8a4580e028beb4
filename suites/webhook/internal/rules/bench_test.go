package rules_test

import "testing"

// BenchmarkSound checks all rules that are not only on request against two small webhooks. With -race it must take at most
// 3 seconds.
func BenchmarkSound(b *testing.B) {
	for b.Loop() {
		checkAll(b, soundSubject(fault{}))
	}
}
