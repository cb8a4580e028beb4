package fakes

import (
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// Clock returns a clock that stands still at the same moment in every run, until the
// test steps it: the clock.WithTicker of plugins that let theirs be set.
func Clock() *clocktesting.FakeClock {
	return clocktesting.NewFakeClock(time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC))
}
