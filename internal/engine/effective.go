package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/report"
)

// giveUpAfter is how often a kind is waited for that is not effective in time, before its scenarios are not run any more.
const giveUpAfter = 2

// notEffective is what is known of kinds of configurations that were not effective in time. A kind includes its bindings.
// The zero value knows nothing.
type notEffective struct {
	mu sync.Mutex
	// times is how often each kind was not effective, since it was for the last time, and why has the last error.
	times map[string]int
	why   map[string]error
	// removed is what was removed and possibly is still effective.
	removed []map[string]any
}

// admissionKinds returns the kinds of webhook configurations and policies among manifests, sorted, without bindings.
func admissionKinds(manifests []map[string]any) []string {
	kinds := map[string]bool{}
	for _, manifest := range manifests {
		if kind, _ := manifest["kind"].(string); object.IsAdmission(manifest) {
			kinds[strings.TrimSuffix(kind, "Binding")] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// otherKinds stands for everything but admissionKinds: an API server can learn of the labels of namespaces late.
const otherKinds = ""

// ofKind returns the manifests of one of admissionKinds, or of otherKinds.
func ofKind(manifests []map[string]any, kind string) []map[string]any {
	return slices.DeleteFunc(slices.Clone(manifests), func(manifest map[string]any) bool {
		return strings.Join(admissionKinds([]map[string]any{manifest}), "") != kind
	})
}

// byKind waits for each kind of configuration by itself, after a wait for all of them ran out: one that is never
// effective costs only the scenarios that install it. It returns the others.
func (r *groupRun) byKind(ctx context.Context, ready []*execution.Setup) ([]*execution.Setup, error) {
	all := append(given(ready), r.stillRemoved()...)
	failed := map[string]error{}
	var mu sync.Mutex
	var waits sync.WaitGroup
	kinds := append(admissionKinds(all), otherKinds)
	for _, kind := range kinds {
		r.options.Progress.Stage(strings.TrimSpace("waiting again until the API server uses what was installed " + kind))
		waits.Go(func() {
			if err := r.effective(ctx, ofKind(all, kind)); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[kind] = err
			}
		})
	}
	waits.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, kind := range kinds {
		err := failed[kind]
		if err == nil {
			r.notEffective.forget([]string{kind})
			continue
		}
		if lost := r.lost(ctx, err); lost != nil {
			return nil, lost
		}
		if !errors.Is(err, framework.ErrTimeout) {
			return nil, err
		}
		r.notEffective.note(kind, err)
	}
	removed := admissionKinds(r.stillRemoved())
	return r.keepEffective(ready, func(kinds []string) error {
		for _, kind := range slices.Concat(kinds, removed, []string{otherKinds}) {
			if err := failed[kind]; err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// keepEffective returns the scenarios for whose kinds a function returns no error. The others are inconclusive.
func (r *groupRun) keepEffective(setups []*execution.Setup, problem func(kinds []string) error) []*execution.Setup {
	return slices.DeleteFunc(slices.Clone(setups), func(s *execution.Setup) bool {
		err := problem(admissionKinds(s.Installed()))
		if err == nil {
			return false
		}
		for _, c := range s.Cases {
			r.finish(c.Scenario, report.Outcome{Verdict: framework.Inconclusive, Reason: err.Error()})
		}
		return true
	})
}

// withoutGivenUp returns the scenarios without those that install a kind that was never effective in time.
func (r *groupRun) withoutGivenUp(setups []*execution.Setup) []*execution.Setup {
	return r.keepEffective(setups, r.notEffective.givenUp)
}

// stillRemoved returns what was removed and possibly is still effective.
func (r *groupRun) stillRemoved() []map[string]any {
	r.notEffective.mu.Lock()
	defer r.notEffective.mu.Unlock()
	return slices.Clone(r.notEffective.removed)
}

// removed waits until the API server no longer acts on what was removed. If that takes too long, the next scenarios wait
// for it too. A kind that was never effective is not waited for.
func (r *groupRun) removed(ctx context.Context, of []map[string]any) error {
	all := slices.DeleteFunc(append(of, r.stillRemoved()...), func(manifest map[string]any) bool {
		return r.notEffective.givenUp(admissionKinds([]map[string]any{manifest})) != nil
	})
	err := r.effective(ctx, all)
	late := errors.Is(err, framework.ErrTimeout) && !errors.Is(err, framework.ErrNoResponse)
	r.notEffective.mu.Lock()
	defer r.notEffective.mu.Unlock()
	if r.notEffective.removed = nil; late {
		r.notEffective.removed = all
		return nil
	}
	return err
}

// note notes that a kind was not effective in time.
func (n *notEffective) note(kind string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.times == nil {
		n.times, n.why = map[string]int{}, map[string]error{}
	}
	n.times[kind]++
	n.why[kind] = err
}

// forget notes that kinds were effective in time.
func (n *notEffective) forget(kinds []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, kind := range kinds {
		delete(n.times, kind)
	}
}

// givenUp returns an error if one of some kinds was too often not effective in time.
func (n *notEffective) givenUp(kinds []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, kind := range kinds {
		if n.times[kind] >= giveUpAfter {
			return fmt.Errorf("the API server did not use any %s in time, %d times, so it was not tried again; --patience makes the run wait longer: %w", kind, n.times[kind], n.why[kind])
		}
	}
	return nil
}
