package cli

import (
	"maps"
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
	chosen := divide(cases, count)[index-1]
	sorted := slices.SortedStableFunc(slices.Values(selected), func(a, b scenario.Scenario) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	kept := scenario.Keep(sorted, func(s scenario.Scenario) bool { return chosen[s.Metadata.Name] })
	return kept, &report.Shard{Index: index, Count: count, Selected: len(cases)}, nil
}

// divide returns the names of the scenarios of each shard. Scenarios that use the same API server with custom flags are together,
// as far as the shards stay equally large, give or take one: otherwise each shard starts each of these servers.
func divide(cases []scenario.Scenario, count int) []map[string]bool {
	byServer := map[string][]string{}
	for _, s := range cases {
		byServer[engine.ServerKey(s)] = append(byServer[engine.ServerKey(s)], s.Metadata.Name)
	}
	var together [][]string
	for _, server := range slices.Sorted(maps.Keys(byServer)) {
		slices.Sort(byServer[server])
		if server != "" {
			together = append(together, byServer[server])
		}
	}
	slices.SortStableFunc(together, func(a, b []string) int { return len(b) - len(a) })
	together = slices.AppendSeq(together, slices.Chunk(byServer[""], 1))
	shards := make([]map[string]bool, count)
	for i := range shards {
		shards[i] = map[string]bool{}
	}
	for _, names := range together {
		for len(names) > 0 {
			smallest := slices.MinFunc(shards, func(a, b map[string]bool) int { return len(a) - len(b) })
			fit := min(len(names), max(1, len(cases)/count-len(smallest)))
			for _, name := range names[:fit] {
				smallest[name] = true
			}
			names = names[fit:]
		}
	}
	return shards
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
