package rule

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admissiontest/admissiontest/framework"
)

// T is the check of one rule against one Subject. It implements framework.T for the Worlds and
// Harnesses of the check. Fatalf ends the check. Make a T with NewT.
type T struct {
	names    Names
	ctx      context.Context //nolint:containedctx // it ends with the check, like the context of testing.T
	limit    *Limit
	mu       sync.Mutex
	failures []string
	logs     []string
	cleanups []func()
	// unsupported says why the rule does not apply to the Subject.
	unsupported string
	// incomplete says what the Subject lacks.
	incomplete []string
	// unobserved says why the rule cannot be judged.
	unobserved []string
	reached    int
	// hurried is true if a function of HalfBudget has returned true, or the budget was used up.
	hurried atomic.Bool
}

// Names are what the messages of a T name.
type Names struct {
	// Suite is the package of the suite: "contract".
	Suite string
	// Subject is what the suite checks: "the plugin".
	Subject string
	// Requests are the requests of the Subject. Failures that differ only in the request at the beginning
	// of their first line are one line of the Outcome.
	Requests []string
	// Unreached is the reason of the verdict Inconclusive if the check never calls Reached.
	Unreached string
}

// NewT returns a T without a time limit. Run gives it one.
func NewT(names Names) *T {
	names.Requests = slices.Clone(names.Requests)
	// The longest first: so a name is found before a shorter one with which it begins.
	slices.SortStableFunc(names.Requests, func(a, b string) int { return len(b) - len(a) })
	return &T{names: names, ctx: context.Background()}
}

var _ framework.T = &T{}

// Helper implements framework.T.
func (t *T) Helper() {}

// Logf records a string that is printed if the check fails or is inconclusive.
func (t *T) Logf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logs = append(t.logs, fmt.Sprintf(format, args...))
}

// LogOnce is Logf, except that it records the same text only once.
func (t *T) LogOnce(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.logs, text) {
		t.logs = append(t.logs, text)
	}
}

// Errorf records how the Subject breaks the rule. The check continues.
func (t *T) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

// Fatalf is Errorf, and ends the check. Only the goroutine of the check may call it.
func (t *T) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Failed reports whether Errorf or Fatalf was called.
func (t *T) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

// Cleanup implements framework.T.
func (t *T) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// Context returns a context that ends with the check.
func (t *T) Context() context.Context { return t.ctx }

// Reached records that a request reached the code that the rule is about. If a check never calls
// Reached, and finds no failure, the verdict is Inconclusive.
func (t *T) Reached() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reached++
}

// HasReached reports whether Reached was called.
func (t *T) HasReached() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reached > 0
}

// Unsupported ends the check: the rule does not apply to this Subject.
func (t *T) Unsupported(format string, args ...any) {
	t.mu.Lock()
	t.unsupported = fmt.Sprintf(format, args...)
	t.mu.Unlock()
	runtime.Goexit()
}

// Unobserved records why the rule cannot be judged. The verdict is then Inconclusive, unless there is a failure.
func (t *T) Unobserved(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unobserved = append(t.unobserved, fmt.Sprintf(format, args...))
}

// Incomplete records something that the Subject lacks. The verdict is then Errored, because the
// mistake is in the test and not in the Subject.
func (t *T) Incomplete(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.incomplete = append(t.incomplete, fmt.Sprintf(format, args...))
}

// HalfBudget returns a function that reports whether half of the time that is left now has
// passed. A check uses it to send fewer requests to a Subject that is slow.
func (t *T) HalfBudget() func() bool {
	late := t.limit.halfLeft()
	return func() bool {
		is := late()
		if is {
			t.hurried.Store(true)
		}
		return is
	}
}

// Hurried reports whether the check sent fewer requests because it took long, or did not end in time.
func (t *T) Hurried() bool { return t.hurried.Load() }

