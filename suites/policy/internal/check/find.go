package check

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// goal is a case that is wanted: a request that a policy allows, or one that a validation refuses.
type goal struct {
	policy     Policy
	validation int // -1: allowed
	found      *try
}

func (g *goal) String() string {
	if g.validation < 0 {
		return "allowed"
	}
	return fmt.Sprintf("denied-%s-%d", strings.ReplaceAll(g.policy.GetName(), ".", "-"), g.validation)
}

// reached reports whether a try is what is wanted, and better than what was found.
func (g *goal) reached(one *try) bool {
	if !one.evaluated[g.policy.GetName()] || one.errors > 0 {
		return false
	}
	if g.validation < 0 {
		return g.found == nil && len(one.failing) == 0 && one.result.Allowed()
	}
	wanted := g.name()
	return slices.Contains(one.failing, wanted) && one.failing[0] == wanted && (g.found == nil || len(one.failing) < len(g.found.failing)) &&
		(one.result.Allowed() || refusalBy(g.policy, one) != "")
}

func (g *goal) name() string {
	return fmt.Sprintf("%s validations[%d]", g.policy.GetName(), g.validation)
}

// met reports whether nothing better can be found.
func (g *goal) met() bool { return g.found != nil && len(g.found.failing) <= 1 }

// find finds the cases for an operation. Created are the cases that were found for creations.
func (d *drafter) find(ctx context.Context, t *drafted, operation admission.Operation, created []*goal) ([]*goal, error) {
	var goals []*goal
	for _, p := range d.subject.List() {
		if p.Mutating() || !handle(p, operation, t.served) {
			continue
		}
		goals = append(goals, &goal{policy: p, validation: -1})
		for i := range p.Expressions("validations") {
			goals = append(goals, &goal{policy: p, validation: i})
		}
	}
	if len(goals) == 0 {
		return nil, nil
	}
	starts, err := d.starts(ctx, t, operation, created)
	if err != nil {
		return nil, err
	}
	tried, err := d.search(ctx, t, starts, goals)
	if err != nil {
		return nil, err
	}
	var written []*try
	for _, g := range goals {
		switch {
		case g.found == nil && g.validation < 0:
			d.missing("%s of %s: no object found that %s is evaluated for and allows, in %d requests", operation, t.kind.Kind, describe(g.policy), tried)
		case g.found == nil:
			d.missing("%s of %s: no object found that only validations[%d] of %s denies, in %d requests: %s", operation, t.kind.Kind, g.validation, describe(g.policy), tried, oneLine(g.policy.Expressions("validations")[g.validation]))
		case !slices.Contains(written, g.found):
			written = append(written, g.found)
			if c, ok := d.caseOf(t, g); ok {
				d.draft.Cases = append(d.draft.Cases, c)
			}
		}
	}
	return goals, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// starts returns the first requests for an operation.
func (d *drafter) starts(ctx context.Context, t *drafted, operation admission.Operation, created []*goal) ([]*try, error) {
	var all []*try
	add := func(p space, old, manifest map[string]any) {
		for _, user := range d.users {
			all = append(all, &try{operation: operation, space: p, user: user, old: old, manifest: manifest})
		}
	}
	if operation == admission.Create {
		for _, p := range d.spaces {
			for _, manifest := range d.subject.labelled(t.base) {
				add(p, nil, manifest)
			}
		}
		return all, nil
	}
	before := len(t.stored)
	for _, g := range created { // what is allowed can be stored now
		if g.validation < 0 && g.found != nil {
			if err := d.store(ctx, t, &try{space: g.found.space, user: g.found.user, manifest: renamed(g.found.manifest, anExample+"-allowed-"+strings.ToLower(string(operation)))}); err != nil {
				return nil, err
			}
			break
		}
	}
	stored := slices.Concat(t.stored[before:], t.stored[:before])
	if operation == admission.Update && d.others(operation) == 0 { // one of each namespace
		stored = slices.CompactFunc(stored, func(x, y *try) bool { return x.space.real == y.space.real })
	}
	for _, old := range stored {
		name, _ := at(old.manifest, Path{"metadata", "name"})
		add(old.space, old.manifest, old.manifest)
		for _, g := range created {
			if operation == admission.Update && g.found != nil && g.found.space.real == old.space.real {
				add(old.space, old.manifest, renamed(g.found.manifest, fmt.Sprint(name)))
			}
		}
		for _, other := range stored[:min(len(stored), d.others(operation))] {
			if operation == admission.Update && other != old && other.space.real == old.space.real {
				add(old.space, old.manifest, renamed(other.manifest, fmt.Sprint(name)))
			}
		}
	}
	return all[:min(len(all), mostTries)], nil
}

// others is how many other objects an object is updated to: none, unless an expression compares them.
func (d *drafter) others(operation admission.Operation) int {
	for _, p := range d.subject.List() {
		if operation == admission.Update && slices.ContainsFunc(p.expressions(), func(text string) bool { return Names(text, "oldObject") }) {
			return mostStored
		}
	}
	return 0
}

// search sends the starts, and then what the requests are that are nearest to a good one with one change, until all goals are
// met or the limit is reached. It returns the number of requests.
func (d *drafter) search(ctx context.Context, t *drafted, starts []*try, goals []*goal) (tried int, err error) {
	var open []*try
	seen := map[string]bool{}
	ask := func(all []*try) error {
		all = slices.DeleteFunc(all, func(one *try) bool {
			key, _ := json.Marshal([]any{one.space.real, one.user, one.old, one.manifest})
			known := seen[string(key)]
			seen[string(key)] = true
			return known
		})
		tried += len(all)
		if err := d.send(ctx, t, all...); err != nil {
			return err
		}
		if err := d.complete(ctx, t, all); err != nil {
			return err
		}
		for _, one := range all {
			for _, g := range goals {
				if g.reached(one) {
					g.found = one
				}
			}
			if one.result.Allowed() || len(one.evaluated) > 0 {
				open = append(open, one)
			}
		}
		return nil
	}
	if err := ask(starts); err != nil {
		return tried, err
	}
	for len(open) > 0 && tried < mostTries && slices.ContainsFunc(goals, func(g *goal) bool { return !g.met() }) {
		slices.SortStableFunc(open, func(x, y *try) int {
			return cmp.Or(cmp.Compare(d.score(t, x), d.score(t, y)), cmp.Compare(x.depth, y.depth))
		})
		next := open[0]
		open = open[1:]
		if next.operation == admission.Delete {
			continue
		}
		var all []*try
		for _, manifest := range t.edits(next.manifest, d.readings) {
			all = append(all, &try{operation: next.operation, space: next.space, user: next.user, old: next.old, manifest: manifest, depth: next.depth + 1})
		}
		if err := ask(all[:min(len(all), mostTries-tried)]); err != nil {
			return tried, err
		}
	}
	return tried, nil
}

// score says how far a request is from one that all policies are evaluated for and allow.
func (d *drafter) score(t *drafted, one *try) int {
	score := len(one.failing) + one.errors
	for _, p := range d.subject.List() {
		if !p.Mutating() && handle(p, one.operation, t.served) && !one.evaluated[p.GetName()] {
			score++
		}
	}
	return score
}

// complete sends requests again that the API server refuses because something is missing, with it.
func (d *drafter) complete(ctx context.Context, t *drafted, all []*try) error {
	const rounds = 3
	for range rounds {
		var again []*try
		for _, one := range all {
			if one.result.Allowed() || len(one.evaluated) > 0 {
				continue
			}
			if completed := t.completed(one.manifest, one.result.Status); completed != nil {
				one.manifest = completed
				again = append(again, one)
			}
		}
		if err := d.send(ctx, t, again...); err != nil {
			return err
		}
	}
	return nil
}

// refusalBy returns the message with which a policy refuses, or "".
func refusalBy(p Policy, one *try) string {
	_, message, found := strings.Cut(one.result.Status.Message, "ValidatingAdmissionPolicy '"+p.GetName()+"' with binding '")
	_, message, denied := strings.Cut(message, "' denied request: ")
	if !found || !denied {
		return ""
	}
	return message
}

// saidByPolicy matches the warning of a policy.
var saidByPolicy = regexp.MustCompile(`(?s)^Validation failed for ValidatingAdmissionPolicy '([^']+)' with binding '[^']*': (.*)$`)

// caseOf returns the case for a goal. Ok is false if no expectation says what the policy does.
func (d *drafter) caseOf(t *drafted, g *goal) (c scenario.PolicyCase, ok bool) {
	one := g.found
	name := []string{strings.ToLower(string(one.operation)), strings.ToLower(t.kind.Kind), g.String()}
	c = scenario.PolicyCase{Name: strings.Join(name, "-"), Object: scenario.Manifests{one.manifest}, As: one.user}
	if t.served.Namespaced {
		c.Namespace = one.space.name
		if len(one.space.labels) > 0 && one.space.name != "" {
			d.draft.Namespaces[one.space.name] = one.space.labels
		}
	}
	switch one.operation {
	case admission.Update:
		c.Old = scenario.Manifests{one.old}
	case admission.Delete:
		c.Operation = string(one.operation)
	}
	if g.validation < 0 {
		allowed := true
		c.Allowed = &allowed
		return c, true
	}
	if message := refusalBy(g.policy, one); message != "" {
		c.Denied = &scenario.Denied{Policy: g.policy.GetName()}
		if part := d.lasting(message); part != "" {
			c.Denied.Message = []string{part}
		}
		return c, true
	}
	for _, text := range one.result.Warnings {
		if found := saidByPolicy.FindStringSubmatch(text); found != nil && found[1] == g.policy.GetName() && d.lasting(found[2]) != "" {
			c.Warned = d.lasting(found[2])
			return c, true
		}
	}
	d.missing("%s of %s: validations[%d] of %s is false, but no binding has the action Deny or Warn: add a case with audited", one.operation, t.kind.Kind, g.validation, describe(g.policy))
	return c, false
}

// lasting returns the longest part of a message that does not depend on the run: one line, without the namespace.
func (d *drafter) lasting(message string) string {
	longest := ""
	for _, line := range strings.Split(message, "\n") {
		for _, part := range strings.Split(line, d.namespace) {
			if part = strings.TrimSpace(part); len(part) > len(longest) {
				longest = part
			}
		}
	}
	return longest
}
