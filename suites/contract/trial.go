package contract

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// Trial is one Property put to one Subject. It is the framework.T of all that is
// built for it: Fatalf ends the trial.
type Trial struct {
	// Subject is whom it is put to.
	Subject Subject

	ctx      context.Context //nolint:containedctx // it ends with the trial, as testing.T's does
	mu       sync.Mutex
	failures []string
	logs     []string
	cleanups []func()
	// unsupported says why the property does not concern the Subject.
	unsupported string
	reached     int
	// broken is why no plugin of the Subject can be built.
	broken error
}

var _ framework.T = &Trial{}

// Helper implements framework.T.
func (t *Trial) Helper() {}

// Logf notes what is shown if the property fails.
func (t *Trial) Logf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logs = append(t.logs, fmt.Sprintf(format, args...))
}

// Errorf says how the property is broken, and goes on.
func (t *Trial) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

// Fatalf says how the property is broken, and ends the trial. Only the goroutine of
// the Check may call it.
func (t *Trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Cleanup implements framework.T.
func (t *Trial) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// Context ends when the trial does.
func (t *Trial) Context() context.Context { return t.ctx }

// Reached says that what the property is about has happened: without it the verdict is
// inconclusive.
func (t *Trial) Reached() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reached++
}

// Unsupported ends the trial: the property does not concern this Subject.
func (t *Trial) Unsupported(format string, args ...any) {
	t.mu.Lock()
	t.unsupported = fmt.Sprintf(format, args...)
	t.mu.Unlock()
	runtime.Goexit()
}

// Seeds returns the requests that the Subject admits and those it refuses.
func (t *Trial) Seeds() []framework.Request { return t.Subject.seeds() }

// World returns a new World of the Subject, with more options.
func (t *Trial) World(options ...fakes.Option) *fakes.World {
	t.Helper()
	return fakes.NewWorld(t, append(append([]fakes.Option{}, t.Subject.World...), options...)...)
}

// Plugin returns a new, initialized plugin of the Subject in a World of its own. Options
// come after those of the Subject. It ends with the trial.
func (t *Trial) Plugin(options ...harness.Option) *harness.Harness {
	t.Helper()
	return t.PluginIn(t.World(), options...)
}

// PluginIn is Plugin in a World of the caller's.
func (t *Trial) PluginIn(w *fakes.World, options ...harness.Option) *harness.Harness {
	t.Helper()
	t.needPlugin()
	h, err := t.Build(w, options...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return h
}

// Build is PluginIn for properties of initialization: what goes wrong is an error.
func (t *Trial) Build(w *fakes.World, options ...harness.Option) (*harness.Harness, error) {
	t.Helper()
	h, err := harness.Build(t, t.Subject.Source, t.options(w, options)...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(t.ctx)
		cancel()
		_ = h.Close(ended) // it drains and does not wait: what a plugin leaves behind is for property L1 alone
	})
	return h, nil
}

// options are the Subject's, then those of the caller.
func (t *Trial) options(w *fakes.World, more []harness.Option) []harness.Option {
	options := t.plain(w)
	if t.Subject.Inject != nil {
		options = append(options, harness.WithInjectors(t.Subject.Inject(w)...))
	}
	return append(options, more...)
}

// plain are the Subject's options without its injectors.
func (t *Trial) plain(w *fakes.World) []harness.Option {
	options := []harness.Option{harness.WithWorld(w)}
	if t.Subject.Config != "" {
		options = append(options, harness.WithConfig(t.Subject.Config))
	}
	if t.Subject.Scheme != nil {
		options = append(options, harness.WithScheme(t.Subject.Scheme))
	}
	return options
}

// needPlugin ends the trial where no plugin can be had; Run has said why.
func (t *Trial) needPlugin() {
	if t.broken != nil {
		t.mu.Lock()
		t.reached = 0
		t.mu.Unlock()
		runtime.Goexit()
	}
}

// run carries out a Check and its cleanups, and returns what came of it.
func (t *Trial) run(property Property, budget time.Duration) Outcome {
	defer share(property.alone)()
	started := time.Now()
	ctx, cancel := context.WithTimeout(t.ctx, budget)
	defer cancel()
	t.ctx = ctx
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.clean()
		defer t.recoverPanic()
		property.Check(t)
	}()
	timer := time.NewTimer(budget)
	defer timer.Stop()
	outcome := Outcome{Property: property}
	select {
	case <-done:
		outcome.Verdict, outcome.Reason = t.verdict()
	case <-timer.C:
		outcome.Verdict = framework.Fail
		outcome.Reason = fmt.Sprintf("the plugin did not return within %s (contract.Budget allows more); it is in:\n%s", budget, stacks())
	}
	outcome.Duration = time.Since(started)
	return outcome
}

// process is what properties share that belongs to the process: feature gates.
var process sync.RWMutex //nolint:gochecknoglobals // Kubernetes' gates are global, and so must be who may change them

// share takes the process, with others or alone, until the returned function is called.
func share(alone bool) (release func()) {
	if alone {
		process.Lock()
		return process.Unlock
	}
	process.RLock()
	return process.RUnlock
}

func (t *Trial) verdict() (framework.Verdict, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.failures) > 0:
		return framework.Fail, strings.Join(append(t.failures, t.logs...), "\n")
	case t.unsupported != "":
		return framework.Unsupported, t.unsupported
	case t.broken != nil:
		return framework.Inconclusive, "no plugin could be built"
	case t.reached == 0:
		return framework.Inconclusive, strings.Join(append([]string{"no request of the Subject reaches what this is about: add one that does"}, t.logs...), "\n")
	default:
		return framework.Pass, ""
	}
}

// clean runs the cleanups, the last one first, each even if one before it panicked.
func (t *Trial) clean() {
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

// recoverPanic makes a failure of a panic, which is the plugin's.
func (t *Trial) recoverPanic() {
	if thrown := recover(); thrown != nil {
		t.Errorf("panic: %v\n%s", thrown, stack())
	}
}

// stack returns the stack of this goroutine without what recovered it.
func stack() string {
	buffer := make([]byte, 16<<10)
	return string(buffer[:runtime.Stack(buffer, false)])
}

// stacks returns the stacks of all goroutines that are in a Check.
func stacks() string {
	buffer := make([]byte, 1<<20)
	var found []string
	for each := range strings.SplitSeq(string(buffer[:runtime.Stack(buffer, true)]), "\n\n") {
		if strings.Contains(each, "contract.(*Trial).run.func1") {
			found = append(found, each)
		}
	}
	return strings.Join(found, "\n\n")
}
