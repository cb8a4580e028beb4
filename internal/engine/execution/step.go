package execution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/processes"
	"github.com/admissiontest/admissiontest/internal/redact"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// The limits of one step: for everything it does, and for the wait for an audit event.
const (
	stepLimit    = 90 * time.Second
	auditLimit   = 10 * time.Second
	pollInterval = 10 * time.Millisecond
)

// errPanic marks a panic of our code.
var errPanic = errors.New("panic")

// mismatchError is the error of a step in a Meanwhile whose expectations did not hold.
type mismatchError struct{ mismatches []expect.Mismatch }

// Error returns the first mismatch.
func (d *mismatchError) Error() string { return d.mismatches[0].String() }

// Act carries out the steps of the scenario, and returns why one failed, or nil. Steps after it are
// not carried out. Before each step, policies see the parameters as the steps before it left them.
func (c *Case) Act(ctx context.Context) *Failure {
	err := c.prepare(ctx)
	var failure *Failure
	if err == nil {
		if failure = c.act(ctx); failure != nil {
			// The copy is for a function that the end of ctx leaves running.
			observed := *failure
			failure.evidence, _ = processes.UntilDone(ctx, 0, func() *report.Evidence { return c.evidence(&observed) })
		}
	}
	if err != nil {
		failure = &Failure{Step: expect.Step{Action: "setup", Number: len(c.Scenario.Spec.When), Line: c.Scenario.Line}, Err: c.foreign(ctx, err)}
	}
	return failure
}

func (c *Case) act(ctx context.Context) *Failure {
	for i, step := range c.Scenario.Spec.When {
		failure := failed("before it", c.sandbox.WaitForParams(ctx))
		if failure == nil {
			failure = c.at(fmt.Sprintf("when[%d]", i)).step(ctx, step)
		}
		if failure == nil {
			continue
		}
		failure.Err = c.foreign(ctx, failure.Err)
		if misspelt := (*framework.ManifestError)(nil); errors.As(failure.Err, &misspelt) && !expect.IsMistake(failure.Err) {
			problem := c.Scenario.ErrorAt(fmt.Sprintf("when[%d]", i), "", misspelt.Err.Error(), "")
			failure.Err = &expect.MistakeError{Problems: []*scenario.Error{problem}, Cause: failure.Err}
		}
		failure.Number, failure.control = i+1, step.Control
		if i < len(c.Scenario.Lines) {
			failure.Line = c.Scenario.Lines[i]
		}
		return failure
	}
	return nil
}

// at returns the case for a step at a field path of the spec: "when[1]".
func (c *Case) at(path string) *Case {
	placed := *c
	placed.path = path
	return &placed
}

