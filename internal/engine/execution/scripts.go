package execution

import (
	"context"
	"fmt"
	"maps"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

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
			return fmt.Errorf("step %d meanwhile: %s: %w: %s", i+1, failure.action, expect.ErrDuringCall, cause)
		}
		if failure.Err != nil {
			return fmt.Errorf("step %d meanwhile: %s: %w", i+1, failure.action, failure.Err)
		}
		for k := range failure.mismatches {
			failure.mismatches[k].Path = fmt.Sprintf("meanwhile[%d] %s: %s", i, failure.action, failure.mismatches[k].Path)
		}
		return &mismatchError{failure.mismatches}
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
