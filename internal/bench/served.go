package main

import (
	"context"
	"errors"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

// Limits of runs on a server that is kept, in seconds.
const (
	limitServedWebhook = 0.4 // one scenario with a webhook, the whole process
	limitServedPolicy  = 1.6 // one with a policy: the API server reads policies once a second
	limitServedExtra   = 0.5 // the whole process, without the catalogue on the default server
)

// The scenarios to measure.
const (
	webhookScenario = "order.phases.mutating-before-validating"
	policyScenario  = "vap.audit-annotations"
)

// served measures runs on a server that "admissiontest serve" keeps.
func (b *bench) served(ctx context.Context) (err error) {
	b.figures.heading("runs on a server that is kept")
	m, err := b.execute(ctx, "serve", "--background")
	if err != nil {
		return err
	}
	defer func() {
		_, stopped := b.execute(context.WithoutCancel(ctx), "serve", "stop", key(m.stdout))
		err = errors.Join(err, stopped)
	}()
	run := func(names ...string) (seconds, extra float64, err error) {
		r, m, err := b.runCommand(ctx, names...)
		if err == nil && !r.Target.Served {
			err = errors.New("the run did not use the server that is kept")
		}
		return m.wall.Seconds(), m.wall.Seconds() - r.Timing.Catalogue, err
	}
	var webhooks, policies []float64
	for range 5 {
		// A run waits until the API server has forgotten the policies of the last one.
		for _, one := range []struct {
			name  string
			times *[]float64
		}{{webhookScenario, nil}, {webhookScenario, &webhooks}, {policyScenario, &policies}} {
			seconds, _, err := run(one.name)
			if err != nil {
				return err
			}
			if one.times != nil {
				*one.times = append(*one.times, seconds)
			}
		}
	}
	b.figures.atMost("a scenario with a webhook, whole process", median(webhooks), limitServedWebhook, "s")
	b.figures.atMost("a scenario with a policy, whole process", median(policies), limitServedPolicy, "s")
	if _, _, err := run(webhookScenario); err != nil {
		return err
	}
	var names []string
	for _, s := range defaultProfile(b.all) {
		if s.Spec.Isolation != scenario.IsolationNone { // each of these has its own server
			names = append(names, s.Metadata.Name)
		}
	}
	_, extra, err := run(names...)
	if err != nil {
		return err
	}
	b.figures.atMost("the catalogue, what the process takes besides", extra, limitServedExtra, "s")
	return nil
}

// key returns the key of a server, the last word that serve prints.
func key(stdout []byte) string {
	words := strings.Fields(string(stdout))
	return words[len(words)-1]
}
