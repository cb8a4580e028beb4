package execution

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
)

// givenMistakes returns a mistake.Error for what can never have an effect: rules of what is given that match
// nothing that the API server serves, and names of plugins that do not exist.
func (c *Case) givenMistakes(ctx context.Context) error {
	var problems []*scenario.Error
	for i, manifest := range c.Given {
		problems = append(problems, c.deadRules(fmt.Sprintf("given[%d]", i), manifest)...)
	}
	return asError(append(problems, c.unknownPlugins(ctx)...))
}

// installMistakes is givenMistakes for what a step installs.
func (c *Case) installMistakes(manifests []map[string]any) error {
	var problems []*scenario.Error
	for i, manifest := range manifests {
		problems = append(problems, c.deadRules(fmt.Sprintf("%s.install[%d]", c.place, i), manifest)...)
	}
	return asError(problems)
}

// deadRules returns errors for the rules of a webhook configuration, policy or binding.
func (c *Case) deadRules(at string, manifest map[string]any) []*scenario.Error {
	if !object.IsAdmission(manifest) || c.target.Optional().Unserved == nil {
		return nil
	}
	var problems []*scenario.Error
	meant := c.Scenario.Spec.MatchesNothing
	webhooks, _ := manifest["webhooks"].([]any)
	for i, webhook := range webhooks {
		if fields, _ := webhook.(map[string]any); slices.Contains(meant, fmt.Sprint(fields["name"])) {
			continue
		}
		problems = append(problems, c.deadRulesOf(at, manifest, webhook, fmt.Sprintf("webhooks[%d].rules", i))...)
	}
	metadata, _ := manifest["metadata"].(map[string]any)
	if slices.Contains(meant, fmt.Sprint(metadata["name"])) {
		return problems
	}
	for _, field := range []string{"matchConstraints", "matchResources"} {
		for _, list := range []string{"resourceRules", "excludeResourceRules"} {
			spec, _ := manifest["spec"].(map[string]any)
			problems = append(problems, c.deadRulesOf(at, manifest, spec[field], "spec."+field+"."+list)...)
		}
	}
	return problems
}

// deadRulesOf returns errors for the list of rules at a path, the last name of which is a field of its holder:
// all that is wrong if no rule can match something, and otherwise what seems to be misspelt. Manifests as a
// project ships them can have rules for other API servers.
func (c *Case) deadRulesOf(at string, manifest map[string]any, holder any, path string) []*scenario.Error {
	fields, _ := holder.(map[string]any)
	rules, _ := fields[path[strings.LastIndex(path, ".")+1:]].([]any)
	type wrong struct {
		object.Unserved
		path string
	}
	var all []wrong
	anyAlive := false
	for i, item := range rules {
		rule, _ := item.(map[string]any)
		found, alive := c.target.Optional().Unserved(texts(rule["apiGroups"]), texts(rule["apiVersions"]), texts(rule["resources"]))
		anyAlive = anyAlive || alive
		for _, one := range found {
			all = append(all, wrong{one, fmt.Sprintf("%s[%d].%s[%d]", path, i, one.Field, one.Index)})
		}
	}
	var problems []*scenario.Error
	shipped := c.Scenario.Installation != "" || c.Scenario.FromFile(at)
	for _, one := range all {
		if !anyAlive || one.Hint != "" && !shipped {
			problems = append(problems, c.Scenario.ErrorAt(at, one.path, fmt.Sprintf("%s: %s: %s", c.describeAt(at, manifest), one.path, one.Problem),
				cmp.Or(one.Hint, "if it is to match nothing, name a group that is not served, or list the webhook or policy in spec.matchesNothing")))
		}
	}
	return problems
}

// texts returns the texts of a list.
func texts(list any) []string {
	var all []string
	items, _ := list.([]any)
	for _, item := range items {
		text, _ := item.(string)
		all = append(all, text)
	}
	return all
}
