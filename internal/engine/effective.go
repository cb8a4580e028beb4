package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/report"
)

// otherKinds stands for everything but admissionKinds: an API server can learn of the labels of namespaces late.
const otherKinds = ""

// admissionKinds returns the kinds of webhook configurations and policies among manifests, sorted. A kind includes its
// bindings.
func admissionKinds(manifests []map[string]any) []string {
	kinds := map[string]bool{}
	for _, manifest := range manifests {
		if kind, _ := manifest["kind"].(string); object.IsAdmission(manifest) {
			kinds[strings.TrimSuffix(kind, "Binding")] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// waitUntilEffective waits until the API server acts on what the scenarios installed: for each kind by itself, so that one
// that is never effective costs only the scenarios that install it: these are inconclusive. It returns the other
// scenarios, and an error if nothing can be observed on the API server.
func (r *groupRun) waitUntilEffective(ctx context.Context, squad []*execution.Setup) ([]*execution.Setup, error) {
	squad = r.withoutIneffective(squad, nil)
	since, manifests := r.now(), given(squad)
	kinds := append(admissionKinds(manifests), otherKinds)
	errs := make([]error, len(kinds))
	var waits sync.WaitGroup
	for i, kind := range kinds {
		ofKind := slices.DeleteFunc(slices.Clone(manifests), func(manifest map[string]any) bool {
			return strings.Join(admissionKinds([]map[string]any{manifest}), "") != kind
		})
		waits.Go(func() { errs[i] = r.target.WaitUntilEffective(ctx, ofKind) })
	}
	waits.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	again := map[string]string{} // the causes, by kind
	for i, err := range errs {
		if err == nil {
			continue
		}
		if lost := r.lost(ctx, err); lost != nil {
			return nil, lost
		}
		if r.refused(ctx, err, squad) {
			return nil, err
		}
		cause := r.saysNothing(report.Outcome{Verdict: framework.Errored}, expect.InfrastructureError(err), since)
		switch {
		case cause != "":
			again[kinds[i]] = cause
		case errors.Is(err, framework.ErrTimeout):
			r.mu.Lock()
			r.ineffective[kinds[i]] = err
			r.mu.Unlock()
		default:
			for _, c := range casesOf(squad) {
				r.finish(c.Scenario, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
			}
			return nil, err
		}
	}
	return r.withoutIneffective(squad, again), nil
}

// withoutIneffective returns the scenarios without those that install a kind that was not effective in time, which are
// inconclusive, and without those that are repeated: the causes are by kind.
func (r *groupRun) withoutIneffective(squad []*execution.Setup, again map[string]string) []*execution.Setup {
	return slices.DeleteFunc(slices.Clone(squad), func(s *execution.Setup) bool {
		for _, kind := range append(admissionKinds(s.Installed()), otherKinds) {
			r.mu.Lock()
			err := r.ineffective[kind]
			r.mu.Unlock()
			for _, c := range s.Cases {
				switch {
				case err != nil:
					r.finish(c.Scenario, report.Outcome{Verdict: framework.Inconclusive, Reason: fmt.Sprintf("the API server did not use any %s in time; --patience makes the run wait longer: %v", cmp.Or(kind, "change"), err)})
				case again[kind] != "":
					r.again(c, again[kind], nil)
				}
			}
			if err != nil || again[kind] != "" {
				return true
			}
		}
		return false
	})
}

// waitUntilRemoved waits until the API server no longer acts on what a scenario that runs alone installed or wrote.
// A kind that was not effective in time is not waited for. What the others installed decides about nothing but their
// own namespaces.
func (r *groupRun) waitUntilRemoved(ctx context.Context, of []map[string]any) error {
	return r.target.WaitUntilEffective(ctx, slices.DeleteFunc(of, func(manifest map[string]any) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(admissionKinds([]map[string]any{manifest}), func(kind string) bool { return r.ineffective[kind] != nil })
	}))
}
