package framework

// T is the part of [testing.TB] that these packages use. Ginkgo's GinkgoT() returns a T too.
type T interface {
	// Helper marks the calling function as a helper: a message then names the line in the test.
	Helper()
	// Logf, Errorf and Fatalf are those of testing.TB.
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	// Cleanup registers a function to call when the test has ended. The function that was
	// registered last is called first.
	Cleanup(f func())
}