// step carries out one step and judges it. Nil means that it held. A panic is an error of
// the scenario, not the end of the process.
func (c *Case) step(ctx context.Context, raw scenario.Step) (f *Failure) {
	defer func() {
		if cause := recover(); cause != nil {
			f = failed("run step", fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	step, err := scenario.Replace(raw, c.lookup)
	if err != nil {
		return failed("read step", err)
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

// innerStep carries out a step whose calls belong to an outer step. Path is its path in the
// spec, or empty.
func (c *Case) innerStep(ctx context.Context, step scenario.Step, path string) *Failure {
	inner := *c
	inner.inner, inner.path = true, path
	return inner.step(ctx, step)
}

func failed(action string, err error) *Failure {
	if err == nil {
		return nil
	}
	return &Failure{Step: expect.Step{Action: action}, Err: err}
}

// install installs objects and waits until the target acts on them.
func (c *Case) install(ctx context.Context, manifests []map[string]any) error {
	for i, manifest := range manifests {
		if err := c.asWritten(ctx, c.sandbox.Install(ctx, manifest, c.currentScripts()), manifest); err != nil {
			if err = c.asMistake(err, fmt.Sprintf("%s.install[%d]", c.path, i), manifest); expect.IsMistake(err) {
				return err
			}
			return fmt.Errorf("install[%d] %s: %w", i, object.Describe(manifest), err)
		}
		c.seeManifest(manifest)
	}
	if err := asError(c.deadRules(c.path+".install", manifests)); err != nil {
		return err
	}
	return c.target.WaitUntilEffective(ctx, manifests)
}

// remove deletes objects and waits until the target no longer acts on them.
func (c *Case) remove(ctx context.Context, references []scenario.ObjectReference) error {
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

// changeFiles changes files of the API server, in the order of their names.
func (c *Case) changeFiles(files scenario.Files) error {
	server := c.target.Optional()
	if server.WriteFile == nil || server.RemoveFile == nil {
		return errors.New("this target cannot change the files of its API server")
	}
	for _, path := range files.Remove {
		if err := server.RemoveFile(path); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files.Write)) {
		if err := server.WriteFile(path, files.Write[path]); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}

// limitEnded reports whether an error says that a limit ended. A request without a response can have had a limit of its own.
func limitEnded(err error) bool {
	return wait.Interrupted(err) && !errors.Is(err, framework.ErrNoResponse)
}

// wait reads an object until it matches, or is gone.
func (c *Case) wait(ctx context.Context, w scenario.Wait) error {
	request, _, err := c.compose(scenario.Step{Get: &w.ObjectReference})
	if err == nil && w.Gone {
		err = c.neverExisted(request, w)
	}
	if err != nil {
		return err
	}
	var last framework.Result
	var mismatches []expect.Mismatch
	err = wait.PollUntilContextTimeout(ctx, pollInterval, c.patience, true, func(context.Context) (bool, error) {
		if last, err = c.sandbox.Send(ctx, request); err != nil || w.Gone || !last.Allowed() {
			return err == nil && w.Gone && last.Status.Code == http.StatusNotFound, err
		}
		mismatches = redact.Matcher().Match(w.Object, redact.Fields(last.Fields()), "object")
		return len(mismatches) == 0, nil
	})
	if limitEnded(err) && last.Allowed() && len(mismatches) > 0 {
		return fmt.Errorf("%w after %s: %s", framework.ErrTimeout, c.patience, mismatches[0])
	}
	if limitEnded(err) {
		return fmt.Errorf("%w after %s: the last response was %d %s", framework.ErrTimeout, c.patience, last.Status.Code, last.Status.Message)
	}
	if err != nil || w.Gone {
		return err
	}
	c.see(request.Kind.GroupKind(), request.Namespace, request.Name)
	problems, err := c.unknownFields(ctx, request.Kind.GroupVersion(), c.path+".wait.object", w.Object, objects{"": {last.Fields()}})
	return cmp.Or(asError(problems), err)
}

// neverExisted returns a mistake if the scenario waits for an object to be gone that nothing before has shown to exist: it
// was not given, and no response said so.
func (c *Case) neverExisted(request framework.Request, w scenario.Wait) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.identityOf(request.Kind.GroupKind(), request.Namespace, request.Name)
	if c.seen[asked] {
		return nil
	}
	var names []string
	for other := range c.seen {
		if other.kind == asked.kind && other.namespace == asked.namespace {
			names = append(names, other.name)
		}
	}
	slices.Sort(names)
	return asError([]*scenario.Error{c.Scenario.ErrorAt(c.path+".wait", "name",
		fmt.Sprintf("wait for %s %s to be gone: this scenario has not seen it before; expected an object that was given, or that a step wrote, read or deleted", w.Kind, w.Name),
		cmp.Or(strings.TrimPrefix(suggest.DidYouMean(request.Name, names), "; "), "check its kind, name and namespace, or wait for it first"))})
}

// compile returns the scripts of the Hooks of a scenario. Path is their field path in the spec.
func (c *Case) compile(path string, hooks map[string]scenario.Hook) map[string]hook.Script {
	scripts := map[string]hook.Script{}
	for name, h := range hooks {
		replies := h.Replies
		if len(replies) == 0 {
			replies = []scenario.Reply{h.Reply}
		}
		var script hook.Script
		for i, reply := range replies {
			compiled := reply.Reply
			if len(reply.Meanwhile) > 0 {
				at := fmt.Sprintf("%s[%s]", path, name)
				if len(h.Replies) > 0 {
					at = fmt.Sprintf("%s.replies[%d]", at, i)
				}
				compiled.Meanwhile = func() error { return c.at(at).meanwhile(reply.Meanwhile) }
			}
			script.Replies = append(script.Replies, compiled)
		}
		scripts[name] = script
	}
	return scripts
}

// currentScripts returns the scripts as the steps so far set them.
func (c *Case) currentScripts() map[string]hook.Script {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.scripts)
}

// meanwhile runs steps while a webhook is called. The path of the case is the path of the reply. Their expectations
// apply to the responses; the calls belong to the outer step.
func (c *Case) meanwhile(steps []scenario.Step) error {
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	for i, step := range steps {
		failure := c.innerStep(ctx, step, fmt.Sprintf("%s.meanwhile[%d]", c.path, i))
		if failure == nil {
			continue
		}
		if cause := failure.NothingAboutAdmission(); cause != "" {
			return fmt.Errorf("step %d meanwhile: %s: %w: %s", i+1, failure.Action, expect.ErrDuringCall, cause)
		}
		if failure.Err != nil {
			return fmt.Errorf("step %d meanwhile: %s: %w", i+1, failure.Action, failure.Err)
		}
		for k := range failure.Mismatches {
			failure.Mismatches[k].Path = fmt.Sprintf("meanwhile[%d] %s: %s", i, failure.Action, failure.Mismatches[k].Path)
		}
		return &mismatchError{failure.Mismatches}
	}
	return nil
}

// setScripts replaces the scripts of webhooks.
func (c *Case) setScripts(hooks map[string]scenario.Hook) error {
	for name, script := range c.compile(c.path+".script", hooks) {
		if err := c.sandbox.SetScript(name, script); err != nil {
			return err
		}
		c.mu.Lock()
		c.scripts[name] = script
		c.mu.Unlock()
	}
	return nil
}

// Waits reports whether a webhook of the scenario delays its answer.
func (c *Case) Waits() bool {
	for _, script := range c.currentScripts() {
		for _, reply := range script.Replies {
			if reply.Fault == hook.Hang || reply.Fault == hook.Slow || reply.Fault == hook.TLSHang || reply.Delay > 0 {
				return true
			}
		}
	}
	return false
}

// inParallel carries out steps at the same time. The expectation of the parallel step is
// judged on the calls of all of them.
func (c *Case) inParallel(ctx context.Context, step scenario.Step) *Failure {
	recording := c.sandbox.Record()
	defer recording.Stop()
	failures := make([]*Failure, len(step.Parallel))
	outer := *c
	outer.answers = &answers{}
	result := framework.Result{Started: time.Now()}
	var group sync.WaitGroup
	for i, inner := range step.Parallel {
		group.Go(func() { failures[i] = outer.innerStep(ctx, inner, fmt.Sprintf("%s.parallel[%d]", c.path, i)) })
	}
	group.Wait()
	result.Finished = time.Now()
	if f := ofParallel(failures); f != nil {
		return f
	}
	result.Status.Code = 200
	recording.Wait(ctx)
	result.Trace = recording.Calls()
	if c.inner {
		result.Trace = nil
	}
	err := recording.Err()
	if other := (*mismatchError)(nil); errors.As(err, &other) {
		return &Failure{Step: expect.Step{Action: "parallel", Mismatches: other.mismatches, Result: result}}
	}
	var mismatches []expect.Mismatch
	if err == nil {
		mismatches, err = c.judge(ctx, step.Then, &result)
	}
	if err == nil && len(mismatches) > 0 {
		return c.judged(ctx, Failure{Step: expect.Step{Action: "parallel", Expect: step.Then, Mismatches: mismatches, Result: result}}, outer.answers.all, "")
	}
	if err != nil {
		return &Failure{Step: expect.Step{Action: "parallel", Result: result}, Err: err}
	}
	return failed("parallel", c.vacuous(ctx, step.Then, schema.GroupVersion{}, result))
}

// ofParallel returns the failure that decides about a parallel step, or nil: the first one
// that says nothing about admission, because it can be the cause of the others (a request
// that was lost, or that another client's policy refused, does not reach a barrier), else the first.
func ofParallel(failures []*Failure) *Failure {
	decides := func(f *Failure) bool {
		return f != nil && (f.NothingAboutAdmission() != "" || errors.As(f.Err, new(*ForeignError)))
	}
	at := slices.IndexFunc(failures, decides)
	if at < 0 {
		at = slices.IndexFunc(failures, func(f *Failure) bool { return f != nil })
	}
	if at < 0 {
		return nil
	}
	failures[at].Action = fmt.Sprintf("parallel[%d] %s", at, failures[at].Action)
	return failures[at]
}

// answers are the responses to the requests of a step and of the steps in it. Nil discards them.
type answers struct {
	mu  sync.Mutex
	all []framework.Result
}

func (a *answers) add(result framework.Result) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, result)
}
