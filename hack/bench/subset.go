package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// covered is a group of Kubernetes' integration tests, and the behaviours that they assert: IDs,
// or prefixes of IDs that end with "-".
type covered struct {
	name       string
	behaviours []string
}

// integrationTests returns the integration tests of kubernetes/kubernetes that took integrationSeconds
// together. Each starts an API server.
func integrationTests() []covered {
	return []covered{
		{"reinvocation", []string{"REINV-"}},
		{"timeout", []string{"TIMEOUT-"}},
		{"match conditions", []string{"MCOND-"}},
		{"broken webhook", []string{"FAIL-"}},
		{"GVK conversion", []string{"EQUIV-"}},
		{"client auth", []string{"CLIENT-011", "CLIENT-012", "CLIENT-014"}},
		{"managed fields", []string{"PATCH-021", "PATCH-022", "PATCH-023"}},
		{"owner references", []string{"PATCH-024"}},
	}
}

// shows reports whether a scenario tests one of the behaviours.
func (c covered) shows(s scenario.Scenario) bool {
	for _, id := range s.Spec.Behaviours {
		for _, wanted := range c.behaviours {
			if id == wanted || strings.HasSuffix(wanted, "-") && strings.HasPrefix(id, wanted) {
				return true
			}
		}
	}
	return false
}

// subset measures the scenarios for the behaviours of Kubernetes' integration tests, including
// one start of an API server.
func (b *bench) subset(ctx context.Context) error {
	b.figures.heading("behaviours of Kubernetes' integration tests, server start included")
	chosen := map[string]bool{}
	var names []string
	for _, group := range integrationTests() {
		count := 0
		for _, s := range b.all {
			if !group.shows(s) {
				continue
			}
			count++
			if !chosen[s.Metadata.Name] {
				chosen[s.Metadata.Name] = true
				names = append(names, s.Metadata.Name)
			}
		}
		if count == 0 {
			b.figures.judged("  scenarios of "+group.name, "no scenario tests it", false)
			continue
		}
		b.figures.count("  scenarios of "+group.name, count)
	}
	if len(names) == 0 {
		return fmt.Errorf("measure subset: no scenario of the catalogue tests any of the behaviours")
	}
	r, m, err := b.runCommand(ctx, names...)
	if err != nil {
		return err
	}
	b.figures.note("verdicts: %s", r.Summary)
	b.figures.figure("whole process", m.wall.Seconds(), "s")
	b.figures.figure(fmt.Sprintf("times faster than Kubernetes' %g s", integrationSeconds), integrationSeconds/m.wall.Seconds(), "x")
	return nil
}
