package framework

import "context"

// T is the part of [testing.TB] that these packages use. Ginkgo's GinkgoT() returns a T too.
type T interface {
	// Helper marks the calling function as a helper: a message then names the line in the test.
	Helper()
	// Logf, Errorf and Fatalf work as in testing.TB.
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	// Cleanup registers a function to call when the test has ended. The function that was
	// registered last is called first.
	Cleanup(f func())
}

// ContextT is a T with the method Context of [testing.TB]. Package harness ends its requests when this context ends. The
// method is not part of T, because the GinkgoT() of older versions of Ginkgo does not have it.
type ContextT interface {
	T
	// Context returns a context that ends with the test.
	Context() context.Context
}
