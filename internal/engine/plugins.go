package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// plugins is what is known of the admission plugins of an API server. The zero value is for
// scenarios that need none.
type plugins struct {
	enabled []string
	// unknown is why a plugin that is not in enabled can be enabled. Nil: it is not.
	unknown error
}

// findPlugins finds the plugins of the target, if a scenario of the group needs one, and on the default
// server for the report, unless it has other clients.
func (r *groupRun) findPlugins(ctx context.Context, g group) {
	needed := slices.ContainsFunc(g.scenarios, func(s scenario.Scenario) bool { return len(neededPlugins(s)) > 0 })
	if !needed && (g.profile != nil || r.target.Optional().Confined != nil) {
		return
	}
	find := r.target.Optional().Plugins
	if r.foreign != nil {
		r.plugins.unknown = r.foreign
		return
	}
	if find == nil {
		r.plugins.unknown = errors.New("this target does not report which admission plugins are enabled")
		return
	}
	r.plugins.enabled, r.plugins.unknown = find(ctx)
	if g.profile == nil && r.plugins.unknown == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.enabledPlugins = r.plugins.enabled
	}
}

// neededPlugins returns the names of the plugins that a scenario needs.
func neededPlugins(s scenario.Scenario) []string {
	var names []string
	for _, need := range s.Spec.Needs {
		if name, ok := strings.CutPrefix(need, framework.PluginPrefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// missing returns why the scenario cannot run, or "": a plugin is known to be off.
func (p plugins) missing(s scenario.Scenario) string {
	if name := p.notSeen(s); name != "" && p.unknown == nil {
		return fmt.Sprintf("needs admission plugin %s, which is not enabled on the server", name)
	}
	return ""
}

// judge returns an inconclusive outcome for a failure that can have the cause that a plugin
// is off.
func (p plugins) judge(s scenario.Scenario, outcome report.Outcome) report.Outcome {
	if name := p.notSeen(s); name != "" && outcome.Verdict == framework.Fail {
		outcome.Verdict = framework.Inconclusive
		outcome.Cause = fmt.Sprintf("it is not known which admission plugins are enabled: %v", p.unknown)
		outcome.Reason = fmt.Sprintf("admission plugin %s is possibly not enabled: %v; %s", name, p.unknown, outcome.Reason)
	}
	return outcome
}

// notSeen returns the first plugin of a scenario that is not known to be enabled, or "".
func (p plugins) notSeen(s scenario.Scenario) string {
	for _, name := range neededPlugins(s) {
		if !slices.Contains(p.enabled, name) {
			return name
		}
	}
	return ""
}
