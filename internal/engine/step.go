package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/judge"
)

// The limits of one step: for everything it does, and for the wait for an audit event.
const (
	stepLimit    = 90 * time.Second
	auditLimit   = 10 * time.Second
	pollInterval = 10 * time.Millisecond
)

// failure is why a step failed.
type failure struct {
	action     string
	mismatches []judge.Mismatch
	result     framework.Result
	// expect is what the mismatches are about, if there are any.
	expect *scenario.Expectation
	// request is the request of the step, if it sent one.
	request *framework.Request
	// notSaid is what the API server would have to say, and does not.
	notSaid string
	// codeExpected is true if the step names the code of the response.
	codeExpected bool
	// unobserved is what was expected and could not be observed.
	unobserved string
	// err is set if the step could not be carried out.
	err error
}

// String describes the failure in one line.
func (f *failure) String() string {
	if f.err != nil {
		return fmt.Sprintf("%s: %v", f.action, f.err)
	}
	return fmt.Sprintf("%s: %s", f.action, f.mismatches[0])
}

// errPanic marks a panic of our code.
var errPanic = errors.New("panic")

// mismatchError is the error of a step in a Meanwhile whose expectations did not hold.
type mismatchError struct{ mismatches []judge.Mismatch }

// Error returns the first mismatch.
func (d *mismatchError) Error() string { return d.mismatches[0].String() }

