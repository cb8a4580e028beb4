package cli

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/report"
)

// named returns scenarios with names from s000 on.
func named(count int) []scenario.Scenario {
	all := make([]scenario.Scenario, count)
	for i := range all {
		all[i].Metadata.Name = fmt.Sprintf("s%03d", i)
	}
	return all
}

func namesOf(scenarios []scenario.Scenario) []string {
	names := make([]string, 0, len(scenarios))
	for _, s := range scenarios {
		names = append(names, s.Metadata.Name)
	}
	return names
}

// Shards have each scenario once, whatever the order in which they were selected, and none is empty.
// They have equally many scenarios, or take equally long.
func TestDivide(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 300 {
		all := named(1 + random.Intn(60))
		count := 1 + random.Intn(len(all))
		seconds, most := map[string]float64{}, 0.0
		for _, s := range all {
			if random.Intn(2) == 0 {
				seconds[s.Metadata.Name] = random.ExpFloat64()
				most = max(most, seconds[s.Metadata.Name])
			}
		}
		for name, durations := range map[string]map[string]float64{"by count": nil, "by duration": seconds} {
			shards := divide(all, durations, count)
			shuffled := slices.Clone(all)
			random.Shuffle(len(all), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			again := divide(shuffled, durations, count)
			var names []string
			fewest, largest := len(all), 0
			for i, shard := range shards {
				names = append(names, namesOf(shard)...)
				fewest, largest = min(fewest, len(shard)), max(largest, len(shard))
				if diff := cmp.Diff(namesOf(shard), namesOf(again[i])); diff != "" {
					t.Fatalf("%s: shard %d depends on the order (-want +got):\n%s", name, i, diff)
				}
			}
			slices.Sort(names)
			if diff := cmp.Diff(namesOf(all), names); diff != "" || fewest == 0 {
				t.Fatalf("%s: the smallest of %d shards has %d scenarios, -want +got:\n%s", name, count, fewest, diff)
			}
			if durations == nil && largest-fewest > 1 {
				t.Errorf("the shards have from %d to %d scenarios", fewest, largest)
			}
		}
	}
	slow := map[string]float64{"s000": 9, "s001": 3, "s002": 3, "s003": 3}
	for i, want := range []string{"[s000]", "[s001 s002 s003]"} {
		if got := fmt.Sprint(namesOf(divide(named(4), slow, 2)[i])); got != want {
			t.Errorf("shard %d: got %s, want %s", i, got, want)
		}
	}
}

// Merged shards are the report of one run.
func TestShards(t *testing.T) {
	files := map[string]string{}
	for i, object := range []string{"fine", "refused", "fine", "broken", "fine", "fine", "fine"} {
		files[fmt.Sprintf("mine/%d.yaml", i)] = scenarioFile(fmt.Sprintf("mine.s%d", i), "MUST", object)
	}
	dir := write(t, files)
	t.Chdir(dir)
	run := func(out string, args ...string) report.Report {
		t.Helper()
		execute(t.Context(), &fake{}, append([]string{"run", "mine", "--report", out}, args...)...)
		return read(t, out)
	}
	whole := run("whole")
	for _, durations := range [][]string{nil, {"--durations", "whole"}} {
		var sizes []int
		for _, shard := range []string{"1/3", "2/3", "3/3"} {
			r := run("shard"+shard[:1], append([]string{"--shard", shard}, durations...)...)
			sizes = append(sizes, r.Summary.Total)
			if got := fmt.Sprintf("%d/%d of %d", r.Shard.Index, r.Shard.Count, r.Shard.Selected); got != shard+" of 7" {
				t.Errorf("shard %s says that it is %s", shard, got)
			}
		}
		if durations == nil && !slices.Equal(sizes, []int{3, 2, 2}) {
			t.Errorf("the shards have %v scenarios", sizes)
		}
		got := execute(t.Context(), nil, "report", "merge", "shard1", "shard2", "shard3", "--report", "merged")
		got.check(t, ExitFail)
		a, b := withoutTimes(t, whole), withoutTimes(t, read(t, "merged"))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("one run and merged shards (-want +got):\n%s", diff)
		}
		execute(t.Context(), nil, "report", "merge", "shard1", "shard3").check(t, ExitUsage, "shard 2/3 is missing; want all 3 shards")
		execute(t.Context(), nil, "report", "merge", "shard1", "shard2", "shard2", "shard3").check(t, ExitUsage, "scenarios in common")
	}
}

func read(t *testing.T, dir string) report.Report {
	t.Helper()
	r, err := report.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// withoutTimes returns a report as JSON, without what differs between two equal runs.
func withoutTimes(t *testing.T, r report.Report) string {
	t.Helper()
	r.Timing, r.Environment = report.Timing{}, nil
	for i := range r.Outcomes {
		r.Outcomes[i].DurationSeconds = 0
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestShardUsage(t *testing.T) {
	dir := write(t, map[string]string{"r.json": `{"kind"`})
	for want, args := range map[string][]string{
		`--shard "3": want I/N`:                                    {"--shard", "3"},
		`--shard "0/3": want I/N with I from 1 to N`:               {"--shard", "0/3"},
		`--shard "4/3": want I/N`:                                  {"--shard", "4/3"},
		`--shard "1/3/5": want I/N`:                                {"--shard", "1/3/5"},
		`--shard "-1/-1": want I/N`:                                {"--shard=-1/-1"},
		"--shard 1/9: only 2 scenarios are selected":               {"--shard", "1/9"},
		"--durations is only for --shard I/N":                      {"--durations", dir},
		"--durations: read report " + dir + "/r.json:1:7: ":        {"--shard", "1/2", "--durations", dir + "/r.json"},
		"--durations: read report: stat " + dir + "/report.json: ": {"--shard", "1/2", "--durations", dir},
	} {
		execute(t.Context(), &fake{}, append([]string{"run", "order"}, args...)...).check(t, ExitUsage, want)
	}
}
