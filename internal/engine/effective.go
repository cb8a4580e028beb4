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

// giveUpAfter is how often a kind is waited for that is not effective in time, before its scenarios are not run any more.
const giveUpAfter = 2

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

// ofKind returns the manifests of one of admissionKinds, or of otherKinds.
func ofKind(manifests []map[string]any, kind string) []map[string]any {
	return slices.DeleteFunc(slices.Clone(manifests), func(manifest map[string]any) bool {
		return strings.Join(admissionKinds([]map[string]any{manifest}), "") != kind
	})
}

// ineffective is a kind of configuration that was not effective in time: how often, and the last error.
type ineffective struct {
	times int
	err   error
}

// waitUntilEffective waits until the API server acts on what the scenarios installed: for each kind by itself, so that one
// that is never effective costs only the scenarios that install it. It returns the scenarios on whose objects the API
// server acts, and an error if nothing can be observed on it.
func (r *groupRun) waitUntilEffective(ctx context.Context, squad []*execution.Setup) ([]*execution.Setup, error) {
	squad = r.withoutIneffective(squad, nil)
	since, manifests := r.now(), given(squad)
	kinds := append(admissionKinds(manifests), otherKinds)
	errs := make([]error, len(kinds))
	var waits sync.WaitGroup
	for i, kind := range kinds {
		waits.Go(func() { errs[i] = r.target.WaitUntilEffective(ctx, ofKind(manifests, kind)) })
	}
	waits.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	failed := map[string]string{} // the causes, by kind
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
		if cause == "" && !errors.Is(err, framework.ErrTimeout) {
			for _, c := range casesOf(squad) {
				r.finish(c.Scenario, report.Outcome{Verdict: framework.Errored, Reason: err.Error()})
			}
			return nil, err
		}
		if cause == "" {
			r.mu.Lock()
			r.ineffective[kinds[i]] = ineffective{r.ineffective[kinds[i]].times + 1, err}
			r.mu.Unlock()
			cause = err.Error()
		}
		failed[kinds[i]] = cause
	}
	return r.withoutIneffective(squad, failed), nil
}

// withoutIneffective returns the scenarios without those that install a kind that was not effective in time. They are
// inconclusive if that happened too often, and else repeated if one of causes is about the kind.
func (r *groupRun) withoutIneffective(squad []*execution.Setup, causes map[string]string) []*execution.Setup {
	return slices.DeleteFunc(slices.Clone(squad), func(s *execution.Setup) bool {
		for _, kind := range append(admissionKinds(s.Installed()), otherKinds) {
			r.mu.Lock()
			known := r.ineffective[kind]
			r.mu.Unlock()
			cause, failed := causes[kind]
			if !failed && known.times < giveUpAfter {
				continue
			}
			reason := fmt.Sprintf("the API server did not use any %s in time, %d times, so it was not tried again; --patience makes the run wait longer: %v", cmp.Or(kind, "change"), known.times, known.err)
			for _, c := range s.Cases {
				if known.times < giveUpAfter {
					r.again(c, cause, nil)
				} else {
					r.finish(c.Scenario, report.Outcome{Verdict: framework.Inconclusive, Reason: reason})
				}
			}
			return true
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
		return slices.ContainsFunc(admissionKinds([]map[string]any{manifest}), func(kind string) bool { return r.ineffective[kind].times > 0 })
	}))
}