// step carries out one step and judges it. Nil means that it held. A panic is an error of
// the scenario, not the end of the process.
func (c *scenarioCase) step(ctx context.Context, raw scenario.Step) (f *failure) {
	defer func() {
		if cause := recover(); cause != nil {
			f = &failure{action: "carry out step", err: fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	step, err := substitute(raw, c.lookup)
	if err != nil {
		return &failure{action: "read step", err: err}
	}
	switch {
	case step.Install != nil:
		return failed("install", c.install(ctx, step.Install))
	case step.Remove != nil:
		return failed("remove", c.remove(ctx, step.Remove))
	case step.Script != nil:
		return failed("script", c.setScripts(step.Script))
	case step.Wait != nil:
		return failed("wait for "+step.Wait.Kind+" "+step.Wait.Name, c.wait(ctx, *step.Wait))
	case step.Metrics != nil:
		return c.metrics(ctx, *step.Metrics)
	case step.Files != nil:
		return failed("files", c.changeFiles(*step.Files))
	case step.Parallel != nil:
		return c.inParallel(ctx, step)
	default:
		return c.request(ctx, step)
	}
}

// innerStep carries out a step whose calls belong to an outer step. Place is its place in the
// spec, or empty.
func (c *scenarioCase) innerStep(ctx context.Context, step scenario.Step, place string) *failure {
	inner := *c
	inner.inner, inner.place = true, place
	return inner.step(ctx, step)
}

func failed(action string, err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{action: action, err: err}
}

// request sends the request of a step and judges the result.
func (c *scenarioCase) request(ctx context.Context, step scenario.Step) *failure {
	request, action, err := c.compose(step)
	if err != nil {
		return &failure{action: action, err: err}
	}
	var result framework.Result
	var mismatches []judge.Mismatch
	var notSaid string
	once := func() error {
		c.waitForCache(ctx, request)
		result, err = c.sandbox.Do(ctx, request)
		c.secretsIn(request, result)
		if result.Status.Code != 0 {
			c.noteWrite(request, result)
		}
		if panicked := c.panicked(ctx, err, &result); panicked != nil {
			return panicked
		}
		if err = c.narrowedMistake(action, err); err == nil {
			err = c.misspelt(step, result)
		}
		if err != nil {
			return err
		}
		if c.inner {
			result.Trace = nil
		}
		mismatches, err = c.judge(ctx, step.Then, &result)
		if err == nil {
			mismatches, notSaid = c.judgeRefuser(ctx, step.Then, request, result, mismatches)
		}
		return err
	}
	if step.Eventually {
		err = c.eventually(ctx, once, func() bool { return len(mismatches) == 0 })
		if wait.Interrupted(err) && result.Status.Code != 0 {
			err = nil // the mismatches say more than the timeout
		}
	} else {
		err = once()
	}
	if other := (*mismatchError)(nil); errors.As(err, &other) {
		return &failure{action: action, mismatches: other.mismatches, result: result}
	}
	if err == nil {
		err = c.waitForLabels(ctx, request, result)
	}
	if err != nil {
		return &failure{action: action, err: err, result: result}
	}
	c.keep(step.ID, result)
	c.answers.add(result)
	if len(mismatches) > 0 {
		return &failure{
			action: action, expect: step.Then, mismatches: mismatches, result: result, request: &request, notSaid: notSaid,
			unobserved:   cmp.Or(unobserved(step.Then, result), c.unreached(ctx, mismatches, []framework.Result{result})),
			codeExpected: step.Then != nil && slices.Contains(step.Then.Code, int(result.Status.Code)),
		}
	}
	return nil
}

// narrowedMistake returns the error of a request; if nothing can decide about it because the scenario is
// narrowed, it is a mistake in the scenario.
func (c *scenarioCase) narrowedMistake(action string, err error) error {
	if !errors.Is(err, framework.ErrNarrowed) {
		return err
	}
	return &mistakeError{[]*scenario.Error{c.scenario.ErrorAt(c.place, "", action+": "+err.Error(), "")}, err}
}

// waitForLabels waits until the API server acts on the labels of a namespace, if a request changed it.
// Requests of a script or of parallel steps do not wait.
func (c *scenarioCase) waitForLabels(ctx context.Context, request framework.Request, result framework.Result) error {
	changes := request.Verb == framework.VerbUpdate || request.Verb == framework.VerbPatch || request.Verb == framework.VerbApply
	namespace := request.Kind.GroupKind() == schema.GroupKind{Kind: "Namespace"} && request.Subresource == ""
	if c.inner || !changes || !namespace || request.DryRun || !result.Allowed() {
		return nil
	}
	return c.target.WaitUntilEffective(ctx, []map[string]any{{"apiVersion": "v1", "kind": "Namespace"}})
}

// panicLimit limits the wait for the audit event of a request that got no response.
const panicLimit = 2 * time.Second

// panicked returns a mismatchError if a request got no response because a plugin panicked: an API
// server aborts such a request. Only a server that records the calls of plugins shows it.
func (c *scenarioCase) panicked(ctx context.Context, err error, result *framework.Result) error {
	read := c.target.Optional().Audit
	if !errors.Is(err, framework.ErrNoResponse) || read == nil || result.AuditID == "" ||
		!slices.Contains(c.target.Info().Capabilities, framework.CapabilityObservedPlugins) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, panicLimit)
	defer cancel()
	event, err := read(ctx, result.AuditID)
	if err != nil {
		return nil // the error of the request says enough
	}
	result.Trace = result.Trace.With(event.Plugins)
	for index, call := range result.Trace {
		if call.Plugin != nil && call.Plugin.Panicked != "" {
			return &mismatchError{[]judge.Mismatch{{
				Path: "plugins", Expected: "no panic", Call: &index,
				Actual: fmt.Sprintf("plugin %s panicked: %s; the API server did not answer the request", call.Plugin.Name, call.Plugin.Panicked),
			}}}
		}
	}
	return nil
}

// unobserved returns what was expected and could not be observed, or "".
func unobserved(expect *scenario.Expectation, result framework.Result) string {
	if expect != nil && (expect.Audit != nil || expect.Plugins != nil) && result.Audit == nil {
		return fmt.Sprintf("no audit event was observed within %s", auditLimit)
	}
	return ""
}

// eventually repeats a request until it holds. A lost response is repeated too; if the
// last one was lost, that is the error.
func (c *scenarioCase) eventually(ctx context.Context, once func() error, holds func() bool) error {
	var lost error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(context.Context) (bool, error) {
		err := once()
		if lost = nil; errors.Is(err, framework.ErrNoResponse) {
			lost = err
			return false, nil
		}
		return err == nil && holds(), err
	})
	if lost != nil {
		return lost
	}
	return err
}

// judge adds the audit event to a result, if it is needed, and compares the result with
// the expectation.
func (c *scenarioCase) judge(ctx context.Context, expect *scenario.Expectation, result *framework.Result) ([]judge.Mismatch, error) {
	if expect != nil && (expect.Audit != nil || expect.Plugins != nil) {
		read := c.target.Optional().Audit
		if read == nil {
			return nil, errors.New("read audit event: this target cannot read the audit log of the API server: add audit to needs")
		}
		ctx, cancel := context.WithTimeout(ctx, auditLimit)
		defer cancel()
		event, err := read(ctx, result.AuditID)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		result.Audit = event
		if event != nil {
			result.Trace = result.Trace.With(event.Plugins)
		}
		c.secretsIn(framework.Request{}, framework.Result{Audit: event})
	}
	compare := judge.Judge
	if c.showSecrets {
		compare = judge.WithSecrets
	}
	part, complete := c.unseen.decidable(expect)
	if complete {
		return compare(expect, *result), nil
	}
	result.Trace = c.unseen.seen(result.Trace)
	if mismatches := compare(part, *result); len(mismatches) > 0 {
		return mismatches, nil
	}
	return nil, &unseenError{c.unseen}
}

// keep stores a result for the placeholders of later steps.
func (c *scenarioCase) keep(id string, result framework.Result) {
	if id == "" {
		return
	}
	calls := make([]any, 0, len(result.Trace))
	for _, call := range result.Trace {
		if call.Plugin != nil {
			continue
		}
		calls = append(calls, map[string]any{"webhook": call.Webhook, "request": call.Request(), "connection": call.Connection})
	}
	var status map[string]any
	if data, err := json.Marshal(result.Status); err == nil {
		_ = json.Unmarshal(data, &status)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[id] = map[string]any{"object": result.Fields(), "calls": calls, "status": status}
}

// inParallel carries out steps at the same time. The expectation of the parallel step is
// judged on the calls of all of them.
func (c *scenarioCase) inParallel(ctx context.Context, step scenario.Step) *failure {
	recording := c.sandbox.Record()
	defer recording.Stop()
	failures := make([]*failure, len(step.Parallel))
	outer := *c
	outer.answers = &answers{}
	result := framework.Result{Started: time.Now()}
	var group sync.WaitGroup
	for i, inner := range step.Parallel {
		group.Go(func() { failures[i] = outer.innerStep(ctx, inner, fmt.Sprintf("%s.parallel[%d]", c.place, i)) })
	}
	group.Wait()
	result.Finished = time.Now()
	if f := ofParallel(failures); f != nil {
		return f
	}
	result.Status.Code = 200
	recording.Wait(ctx)
	result.Trace = recording.Calls()
	c.secretsIn(framework.Request{}, result)
	if c.inner {
		result.Trace = nil
	}
	err := recording.Err()
	if other := (*mismatchError)(nil); errors.As(err, &other) {
		return &failure{action: "parallel", mismatches: other.mismatches, result: result}
	}
	var mismatches []judge.Mismatch
	if err == nil {
		mismatches, err = c.judge(ctx, step.Then, &result)
	}
	if err != nil || len(mismatches) > 0 {
		return &failure{action: "parallel", expect: step.Then, mismatches: mismatches, result: result, err: err, unobserved: c.unreached(ctx, mismatches, outer.answers.all)}
	}
	return nil
}

// ofParallel returns the failure that decides about a parallel step, or nil: the first one
// that says nothing about admission, because it can be the cause of the others (a request
// that was lost does not reach a barrier), else the first.
func ofParallel(failures []*failure) *failure {
	decides := func(f *failure) bool { return f != nil && f.infrastructure() != "" }
	at := slices.IndexFunc(failures, decides)
	if at < 0 {
		at = slices.IndexFunc(failures, func(f *failure) bool { return f != nil })
	}
	if at < 0 {
		return nil
	}
	failures[at].action = fmt.Sprintf("parallel[%d] %s", at, failures[at].action)
	return failures[at]
}

// install installs objects and waits until the target acts on them.
func (c *scenarioCase) install(ctx context.Context, manifests []map[string]any) error {
	for i, manifest := range manifests {
		if err := c.sandbox.Install(ctx, manifest, c.currentScripts()); err != nil {
			if err = c.asMistake(err, fmt.Sprintf("%s.install[%d]", c.place, i), manifest); isMistake(err) {
				return err
			}
			return fmt.Errorf("install[%d] %s: %w", i, describe(manifest), err)
		}
	}
	return c.target.WaitUntilEffective(ctx, manifests)
}

// remove deletes objects and waits until the target no longer acts on them.
func (c *scenarioCase) remove(ctx context.Context, references []scenario.ObjectReference) error {
	var manifests []map[string]any
	for i, ref := range references {
		manifest := map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind}
		if err := c.sandbox.Delete(ctx, kindOf(manifest), ref.Name); err != nil {
			return fmt.Errorf("remove[%d] %s %s: %w", i, ref.Kind, ref.Name, err)
		}
		manifests = append(manifests, manifest)
	}
	return c.target.WaitUntilEffective(ctx, manifests)
}

// setScripts replaces the scripts of webhooks.
func (c *scenarioCase) setScripts(hooks map[string]scenario.Hook) error {
	for name, script := range c.compile(hooks) {
		if err := c.sandbox.SetScript(name, script); err != nil {
			return err
		}
		c.mu.Lock()
		c.scripts[name] = script
		c.mu.Unlock()
	}
	return nil
}

// changeFiles changes files of the API server, in the order of their names.
func (c *scenarioCase) changeFiles(files scenario.Files) error {
	target := c.target.Optional()
	if target.WriteFile == nil || target.RemoveFile == nil {
		return errors.New("the files of this API server cannot be changed")
	}
	for _, path := range files.Remove {
		if err := target.RemoveFile(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files.Write)) {
		if err := target.WriteFile(path, files.Write[path]); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

// wait reads an object until it matches.
func (c *scenarioCase) wait(ctx context.Context, w scenario.Wait) error {
	request, _, err := c.compose(scenario.Step{Get: &w.ObjectReference})
	if err != nil {
		return err
	}
	var last framework.Result
	var mismatches []judge.Mismatch
	err = wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(context.Context) (bool, error) {
		if last, err = c.sandbox.Do(ctx, request); err != nil {
			return false, err
		}
		c.secretsIn(request, last)
		if w.Gone || !last.Allowed() {
			return w.Gone && last.Status.Code == 404, nil
		}
		mismatches = judge.Match(w.Object, last.Fields(), "object")
		return len(mismatches) == 0, nil
	})
	if wait.Interrupted(err) && last.Allowed() && len(mismatches) > 0 {
		return fmt.Errorf("%w after %s: %s", framework.ErrTimeout, c.patience, mismatches[0])
	}
	if wait.Interrupted(err) {
		return fmt.Errorf("%w after %s: the last response was %d %s", framework.ErrTimeout, c.patience, last.Status.Code, last.Status.Message)
	}
	return err
}
