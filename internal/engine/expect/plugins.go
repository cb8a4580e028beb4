package expect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/match"
)

// judgePlugins compares the calls of plugins. The expected calls must appear in their order;
// other calls can lie between them.
func (c comparison) judgePlugins(expect *scenario.Plugins, trace framework.Trace) []Mismatch {
	if expect == nil {
		return nil
	}
	var found []Mismatch
	for index, call := range trace {
		if call.Plugin != nil && call.Plugin.Handled && slices.Contains(expect.Exclude, call.Plugin.Name) {
			found = append(found, Mismatch{Path: "plugins.exclude", Expected: "no call of " + call.Plugin.Name, Actual: "a " + pluginCalled(call), Call: &index})
		}
	}
	if expect.InOrder != nil && len(expect.InOrder) == 0 {
		for index, call := range trace {
			if call.Plugin != nil && call.Plugin.Handled {
				return append(found, Mismatch{Path: "plugins", Expected: "no call of a plugin", Actual: "calls of " + c.Show(trace.Plugins()), Call: &index})
			}
		}
	}
	next := 0 // the first call after the last one that was expected
	for i, one := range expect.InOrder {
		index := slices.IndexFunc(trace[next:], func(call framework.Call) bool {
			return call.Plugin != nil && call.Plugin.Name == one.Plugin && len(c.judgePlugin(one, call, "")) == 0
		})
		if index < 0 {
			// What follows would only be a consequence.
			return append(found, c.missingPlugin(one, trace, next, match.Index("plugins", i))...)
		}
		next += index + 1
	}
	return found
}

// missingPlugin returns why there is no call as expected from an index on: the call of that plugin
// with the fewest differences, or that there is none.
func (c comparison) missingPlugin(expect scenario.PluginCall, trace framework.Trace, from int, path string) []Mismatch {
	var nearest []Mismatch
	for index := from; index < len(trace); index++ {
		if call := trace[index]; call.Plugin != nil && call.Plugin.Name == expect.Plugin {
			differences := ofCall(c.judgePlugin(expect, call, path), index)
			if nearest == nil || len(differences) < len(nearest) {
				nearest = differences
			}
		}
	}
	if nearest != nil {
		return nearest
	}
	return one(path, "a call of plugin "+expect.Plugin+", after those that are expected before it", "no matching call; all calls: "+c.Show(trace.Plugins()))
}

// pluginCalled describes a call: "mutating call (round 1) of plugin LimitRanger".
func pluginCalled(call framework.Call) string {
	round := ""
	if call.Plugin.Round > 0 {
		round = fmt.Sprintf(" (round %d)", call.Plugin.Round)
	}
	return fmt.Sprintf("%s call%s of plugin %s", call.Phase, round, call.Plugin.Name)
}

// judgePlugin compares an expected call with a call of the same plugin.
func (c comparison) judgePlugin(expect scenario.PluginCall, call framework.Call, path string) []Mismatch {
	p := call.Plugin
	if handled := expect.Handled == nil || *expect.Handled; handled != p.Handled {
		return c.Match(handled, p.Handled, match.Key(path, "handled"))
	}
	seen := map[string]any{
		"phase": string(call.Phase), "round": p.Round, "operation": p.Operation, "resource": p.Resource, "subresource": p.Subresource,
	}
	var found []Mismatch
	for _, field := range fieldsOf(expect) {
		switch here := match.Key(path, field.name); field.name {
		case "plugin", "handled":
		case "changed":
			found = append(found, c.judgeChanged(expect.Changed, p, here)...)
		case "refused":
			found = append(found, c.judgeRefused(expect.Refused, p, here)...)
		default:
			found = append(found, c.Match(field.value, seen[field.name], here)...)
		}
	}
	return found
}

// judgeChanged compares the paths of what a call changed. An expected path stands for the paths
// below it.
func (c comparison) judgeChanged(expect []string, p *framework.PluginCall, path string) []Mismatch {
	differs := func(actual string) []Mismatch {
		return []Mismatch{{Path: path, Expected: c.Show(expect), Actual: actual}}
	}
	if p.NotComparable != "" {
		return differs("unknown: " + p.NotComparable)
	}
	actual := c.Show(slices.Concat([]string{}, p.Changed))
	if p.MoreChanged > 0 {
		actual += fmt.Sprintf(" and %d more", p.MoreChanged)
	}
	for _, changed := range p.Changed {
		if !slices.ContainsFunc(expect, func(one string) bool { return covers(one, changed) }) {
			return differs(actual)
		}
	}
	for _, one := range expect {
		if !slices.ContainsFunc(p.Changed, func(changed string) bool { return covers(one, changed) }) {
			return differs(actual)
		}
	}
	if p.MoreChanged > 0 {
		return differs(actual)
	}
	return nil
}

// covers reports whether a path is another one, or above it.
func covers(path, other string) bool {
	rest, below := strings.CutPrefix(other, path)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// judgeRefused compares a refusal with true, false, or {code, reason, message}.
func (c comparison) judgeRefused(expect any, p *framework.PluginCall, path string) []Mismatch {
	if wanted, ok := expect.(bool); ok {
		if wanted == (p.Refused != nil) {
			return nil
		}
		actual := "it did not refuse the request"
		if p.Refused != nil {
			actual = fmt.Sprintf("it refused the request: %d %s %s", p.Refused.Code, p.Refused.Reason, c.Show(p.Refused.Message))
		}
		return []Mismatch{{Path: path, Expected: c.Show(wanted), Actual: actual}}
	}
	if p.Refused == nil {
		return []Mismatch{{Path: path, Expected: c.Describe(expect), Actual: "it did not refuse the request"}}
	}
	return c.Match(expect, map[string]any{
		"code": int64(p.Refused.Code), "reason": p.Refused.Reason, "message": p.Refused.Message,
	}, path)
}
