package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/internal/report"
)

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
	if !slices.Equal(sizes, []int{3, 2, 2}) {
		t.Errorf("the shards have %v scenarios", sizes)
	}
	got := execute(t.Context(), nil, "report", "merge", "shard1", "shard2", "shard3", "--report", "merged")
	got.check(t, exit.Fail)
	a, b := withoutTimes(t, whole), withoutTimes(t, read(t, "merged"))
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("one run and merged shards (-want +got):\n%s", diff)
	}
	execute(t.Context(), nil, "report", "merge", "shard1", "shard3").check(t, exit.Usage, "shard 2/3 is missing; want all 3 shards")
	execute(t.Context(), nil, "report", "merge", "shard1", "shard2", "shard2", "shard3").check(t, exit.Usage, "scenarios in common")
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
	for want, args := range map[string][]string{
		`--shard "3": want I/N`:                      {"--shard", "3"},
		`--shard "0/3": want I/N with I from 1 to N`: {"--shard", "0/3"},
		`--shard "4/3": want I/N`:                    {"--shard", "4/3"},
		`--shard "1/3/5": want I/N`:                  {"--shard", "1/3/5"},
		`--shard "-1/-1": want I/N`:                  {"--shard=-1/-1"},
		"--shard 1/9: only 2 scenarios are selected": {"--shard", "1/9"},
	} {
		t.Run(want, func(t *testing.T) {
			execute(t.Context(), &fake{}, append([]string{"run", "order"}, args...)...).check(t, exit.Usage, want)
		})
	}
}
