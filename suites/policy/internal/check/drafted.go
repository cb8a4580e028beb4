package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

func schemaKind(kind metav1.GroupVersionKind) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
}

// mostMutated limits the cases with a mutated object of a kind.
const mostMutated = 5

// mutated finds objects that MutatingAdmissionPolicies change: one for each set of fields that change. It compares the
// responses before and after the policies were installed.
func (d *drafter) mutated(ctx context.Context, t *drafted) error {
	var policies []string
	for _, p := range d.subject.List() {
		if !p.Mutating() {
			continue
		}
		if handle(p, admission.Create, t.served) {
			policies = append(policies, describe(p))
		}
		if handle(p, admission.Update, t.served) {
			d.missing("UPDATE of %s: %s is only tried with CREATE; add a case with old", t.kind.Kind, describe(p))
		}
	}
	if len(policies) == 0 {
		return nil
	}
	var after []*try
	for _, one := range t.first {
		after = append(after, &try{operation: one.operation, space: one.space, manifest: one.manifest})
	}
	if err := d.send(ctx, t, after...); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, one := range after {
		paths := Differences(t.first[i].result.Fields(), one.result.Fields())
		key := fmt.Sprint(paths)
		if !one.result.Allowed() || seen[key] || len(seen) == mostMutated {
			continue
		}
		seen[key] = true
		g := &goal{validation: -1, found: one}
		c, _ := d.caseOf(t, g)
		if len(paths) > 0 {
			c.Name, c.Allowed = fmt.Sprintf("create-%s-mutated-%d", strings.ToLower(t.kind.Kind), len(seen)), nil
			c.Mutated = expected(one.result.Fields(), paths)
		}
		d.draft.Cases = append(d.draft.Cases, c)
	}
	if len(seen) == 0 || len(seen) == 1 && seen["[]"] {
		d.missing("CREATE of %s: no object found that %s changes, in %d requests", t.kind.Kind, strings.Join(policies, " or "), len(after))
	}
	return nil
}

// expected returns what an object has at paths, for an expectation: lists as a whole.
func expected(object map[string]any, all []Path) map[string]any {
	found := map[string]any{}
	for _, path := range all {
		if i := slices.IndexFunc(path, func(step any) bool { _, isIndex := step.(int); return isIndex }); i >= 0 {
			path = path[:i]
		}
		value, has := at(object, path)
		if !has {
			value = map[string]any{"$absent": true}
		}
		into := found
		for _, step := range path[:len(path)-1] {
			next, ok := into[fmt.Sprint(step)].(map[string]any)
			if !ok {
				next = map[string]any{}
				into[fmt.Sprint(step)] = next
			}
			into = next
		}
		into[fmt.Sprint(path[len(path)-1])] = value
	}
	return found
}
