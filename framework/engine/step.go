package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/engine/judge"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Bounds of one step: of everything it does, and of the wait for an audit event.
const (
	stepLimit    = 90 * time.Second
	auditLimit   = 10 * time.Second
	pollInterval = 10 * time.Millisecond
)

// failure is why a step did not hold.
type failure struct {
	action     string
	mismatches []judge.Mismatch
	result     framework.Result
	// err is set where the step could not be carried out.
	err error
}

// String says in one line what was the matter.
func (f *failure) String() string {
	if f.err != nil {
		return fmt.Sprintf("%s: %v", f.action, f.err)
	}
	return fmt.Sprintf("%s: %s", f.action, f.mismatches[0])
}

// divergence is the error of steps carried out meanwhile that did not hold.
type divergence struct{ mismatches []judge.Mismatch }

// Error names the first mismatch.
func (d *divergence) Error() string { return d.mismatches[0].String() }

// step carries out one step and judges it. Nil means that it held.
func (c *scenarioCase) step(ctx context.Context, raw scenario.Step) *failure {
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
		return failed("script", c.script(step.Script))
	case step.Wait != nil:
		return failed("wait for "+step.Wait.Kind+" "+step.Wait.Name, c.wait(ctx, *step.Wait))
	case step.Parallel != nil:
		return c.inParallel(ctx, step)
	default:
		return c.request(ctx, step)
	}
}

func failed(action string, err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{action: action, err: err}
}

// request sends a step's request and judges the answer.
func (c *scenarioCase) request(ctx context.Context, step scenario.Step) *failure {
	request, action, err := c.compose(step)
	if err != nil {
		return &failure{action: action, err: err}
	}
	var result framework.Result
	var mismatches []judge.Mismatch
	once := func() error {
		c.catchUp(ctx, request)
		c.target.Mark(c.id)
		if result, err = c.target.Do(ctx, c.target.Claim(c.id, request)); err != nil {
			return err
		}
		c.wrote(request, result)
		mismatches, err = c.judge(ctx, step.Then, &result)
		return err
	}
	if step.Eventually {
		var lost error // an answer may be cut off, and the next one not
		err = wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(context.Context) (bool, error) {
			err := once()
			if lost = nil; errors.Is(err, framework.ErrLost) {
				lost = err
				return false, nil
			}
			return err == nil && len(mismatches) == 0, err
		})
		if err = unlessTimeout(err, result); lost != nil {
			err = lost
		}
	} else {
		err = once()
	}
	if other := (*divergence)(nil); errors.As(err, &other) {
		return &failure{action: action, mismatches: other.mismatches, result: result}
	}
	if err != nil {
		return &failure{action: action, err: err, result: result}
	}
	c.keep(step.ID, result)
	if len(mismatches) > 0 {
		return &failure{action: action, mismatches: mismatches, result: result}
	}
	return nil
}

// unlessTimeout drops the error of a bound that was reached when there is a
// result, whose mismatches say more.
func unlessTimeout(err error, result framework.Result) error {
	if wait.Interrupted(err) && result.Status.Code != 0 {
		return nil
	}
	return err
}

// judge completes a result with what the Hooks and the audit log saw, and
// compares it with what is expected.
func (c *scenarioCase) judge(ctx context.Context, expect *scenario.Expectation, result *framework.Result) ([]judge.Mismatch, error) {
	result.Trace = c.calls()
	if err := c.target.HookError(c.id); err != nil {
		return nil, err
	}
	if expect != nil && expect.Audit != nil {
		ctx, cancel := context.WithTimeout(ctx, auditLimit)
		defer cancel()
		event, err := c.target.Audit(ctx, result.AuditID)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		result.Audit = event
	}
	return judge.Judge(expect, *result), nil
}

// keep stores a result for placeholders of later steps.
func (c *scenarioCase) keep(id string, result framework.Result) {
	if id == "" {
		return
	}
	calls := make([]any, 0, len(result.Trace))
	for _, call := range result.Trace {
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

// inParallel carries out steps at the same time. What is expected of the whole
// is judged on all the calls made.
func (c *scenarioCase) inParallel(ctx context.Context, step scenario.Step) *failure {
	c.target.Mark(c.id)
	failures := make([]*failure, len(step.Parallel))
	result := framework.Result{Started: time.Now()}
	var group sync.WaitGroup
	for i, inner := range step.Parallel {
		group.Go(func() { failures[i] = c.unmarked(ctx, inner) })
	}
	group.Wait()
	result.Finished = time.Now()
	for i, f := range failures {
		if f != nil {
			f.action = fmt.Sprintf("parallel[%d] %s", i, f.action)
			return f
		}
	}
	result.Status.Code = 200
	mismatches, err := c.judge(ctx, step.Then, &result)
	if err != nil || len(mismatches) > 0 {
		return &failure{action: "parallel", mismatches: mismatches, result: result, err: err}
	}
	return nil
}

// unmarked carries out a request without forgetting the calls of others.
func (c *scenarioCase) unmarked(ctx context.Context, step scenario.Step) *failure {
	quiet := *c
	quiet.target = quietTarget{c.target}
	return quiet.step(ctx, step)
}

// quietTarget is a target whose calls are not forgotten and not looked at.
type quietTarget struct{ Target }

func (quietTarget) Mark(string)                   {}
func (quietTarget) Calls(string) []framework.Call { return nil }

// install puts objects and waits until the target acts on them.
func (c *scenarioCase) install(ctx context.Context, manifests []map[string]any) error {
	for i, manifest := range manifests {
		if err := c.target.Put(ctx, c.id, manifest, c.scripts); err != nil {
			return fmt.Errorf("install[%d] %s: %w", i, describe(manifest), err)
		}
	}
	return c.target.Settle(ctx, manifests)
}

func (c *scenarioCase) remove(ctx context.Context, references []scenario.ObjectReference) error {
	var manifests []map[string]any
	for i, ref := range references {
		manifest := map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind}
		if err := c.target.Remove(ctx, c.id, kindOf(manifest), ref.Name); err != nil {
			return fmt.Errorf("remove[%d] %s %s: %w", i, ref.Kind, ref.Name, err)
		}
		manifests = append(manifests, manifest)
	}
	return c.target.Settle(ctx, manifests)
}

func (c *scenarioCase) script(hooks map[string]scenario.Hook) error {
	for name, script := range c.compile(hooks) {
		if err := c.target.SetScript(c.id, name, script); err != nil {
			return err
		}
		c.scripts[name] = script
	}
	return nil
}

// wait reads an object until it has a state.
func (c *scenarioCase) wait(ctx context.Context, w scenario.Wait) error {
	request, _, err := c.compose(scenario.Step{Get: &w.ObjectReference})
	if err != nil {
		return err
	}
	var last framework.Result
	err = wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(context.Context) (bool, error) {
		if last, err = c.target.Do(ctx, request); err != nil {
			return false, err
		}
		if w.Gone || !last.Allowed() {
			return w.Gone && last.Status.Code == 404, nil
		}
		return len(judge.Match(w.Object, last.Fields(), "object")) == 0, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%w within %s: the last answer was %d %s", framework.ErrNotSettled, c.patience, last.Status.Code, last.Status.Message)
	}
	return err
}
