package envtest_test

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// The time from nothing to a server that is ready, and back.
func BenchmarkStartAndStop(b *testing.B) {
	found, err := binaries.Ensure(b.Context(), binaries.Options{Progress: func(line string) { b.Log(line) }})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		server, err := envtest.Start(b.Context(), envtest.Options{Assets: found})
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
