package framework

// T is what this project's libraries need of a test: [testing.TB] and Ginkgo's
// GinkgoT() have it. They take it only at the edge; each has a function beneath that
// returns an error.
type T interface {
	// Helper marks its caller, so that messages name the line of the test.
	Helper()
	// Logf, Errorf and Fatalf are those of testing.TB.
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	// Cleanup has f called when the test has ended, the last one first.
	Cleanup(f func())
}
