package envtest_test

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// The time from nothing to a server that is ready, and back.
func BenchmarkStartAndStop(b *testing.B) {
	for b.Loop() {
		server, err := envtest.Start(b.Context(), envtest.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := server.Stop(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
