package cli

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/report"
)

// chooseShard returns the scenarios and cases of the shard in the value of --shard, sorted by name, and a description of the shard. The result depends
// on their names and servers only, so the processes of all shards divide in the same way. If the value is empty, it returns
// all scenarios and nil.
func chooseShard(value string, selected []scenario.Scenario) ([]scenario.Scenario, *report.Shard, error) {
	if value == "" {
		return selected, nil, nil
	}
	index, count, err := parseShard(value)
	if err != nil {
		return nil, nil, err
	}
	cases := scenario.Cases(selected)
	if count > len(cases) {
		return nil, nil, usagef("--shard %s: only %d scenarios are selected; want at most as many shards", value, len(cases))
	}
	chosen := part(cases, index, count)
	sorted := slices.SortedStableFunc(slices.Values(selected), func(a, b scenario.Scenario) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	kept := scenario.Keep(sorted, func(s scenario.Scenario) bool { return chosen[s.Metadata.Name] })
	return kept, &report.Shard{Index: index, Count: count, Selected: len(cases)}, nil
}

// part returns the names of the scenarios of a shard, of count shards that are equally large, give or take one. Scenarios that use
// the same API server with custom flags follow each other: otherwise each shard starts each of these servers.
func part(cases []scenario.Scenario, index, count int) map[string]bool {
	sorted := slices.SortedFunc(slices.Values(cases), func(a, b scenario.Scenario) int {
		return cmp.Or(strings.Compare(engine.ServerKey(a), engine.ServerKey(b)), strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	names := map[string]bool{}
	for _, s := range sorted[(index-1)*len(sorted)/count : index*len(sorted)/count] {
		names[s.Metadata.Name] = true
	}
	return names
}

// byIndex is the part that belongs to this pod of an Indexed Job. Kubernetes sets the variable indexVariable, from 0.
const (
	byIndex       = "job"
	indexVariable = "JOB_COMPLETION_INDEX"
)

// parseShard reads the value of --shard.
func parseShard(text string) (index, count int, err error) {
	first, second, _ := strings.Cut(text, "/")
	if first == byIndex {
		completion, err := strconv.Atoi(os.Getenv(indexVariable))
		if err != nil {
			return 0, 0, usagef("--shard %q: %s is %q; want a number, which Kubernetes sets in the pods of a Job with completionMode: Indexed", text, indexVariable, os.Getenv(indexVariable))
		}
		first = strconv.Itoa(completion + 1)
		text = first + "/" + second
	}
	index, errIndex := strconv.Atoi(first)
	count, errCount := strconv.Atoi(second)
	if errIndex != nil || errCount != nil || index < 1 || index > count {
		return 0, 0, usagef("--shard %q: want I/N with I from 1 to N: 1/3, 2/3 and 3/3", text)
	}
	return index, count, nil
}
