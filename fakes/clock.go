package fakes

import (
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// Clock returns a fake clock for plugins whose clock a test can set. It shows 2020-01-01 00:00 UTC
// until the test calls Step or SetTime. It implements clock.WithTicker.
func Clock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC))
}
