package flags

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Shard are the flags that choose a part of the selected scenarios.
type Shard struct {
	// Value is the value of --shard, I/N. Empty means all scenarios.
	Value     string
	durations string
}

// Add adds --shard and --durations to a command.
func (f *Shard) Add(command *cobra.Command) {
	command.Flags().StringVar(&f.Value, "shard", "", "run only part I of N of the selected scenarios: I/N; \"admissiontest report merge\" merges the reports of all parts")
	command.Flags().StringVar(&f.durations, "durations", "", "report.json of an earlier run, or its folder: split by duration, so that all parts of --shard take equally long (default: all parts have the same number of scenarios)")
	_ = command.MarkFlagFilename("durations", "json")
}

// Choose returns the scenarios of the shard, and a description of the shard. Without --shard, it
// returns all scenarios and nil.
func (f *Shard) Choose(selected []scenario.Scenario) ([]scenario.Scenario, *report.Shard, error) {
	if f.Value == "" {
		if f.durations != "" {
			return nil, nil, exit.Usagef("--durations needs --shard I/N")
		}
		return selected, nil, nil
	}
	index, count, err := parseShard(f.Value)
	if err != nil {
		return nil, nil, err
	}
	if count > len(selected) {
		return nil, nil, exit.Usagef("--shard %s: only %d scenarios are selected; want at most as many shards", f.Value, len(selected))
	}
	seconds := map[string]float64{}
	if f.durations != "" {
		earlier, err := report.Read(f.durations)
		if err != nil {
			return nil, nil, exit.Usagef("--durations: %w", err)
		}
		for _, outcome := range earlier.Outcomes {
			if outcome.DurationSeconds > 0 {
				seconds[outcome.Name] = outcome.DurationSeconds
			}
		}
	}
	return divide(selected, seconds, count)[index-1], &report.Shard{Index: index, Count: count, Selected: len(selected)}, nil
}

// parseShard reads the value of --shard.
func parseShard(text string) (index, count int, err error) {
	first, second, _ := strings.Cut(text, "/")
	index, errIndex := strconv.Atoi(first)
	count, errCount := strconv.Atoi(second)
	if errIndex != nil || errCount != nil || index < 1 || index > count {
		return 0, 0, exit.Usagef("--shard %q: want I/N with I from 1 to N: 1/3, 2/3 and 3/3", text)
	}
	return index, count, nil
}

// divide divides scenarios into shards that take about equally long. A scenario whose duration is
// not known counts as the average. The result depends only on the arguments, so the processes of
// all shards get the same result. No shard is empty if there are enough scenarios.
func divide(selected []scenario.Scenario, seconds map[string]float64, count int) [][]scenario.Scenario {
	total, known := 0.0, 0
	for _, s := range selected {
		if one, ok := seconds[s.Metadata.Name]; ok {
			total, known = total+one, known+1
		}
	}
	average := 1.0
	if known > 0 {
		average = total / float64(known)
	}
	duration := func(s scenario.Scenario) float64 {
		if one, ok := seconds[s.Metadata.Name]; ok {
			return one
		}
		return average
	}
	byName := func(a, b scenario.Scenario) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) }
	order := slices.SortedFunc(slices.Values(selected), func(a, b scenario.Scenario) int {
		return cmp.Or(cmp.Compare(duration(b), duration(a)), byName(a, b))
	})
	shards, loads := make([][]scenario.Scenario, count), make([]float64, count)
	for _, s := range order {
		least := 0
		for i := range shards {
			if loads[i] < loads[least] {
				least = i
			}
		}
		shards[least], loads[least] = append(shards[least], s), loads[least]+duration(s)
	}
	for _, shard := range shards {
		slices.SortFunc(shard, byName)
	}
	return shards
}
