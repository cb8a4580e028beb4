package report

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Input is a report and where it was read from.
type Input struct {
	File   string
	Report Report
}

// Merge joins the reports of all shards of a run into the report of the run. They must be of the same kind of target and
// the same API server. The times are the times of the slowest one, as if all had run at the same time.
func Merge(inputs []Input) (Report, error) {
	if err := allShards(inputs); err != nil {
		return Report{}, fmt.Errorf("merge reports: %w", err)
	}
	first := inputs[0].Report
	out := Report{Target: first.Target, Implementation: first.Implementation, Environment: first.Environment}
	var incomplete []string
	for _, input := range inputs {
		r := input.Report
		out.Outcomes = append(out.Outcomes, r.Outcomes...)
		out.Timing.TargetReady = max(out.Timing.TargetReady, r.Timing.TargetReady)
		out.Timing.Catalogue = max(out.Timing.Catalogue, r.Timing.Catalogue)
		out.Timing.Total = max(out.Timing.Total, r.Timing.Total)
		out.ForeignRequests += r.ForeignRequests
		for _, one := range r.NotSeen {
			if !slices.ContainsFunc(out.NotSeen, func(other NotSeen) bool { return reflect.DeepEqual(one, other) }) {
				out.NotSeen = append(out.NotSeen, one)
			}
		}
		out.FailOnUnsupported = out.FailOnUnsupported || r.FailOnUnsupported
		out.Strict = out.Strict || r.Strict
		out.Interrupted = out.Interrupted || r.Interrupted
		if r.Incomplete != "" {
			incomplete = append(incomplete, input.File+": "+r.Incomplete)
		}
		if e := r.Environment; e != nil && (out.Environment == nil || e.Started < out.Environment.Started) {
			out.Environment = e
		}
	}
	out.Incomplete = strings.Join(incomplete, "\n")
	return out.Ordered(), nil
}

// allShards returns an error unless the reports are all shards of one selection on one server.
func allShards(inputs []Input) error {
	if len(inputs) == 0 {
		return errors.New("got no reports, want all shards")
	}
	first := inputs[0]
	seen, outcomes := map[int]bool{}, map[string]bool{}
	for _, input := range inputs {
		a, b := first.Report.Shard, input.Report.Shard
		switch {
		case b == nil:
			return fmt.Errorf("%s is no shard: want the reports of run --shard; \"admissiontest report matrix\" compares whole runs", input.File)
		case a.Count != b.Count, a.Selected != b.Selected:
			return fmt.Errorf("%s is shard %d of %d of %d scenarios, and %s is shard %d of %d of %d scenarios; want shards of one selection",
				first.File, a.Index, a.Count, a.Selected, input.File, b.Index, b.Count, b.Selected)
		case seen[b.Index]:
			return fmt.Errorf("%s is shard %d, which is given twice; want each shard once", input.File, b.Index)
		}
		if err := sameServer(first, input); err != nil {
			return err
		}
		seen[b.Index] = true
		for _, outcome := range input.Report.Outcomes {
			if outcomes[outcome.Name] {
				return fmt.Errorf("%s has scenario %s, as another shard has; want each scenario once", input.File, outcome.Name)
			}
			outcomes[outcome.Name] = true
		}
	}
	for index := 1; index <= first.Report.Shard.Count; index++ {
		if !seen[index] {
			return fmt.Errorf("shard %d/%d is missing; want all %d shards", index, first.Report.Shard.Count, first.Report.Shard.Count)
		}
	}
	if len(outcomes) != first.Report.Shard.Selected {
		return fmt.Errorf("the shards have %d scenarios, want the %d that were selected: use the same arguments for each shard", len(outcomes), first.Report.Shard.Selected)
	}
	return nil
}

// sameServer returns an error for the first property that must be the same in two reports and is not.
func sameServer(one, other Input) error {
	a, b := one.Report.Target, other.Report.Target
	for _, field := range []struct {
		name string
		a, b any
	}{
		{"target", a.Kind, b.Kind},
		{"version of the API server", a.ServerVersion, b.ServerVersion},
		{"feature gates", a.FeatureGates, b.FeatureGates},
		{"compiled-in plugins", a.Plugins, b.Plugins},
		{"transport", a.Transport, b.Transport},
		{"implementation", one.Report.Implementation, other.Report.Implementation},
	} {
		if !reflect.DeepEqual(field.a, field.b) {
			return fmt.Errorf("%s and %s are of different servers: their %s differ; \"admissiontest report diff\" compares them", one.File, other.File, field.name)
		}
	}
	return nil
}
