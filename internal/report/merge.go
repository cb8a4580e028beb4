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

// Merge joins the reports of shards, or of several selections, into the report of one run. They must
// be of the same kind of target and the same API server, and have no scenario in common. If they are
// shards, all of them are needed. The times are the times of the slowest one, as if all had run at the same
// time.
func Merge(inputs []Input) (Report, error) {
	if len(inputs) == 0 {
		return Report{}, errors.New("merge reports: got no reports, want at least one")
	}
	if err := errors.Join(append(mixed(inputs), overlaps(inputs)...)...); err != nil {
		return Report{}, err
	}
	if err := incompleteShards(inputs); err != nil {
		return Report{}, err
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

// mixed returns an error for each property that must be the same in all reports and is not.
func mixed(inputs []Input) []error {
	var errs []error
	first := inputs[0]
	for _, input := range inputs[1:] {
		a, b := first.Report.Target, input.Report.Target
		for _, field := range []struct {
			name string
			a, b any
		}{
			{"target", a.Kind, b.Kind},
			{"version of the API server", a.ServerVersion, b.ServerVersion},
			{"feature gates", a.FeatureGates, b.FeatureGates},
			{"compiled-in plugins", a.Plugins, b.Plugins},
			{"transport", a.Transport, b.Transport},
			{"implementation", first.Report.Implementation, input.Report.Implementation},
		} {
			if !reflect.DeepEqual(field.a, field.b) {
				errs = append(errs, fmt.Errorf("merge reports: %s and %s are of different servers: their %s differ%s; \"admissiontest report diff\" compares them",
					first.File, input.File, field.name, values(field.a, field.b)))
			}
		}
	}
	return errs
}

// values returns two values as text for an error, or "" if they are not strings.
func values(a, b any) string {
	if _, ok := a.(string); !ok {
		return ""
	}
	return fmt.Sprintf(" (%q, %q)", a, b)
}

// overlaps returns an error for each two reports that have scenarios in common.
func overlaps(inputs []Input) []error {
	var errs []error
	owner := map[string]int{}
	for i, input := range inputs {
		both := map[int][]string{}
		for _, outcome := range input.Report.Outcomes {
			if other, ok := owner[outcome.Name]; ok {
				both[other] = append(both[other], outcome.Name)
			}
			owner[outcome.Name] = i
		}
		for other := range i {
			if names := both[other]; len(names) > 0 {
				errs = append(errs, fmt.Errorf("merge reports: %s and %s have %d scenarios in common: %s; want each scenario once", inputs[other].File, input.File, len(names), some(names)))
			}
		}
	}
	return errs
}

// some returns the first names of a list.
func some(names []string) string {
	const shown = 3
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:shown], ", ") + " and more"
}

// incompleteShards returns an error unless the reports are all shards of one selection, or no shards.
func incompleteShards(inputs []Input) error {
	first := inputs[0].Report.Shard
	seen, outcomes := map[int]bool{}, 0
	for _, input := range inputs {
		shard := input.Report.Shard
		switch {
		case (shard == nil) != (first == nil):
			return fmt.Errorf("merge reports: one of %s and %s is a shard and the other is not", inputs[0].File, input.File)
		case shard == nil:
			continue
		case shard.Count != first.Count, shard.Selected != first.Selected:
			return fmt.Errorf("merge reports: %s is shard %d of %d of %d scenarios, and %s is shard %d of %d of %d scenarios; want shards of one selection",
				inputs[0].File, first.Index, first.Count, first.Selected, input.File, shard.Index, shard.Count, shard.Selected)
		}
		seen[shard.Index] = true
		outcomes += len(input.Report.Outcomes)
	}
	if first == nil {
		return nil
	}
	var missing []string
	for index := 1; index <= first.Count && len(missing) < 10; index++ {
		if !seen[index] {
			missing = append(missing, fmt.Sprintf("%d/%d", index, first.Count))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("merge reports: shard %s is missing; want all %d shards", some(missing), first.Count)
	}
	if outcomes != first.Selected {
		return fmt.Errorf("merge reports: the shards have %d scenarios, want the %d that were selected: use the same arguments and the same --durations file for each shard", outcomes, first.Selected)
	}
	return nil
}
