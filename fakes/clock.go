package fakes

import (
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// Clock returns a clock that shows 2020-01-01 00:00 UTC until the test steps it. It implements
// clock.WithTicker, for plugins whose clock a test can set.
func Clock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC))
}
