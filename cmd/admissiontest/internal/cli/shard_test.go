package cli

import (
	"encoding/json"
	"errors"
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

// Shards have each scenario once, whatever the order in which they were selected, none is empty, and they have
// equally many scenarios.
func TestChooseShard(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 300 {
		all := named(1 + random.Intn(60))
		count := 1 + random.Intn(len(all))
		servers := random.Intn(2) * 4
		for i := range all {
			if n := random.Intn(8); n < servers {
				all[i].Spec.Server = &scenario.Server{Flags: map[string]string{"v": fmt.Sprint(n)}}
			}
		}
		shuffled := slices.Clone(all)
		random.Shuffle(len(all), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		var names []string
		fewest, largest := len(all), 0
		for i := range count {
			part := fmt.Sprintf("%d/%d", i+1, count)
			shard, _, err := chooseShard(part, all)
			again, _, errAgain := chooseShard(part, shuffled)
			if err := errors.Join(err, errAgain); err != nil {
				t.Fatal(err)
			}
			names = append(names, namesOf(shard)...)
			fewest, largest = min(fewest, len(shard)), max(largest, len(shard))
			if diff := cmp.Diff(namesOf(shard), namesOf(again)); diff != "" {
				t.Fatalf("shard %d depends on the order (-want +got):\n%s", i, diff)
			}
		}
		slices.Sort(names)
		if diff := cmp.Diff(namesOf(all), names); diff != "" || fewest == 0 || largest-fewest > 1 {
			t.Fatalf("the %d shards have from %d to %d scenarios, -want +got:\n%s", count, fewest, largest, diff)
		}
	}
}

// In an Indexed Job, the part is that of the pod.
func TestShardOfJob(t *testing.T) {
	for index, want := range map[string]string{"0": "[s000]", "2": "[s002 s003]", "3": "", "": "", "x": "", "-1": ""} {
		t.Run(index, func(t *testing.T) {
			t.Setenv("JOB_COMPLETION_INDEX", index)
			chosen, shard, err := chooseShard("job/3", named(4))
			if got := fmt.Sprint(namesOf(chosen)); want != "" && (err != nil || got != want || shard.Count != 3) || want == "" && err == nil {
				t.Errorf("got %s, %+v, %v; want %q", got, shard, err, want)
			}
		})
	}
}

// Scenarios of the same server follow each other: a server is in few shards.
func TestShardsOfServers(t *testing.T) {
	t.Parallel()
	all := named(100)
	for i := range 50 {
		all[i].Spec.Server = &scenario.Server{Flags: map[string]string{"v": fmt.Sprint(i % 5)}}
	}
	for i := range 4 {
		shard, _, err := chooseShard(fmt.Sprintf("%d/4", i+1), all)
		servers := map[string]bool{}
		for _, s := range shard {
			if s.Spec.Server != nil {
				servers[s.Spec.Server.Flags["v"]] = true
			}
		}
		if err != nil || len(shard) != 25 || len(servers) > 3 {
			t.Errorf("shard %d has %d scenarios of the servers %v, %v; want 25 of at most 3", i, len(shard), servers, err)
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
	var sizes []int
	for _, shard := range []string{"1/3", "2/3", "3/3"} {
		r := run("shard"+shard[:1], "--shard", shard)
		sizes = append(sizes, r.Summary.Total)
		if got := fmt.Sprintf("%d/%d of %d", r.Shard.Index, r.Shard.Count, r.Shard.Selected); got != shard+" of 7" {
			t.Errorf("shard %s says that it is %s", shard, got)
		}
	}
	if !slices.Equal(sizes, []int{2, 2, 3}) {
		t.Errorf("the shards have %v scenarios", sizes)
	}
	got := execute(t.Context(), nil, "report", "merge", "shard1", "shard2", "shard3", "--report", "merged")
	got.check(t, exitFail)
	a, b := withoutTimes(t, whole), withoutTimes(t, read(t, "merged"))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("one run and merged shards (-want +got):\n%s", diff)
	}
	execute(t.Context(), nil, "report", "merge", "shard1", "shard3").check(t, exitUsage, "shard 2/3 is missing; want all 3 shards")
	execute(t.Context(), nil, "report", "merge", "shard1", "shard2", "shard2", "shard3").check(t, exitUsage, "shard 2, which is given twice")
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
