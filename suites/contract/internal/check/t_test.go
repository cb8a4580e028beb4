package check_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// hang does not return before the channel is closed.
func hang(end <-chan struct{}) { <-end }

func TestRunFailsWithStacksAfterTheBudget(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	outcome := check.NewT(check.Subject{}).Run(check.Rule{Check: func(*check.T) { hang(end) }}, 20*time.Millisecond)
	for _, want := range []string{"did not return within 20ms", "check_test.hang"} {
		if outcome.Verdict != framework.Fail || !strings.Contains(outcome.Reason, want) {
			t.Errorf("got %s, want fail with %q: %s", outcome.Verdict, want, outcome.Reason)
		}
	}
}

// TestOverdue: a check whose calls all return, but too slowly, has no verdict unless it has found a failure before.
func TestOverdue(t *testing.T) {
	const budget = 50 * time.Millisecond
	for name, test := range map[string]struct {
		found, later string
		want         framework.Verdict
		says         string
	}{
		"nothing found":    {"", "", framework.Inconclusive, "took longer than 50ms"},
		"found before":     {"a failure", "", framework.Fail, "a failure"},
		"found afterwards": {"", "a canceled call", framework.Inconclusive, "took longer than 50ms"},
	} {
		t.Run(name, func(t *testing.T) {
			got := check.NewT(check.Subject{}).Run(check.Rule{Check: func(c *check.T) {
				if test.found != "" {
					c.Errorf("%s", test.found)
				}
				<-c.Context().Done()
				time.Sleep(20 * time.Millisecond) //nolint:forbidigo // until Run has seen that the budget is used up
				if test.later != "" {
					c.Errorf("%s", test.later)
				}
			}}, budget)
			if got.Verdict != test.want || !strings.Contains(got.Reason, test.says) || strings.Contains(got.Reason, "did not return") {
				t.Errorf("got %s (%s), want %s with %q", got.Verdict, got.Reason, test.want, test.says)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		check func(*check.T)
		want  framework.Verdict
		says  string
	}{
		"reached":       {func(t *check.T) { t.Reached() }, framework.Pass, ""},
		"not reached":   {func(t *check.T) { t.LogOnce("a log") }, framework.Inconclusive, "a log"},
		"unsupported":   {func(t *check.T) { t.Reached(); t.Unsupported("no %s", "Admit") }, framework.Unsupported, "no Admit"},
		"error":         {func(t *check.T) { t.Reached(); t.Errorf("first"); t.Errorf("second") }, framework.Fail, "first\nsecond"},
		"fatal":         {func(t *check.T) { t.Fatalf("first"); t.Errorf("second") }, framework.Fail, "first"},
		"panic":         {func(*check.T) { panic("thrown") }, framework.Fail, "panic: thrown"},
		"cleanup panic": {func(t *check.T) { t.Reached(); t.Cleanup(func() { panic("late") }) }, framework.Fail, "panic: late"},
	} {
		t.Run(name, func(t *testing.T) {
			got := check.NewT(check.Subject{}).Run(check.Rule{Check: test.check}, time.Minute)
			if got.Verdict != test.want || !strings.Contains(got.Reason, test.says) || name == "fatal" && strings.Contains(got.Reason, "second") {
				t.Errorf("got %s (%s), want %s with %q", got.Verdict, got.Reason, test.want, test.says)
			}
		})
	}
}

// TestRepetitionsAreShared: requests that are sent again, to see which responses vary, are sent again for all of them.
func TestRepetitionsAreShared(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}}
	subject := check.Subject{Allow: []framework.Request{framework.Create(pod), framework.Create(pod), framework.Create(pod)}}
	expected, refused, sent := make([]check.Response, 3), make([]check.Response, 3), 0
	for i := range refused {
		refused[i].Result.Err = errors.New("refused")
	}
	got := check.NewT(subject).Run(check.Rule{Check: func(c *check.T) {
		c.CompareResponses("the second time", expected, refused, func() []check.Response {
			sent++
			return expected
		})
	}}, time.Minute)
	if got.Verdict != framework.Fail || sent != 64 {
		t.Errorf("got %s after the requests were sent %d times, want fail after 64 times: %s", got.Verdict, sent, got.Reason)
	}
}
