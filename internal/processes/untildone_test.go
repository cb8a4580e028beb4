package processes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admissiontest/admissiontest/internal/processes"
)

func TestUntilDone(t *testing.T) {
	for name, test := range map[string]struct {
		took, until, grace time.Duration // how long the function takes, when the context ends, and what is left then
		done               bool
		after              time.Duration // when UntilDone returns
	}{
		"at once":                {0, time.Hour, 0, true, 0},
		"before the end":         {time.Minute, time.Hour, 0, true, time.Minute},
		"after the end":          {time.Hour, time.Minute, 0, false, time.Minute},
		"soon after the end":     {61 * time.Second, time.Minute, 2 * time.Second, true, 61 * time.Second},
		"too late after the end": {time.Hour, time.Minute, 2 * time.Second, false, 62 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.until)
				defer cancel()
				began, stopped := time.Now(), make(chan struct{})
				value, done := processes.UntilDone(ctx, test.grace, func() string {
					defer close(stopped)
					<-time.NewTimer(test.took).C
					return "value"
				})
				if took := time.Since(began); done != test.done || (value == "value") != done || took != test.after {
					t.Errorf("got %q, %t after %s; want %t after %s", value, done, took, test.done, test.after)
				}
				<-stopped
			})
		})
	}
}

func TestUntilDonePanics(t *testing.T) {
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("recovered %v, want the panic of the function", p)
		}
	}()
	processes.UntilDone(t.Context(), 0, func() string { panic("mine") })
	t.Error("it returned")
}