// Run runs the check of a rule and the cleanups, and returns the outcome. If the budget is used up,
// the outcome is a failure if there is one already, or if the check does not return soon after:
// then it has the stacks of its goroutines. If all calls returned, but too slowly, the outcome is
// inconclusive. No other check runs at the same time if it is exclusive.
func (t *T) Run(rule Rule, exclusive bool, budget time.Duration, check func()) Outcome {
	defer lockProcess(exclusive)()
	started := time.Now()
	ctx, limit, cancel := WithLimit(t.ctx, budget)
	defer cancel()
	t.ctx, t.limit = ctx, limit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.runCleanups()
		defer t.recoverPanic()
		check()
	}()
	outcome := Outcome{Rule: rule, suite: t.names.Suite}
	select {
	case <-done:
		outcome.Verdict, outcome.Reason = t.verdict()
	case <-ctx.Done():
		outcome.Verdict, outcome.Reason = t.overdue(done, budget)
	}
	outcome.Duration = time.Since(started)
	return outcome
}

// lastCall is how long the call that is under way at the end of the budget may still take, at most.
const lastCall = 3 * time.Second

// overdue returns the verdict of a check whose budget is used up. Only failures so far count: what
// the check finds afterwards comes from its canceled context.
func (t *T) overdue(done <-chan struct{}, budget time.Duration) (framework.Verdict, string) {
	t.hurried.Store(true)
	t.mu.Lock()
	found := t.failures[:len(t.failures):len(t.failures)]
	t.mu.Unlock()
	ctx, _, cancel := WithLimit(context.Background(), min(budget, lastCall))
	defer cancel()
	select {
	case <-done:
		if len(found) == 0 {
			return framework.Inconclusive, fmt.Sprintf("each call of %[1]s returned, but the calls of this check took longer than %[2]s: make %[1]s faster, or give the check more time with %[3]s.Budget", t.names.Subject, budget, t.names.Suite)
		}
	case <-ctx.Done():
		found = append(found, fmt.Sprintf("%s did not return within %s (%s.Budget sets the limit). Its stacks:\n%s", t.names.Subject, budget, t.names.Suite, stacks()))
	}
	return framework.Fail, fold(found, t.names.Requests)
}

// Over reports whether the budget is used up. Then the Subject is not called again.
func (t *T) Over() bool { return t.ctx.Err() != nil }

// process protects state of the whole process, such as feature gates.
var process sync.RWMutex //nolint:gochecknoglobals // Kubernetes' feature gates are global

// lockProcess takes the lock, shared or exclusive, until the returned function is called.
func lockProcess(exclusive bool) (unlock func()) {
	if exclusive {
		process.Lock()
		return process.Unlock
	}
	process.RLock()
	return process.RUnlock
}

func (t *T) verdict() (framework.Verdict, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.failures) > 0:
		return framework.Fail, strings.Join(append([]string{fold(t.failures, t.names.Requests)}, notes(t.logs)...), "\n")
	case len(t.incomplete) > 0:
		return framework.Errored, fold(t.incomplete, nil)
	case t.unsupported != "":
		return framework.Unsupported, t.unsupported
	case len(t.unobserved) > 0:
		return framework.Inconclusive, fold(t.unobserved, nil)
	case t.reached == 0:
		reason := t.names.Unreached
		if len(t.logs) > 0 {
			reason += " (" + strings.Join(notes(t.logs), "; ") + ")"
		}
		return framework.Inconclusive, reason
	default:
		return framework.Pass, ""
	}
}

// runCleanups runs the cleanups, the last one first. If one panics, the others still run.
func (t *T) runCleanups() {
	for {
		t.mu.Lock()
		if len(t.cleanups) == 0 {
			t.mu.Unlock()
			return
		}
		last := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		t.mu.Unlock()
		func() {
			defer t.recoverPanic()
			last()
		}()
	}
}

// recoverPanic turns a panic into a failure.
func (t *T) recoverPanic() {
	if thrown := recover(); thrown != nil {
		buffer := make([]byte, 16<<10)
		t.Errorf("panic: %v\n%s", thrown, buffer[:runtime.Stack(buffer, false)])
	}
}

// stacks returns the stacks of all goroutines that run a check.
func stacks() string {
	buffer := make([]byte, 1<<20)
	var found []string
	for each := range strings.SplitSeq(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(each, "rule.(*T).Run.func1") {
			found = append(found, each)
		}
	}
	return strings.Join(found, "\n\n")
}
