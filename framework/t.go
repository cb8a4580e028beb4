package framework

// T is the part of [testing.TB] that these packages use. Ginkgo's GinkgoT() has it
// too. Only functions at the edge take a T; each of them has a counterpart that
// returns an error.
type T interface {
	// Helper marks the calling function as a helper, so that messages have the line of
	// the test.
	Helper()
	// Logf, Errorf and Fatalf are those of testing.TB.
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	// Cleanup registers a function to call when the test has ended. The last one is
	// called first.
	Cleanup(f func())
}
