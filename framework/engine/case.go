package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scenarioCase is one scenario on one target.
type scenarioCase struct {
	scenario scenario.Scenario
	target   Target
	id       string
	given    []map[string]any
	scripts  map[string]hook.Script
	// users are the names of the users that the scenario acts as.
	users map[string]bool
	// patience bounds waits.
	patience time.Duration
	// hooks are the placeholders that say where our webhooks are called.
	hooks map[string]any

	mu *sync.Mutex
	// results are those of steps that have an ID, as decoded JSON.
	results map[string]any
	// writes are the scenario's last by kind. See catchUp.
	writes map[schema.GroupKind]written
}

// ScenarioID is the ID of a scenario in a run, and the name of its namespace. The
// scenarios that share a server are numbered from 1.
func ScenarioID(run string, number int) string { return fmt.Sprintf("at-%s-%03d", run, number) }

// newCase gives a scenario an ID and fills in what is known before it runs.
func (r *run) newCase(s scenario.Scenario, target Target, number int) (*scenarioCase, error) {
	c := &scenarioCase{
		scenario: s, target: target, results: map[string]any{}, writes: map[schema.GroupKind]written{},
		id:    ScenarioID(target.Run(), number),
		users: map[string]bool{}, patience: r.options.Patience,
		mu: &sync.Mutex{},
	}
	for _, step := range s.Spec.When {
		c.addUsers(step)
	}
	if local, ok := target.(interface{ HooksAt() cluster.HooksAt }); ok {
		at := local.HooksAt()
		c.hooks = map[string]any{
			"hooks.host": at.URLHost(), "hooks.port": int64(at.Port),
			"hooks.caBundle": base64.StdEncoding.EncodeToString(at.CABundle),
		}
	}
	if shared, ok := target.(interface {
		Heed(id string, ours func(user string) bool)
	}); ok {
		shared.Heed(c.id, c.ours)
	}
	given, err := substitute(s.Spec.Given, c.lookup)
	if err != nil {
		return c, fmt.Errorf("read given: %w", err)
	}
	c.given = given
	hooks, err := substitute(s.Spec.Hooks, c.lookup)
	if err != nil {
		return c, fmt.Errorf("read hooks: %w", err)
	}
	c.scripts = c.compile(hooks)
	return c, nil
}

// addUsers notes whom a step acts as.
func (c *scenarioCase) addUsers(step scenario.Step) {
	if step.As != nil {
		c.users[strings.NewReplacer("$(id)", c.id, "$(namespace)", c.id).Replace(step.As.Name)] = true
	}
	for _, inner := range step.Parallel {
		c.addUsers(inner)
	}
}

// calls returns the webhook calls made for requests of the scenario. Controllers
// write to its namespace too, on a cluster that has them: theirs are left out.
func (c *scenarioCase) calls() framework.Trace {
	var trace framework.Trace
	for _, call := range c.target.Calls(c.id) {
		user, _ := call.Request()["userInfo"].(map[string]any)
		if name, _ := user["username"].(string); name == "" || c.ours(name) {
			trace = append(trace, call)
		}
	}
	return trace
}

// ours reports whether a user is one that the scenario acts as, or may be.
func (c *scenarioCase) ours(user string) bool {
	self := c.target.Info().User
	return self == "" || user == self || c.users[user]
}

