package conformance_test

import "testing"

// TestExample runs the test that Example shows.
func TestExample(t *testing.T) { testAdmission(t) }