// lookup is what placeholders stand for.
func (c *scenarioCase) lookup(name string) (any, bool) {
	switch name {
	case "id", "namespace":
		return c.id, true
	case "run":
		return "at-" + c.target.Run(), true
	}
	if value, ok := c.hooks[name]; ok {
		return value, true
	}
	path, ok := strings.CutPrefix(name, "steps.")
	if !ok {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return walk(c.results, path)
}

// compile makes the Hooks' scripts of a scenario's.
func (c *scenarioCase) compile(hooks map[string]scenario.Hook) map[string]hook.Script {
	scripts := map[string]hook.Script{}
	for name, h := range hooks {
		replies := h.Replies
		if len(replies) == 0 {
			replies = []scenario.Reply{h.Reply}
		}
		var script hook.Script
		for _, reply := range replies {
			compiled := reply.Reply
			if len(reply.Meanwhile) > 0 {
				compiled.Meanwhile = func() error { return c.meanwhile(reply.Meanwhile) }
			}
			script.Replies = append(script.Replies, compiled)
		}
		scripts[name] = script
	}
	return scripts
}

// meanwhile carries out steps while a webhook is being called. What is expected
// of them holds for their answers; the calls made are the outer step's.
func (c *scenarioCase) meanwhile(steps []scenario.Step) error {
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	for i, step := range steps {
		failure := c.unmarked(ctx, step)
		if failure == nil {
			continue
		}
		if failure.err != nil {
			return fmt.Errorf("step %d meanwhile: %s: %w", i+1, failure.action, failure.err)
		}
		for k := range failure.mismatches {
			failure.mismatches[k].Path = fmt.Sprintf("meanwhile[%d] %s: %s", i, failure.action, failure.mismatches[k].Path)
		}
		return &divergence{failure.mismatches}
	}
	return nil
}

// eligible returns why the target cannot show the scenario, or "".
func eligible(s scenario.Scenario, info framework.TargetInfo) string {
	if reason := tooOld(s, info); reason != "" {
		return reason
	}
	if gate := s.Spec.FeatureGate; gate != "" && info.FeatureGates != nil && !info.FeatureGates[gate] {
		return fmt.Sprintf("needs feature gate %s, which is off in the server", gate)
	}
	for _, need := range s.Spec.Needs {
		if !contains(info.Abilities, need) {
			return fmt.Sprintf("needs %s, which this target does not give", need)
		}
	}
	return ""
}

// tooOld returns why a server of this version cannot show the scenario, or "".
func tooOld(s scenario.Scenario, info framework.TargetInfo) string {
	if s.Spec.Since == "" || atLeast(info.ServerVersion, s.Spec.Since) {
		return ""
	}
	return fmt.Sprintf("holds since Kubernetes %s, the server is %s", s.Spec.Since, info.ServerVersion)
}

func contains(list []string, wanted string) bool {
	for _, item := range list {
		if item == wanted {
			return true
		}
	}
	return false
}

// atLeast compares a server's "v1.36.3+suffix" with a minor version "1.36".
func atLeast(server, minor string) bool {
	var major, have, want int
	if _, err := fmt.Sscanf(server, "v%d.%d", &major, &have); err != nil {
		return true
	}
	if _, err := fmt.Sscanf(minor, "1.%d", &want); err != nil {
		return true
	}
	return major > 1 || have >= want
}

// namespaced reports whether a manifest is of a kind that lives in namespaces.
func (c *scenarioCase) namespaced(manifest map[string]any) bool {
	namespaced, err := c.target.Namespaced(kindOf(manifest))
	return err == nil && namespaced
}

func kindOf(manifest map[string]any) schema.GroupVersionKind {
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// arrange installs what is given: what configurations may refer to first, then
// the configurations themselves, and last the bindings: a policy in force can refuse
// the configurations that come after it.
func (c *scenarioCase) arrange(ctx context.Context) error {
	if err := c.target.Open(ctx, c.id); err != nil {
		return err
	}
	if conversion := c.scenario.Spec.Conversion; conversion != nil {
		if err := c.target.SetConversion(c.id, *conversion); err != nil {
			return err
		}
	}
	for stage := range stages {
		for i, manifest := range c.given {
			if stageOf(manifest) != stage {
				continue
			}
			if err := c.target.Put(ctx, c.id, manifest, c.scripts); err != nil {
				return fmt.Errorf("install given[%d] %s: %w", i, describe(manifest), err)
			}
		}
	}
	return nil
}

// stages is how many there are of stageOf, which is when a manifest is installed.
const stages = 3

func stageOf(manifest map[string]any) int {
	switch {
	case !isAdmission(manifest):
		return 0
	case !strings.HasSuffix(kindOf(manifest).Kind, "Binding"):
		return 1
	default:
		return 2
	}
}

func isAdmission(manifest map[string]any) bool {
	return kindOf(manifest).Group == "admissionregistration.k8s.io"
}

// describe names a manifest as people do: "ConfigMap subject".
func describe(manifest map[string]any) string {
	kind, _ := manifest["kind"].(string)
	metadata, _ := manifest["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if name == "" {
		name, _ = metadata["generateName"].(string)
	}
	return strings.TrimSpace(kind + " " + name)
}

// parallel runs a function for each case, so many at a time. It goes on after an
// error and returns all.
func parallel(cases []*scenarioCase, limit int, do func(*scenarioCase) error) error {
	var g errgroup.Group
	g.SetLimit(limit)
	errs := make([]error, len(cases))
	for i, c := range cases {
		g.Go(func() error {
			errs[i] = do(c)
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}
