package report_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// Every report that a version of admissiontest has written can be read. Files are added to this folder,
// and never changed or removed: a new one whenever the format gets new keys.
func TestReadVersions(t *testing.T) {
	files, err := filepath.Glob("testdata/versions/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %v, %v; want at least 2 files", files, err)
	}
	for _, file := range files {
		r, err := report.Read(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want := report.Summary{Pass: 2, Fail: 2, Unsupported: 4, Skipped: 1, Inconclusive: 1, Error: 2, Total: 12}
		if diff := cmp.Diff(want, r.Summary); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if at := r.Outcomes[4]; at.Name != "reinvocation.if-needed.again" || at.Evidence == nil || len(at.Evidence.Mismatches) != 2 || len(at.Evidence.Timeline) != 3 || at.Rerun == "" {
			t.Errorf("%s: outcomes[4] is %+v", file, at)
		}
	}
}

// A report reads back as it was written, from its file or its folder.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	want := everything()
	want.Outcomes = slices.DeleteFunc(want.Outcomes, func(o report.Outcome) bool { return o.Name == "warn.many" }) // not valid UTF-8
	if err := report.SaveDir(dir, want); err != nil {
		t.Fatal(err)
	}
	compressed := t.TempDir()
	inPod := filepath.Join(compressed, report.CompressedFile)
	if err := report.ReplaceFile(inPod, func(w io.Writer) error { return report.WriteCompressed(w, want) }); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"folder": dir, "file": filepath.Join(dir, report.JSONFile), "compressed": inPod, "folder of compressed": compressed} {
		t.Run(name, func(t *testing.T) {
			got, err := report.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			var a, b bytes.Buffer
			if err := report.WriteJSON(&a, want); err != nil {
				t.Fatal(err)
			}
			if err := report.WriteJSON(&b, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(a.String(), b.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}

// A compressed report that is cut says so.
func TestReadCompressedTruncated(t *testing.T) {
	var content bytes.Buffer
	if err := report.WriteCompressed(&content, everything()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), report.CompressedFile)
	for _, length := range []int{2, 30, content.Len() - 1} {
		if err := os.WriteFile(path, content.Bytes()[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := report.Read(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	const head = `{"apiVersion": "admissiontest.dev/v1alpha1", "kind": "Report",` + "\n"
	const empty = `"summary": {"total": 0}`
	tests := map[string]struct{ document, want string }{
		"empty":           {"", "r.json: unexpected EOF: the file is truncated"},
		"truncated":       {head + `  "outcomes": [{"name": "a"`, "r.json: unexpected EOF: the file is truncated"},
		"no JSON":         {head + "  x", "r.json: invalid character 'x'"},
		"more":            {head + empty + "}\n{}", "r.json: invalid character '{' after top-level value"},
		"foreign":         {`{"kind": "List", "apiVersion": "v1"}`, `r.json: got apiVersion "v1" and kind "List", want admissiontest.dev/v1alpha1 and Report: it is not a report of admissiontest`},
		"an array":        {`[]`, "r.json: json: cannot unmarshal array"},
		"a diff":          {`{"apiVersion": "admissiontest.dev/v1alpha1", "kind": "ReportDiff"}`, `kind "ReportDiff", want`},
		"another version": {`{"apiVersion": "admissiontest.dev/v2", "kind": "Report"}`, "use the version of admissiontest that wrote it, or a later one"},
		"wrong type":      {head + `"outcomes": [{"name": 7}]}`, "outcomes.name of type string"},
		"no name":         {head + `"outcomes": [{}]}`, "outcomes[0] has no name"},
		"twice":           {head + `"outcomes": [{"name": "a"}, {"name": "a"}]}`, `outcomes[1]: there are two outcomes of scenario "a"`},
		"changed":         {head + `"summary": {"pass": 2, "total": 2}, "outcomes": [{"name": "a", "verdict": "pass"}]}`, "the summary has 2 scenarios (2 pass), but the outcomes are 1 (1 pass): the file was changed, or is damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "r.json")
			if err := os.WriteFile(file, []byte(test.document), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := report.Read(file); err == nil || !strings.HasPrefix(err.Error(), "read report ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
	dir := t.TempDir()
	if _, err := report.Read(dir); err == nil || !strings.Contains(err.Error(), "report.json: no such file") {
		t.Errorf("an empty folder: got %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: got %v", err)
	}
}

// Every truncation of a report is an error, and none panics.
func TestReadTruncated(t *testing.T) {
	var document bytes.Buffer
	if err := report.WriteJSON(&document, everything()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "r.json")
	for length := 0; length < document.Len()-2; length += 97 {
		if err := os.WriteFile(file, document.Bytes()[:length], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := report.Read(file); err == nil || !strings.Contains(err.Error(), "truncated") {
			t.Fatalf("the first %d bytes: got %v", length, err)
		}
	}
}

// part returns a report of scenarios, "pass a.x", on a server.
func part(version string, outcomes ...string) report.Report {
	r := report.New(framework.TargetInfo{Kind: framework.TargetEnvtest, ServerVersion: version})
	for _, text := range outcomes {
		verdict, name, _ := strings.Cut(text, " ")
		area, _, _ := strings.Cut(name, ".")
		r.Outcomes = append(r.Outcomes, report.Outcome{Name: name, Area: area, Level: framework.Must, Verdict: framework.Verdict(verdict)})
	}
	return r
}

func shard(r report.Report, index, count, selected int) report.Report {
	r.Shard = &report.Shard{Index: index, Count: count, Selected: selected}
	return r
}

// merge merges reports with the files r0, r1 and so on.
func merge(reports ...report.Report) (report.Report, error) {
	var inputs []report.Input
	for i, r := range reports {
		inputs = append(inputs, report.Input{File: fmt.Sprint("r", i), Report: r})
	}
	return report.Merge(inputs)
}

// Merged shards are the report of one run.
func TestMerge(t *testing.T) {
	whole := part("v1.36.3", "pass a.x", "fail a.y", "pass b.x")
	whole.Timing = report.Timing{TargetReady: 2, Catalogue: 5, Total: 7}
	whole.Outcomes[0].Verdict, whole.Outcomes[0].NotServed = framework.Unsupported, "v1 Pod"
	whole.ForeignRequests, whole.Strict = 3, true
	whole.Environment = &report.Environment{Started: "2026-01-01T00:00:00Z"}
	first, second := whole, whole
	first.Outcomes, second.Outcomes = whole.Outcomes[:1], whole.Outcomes[1:]
	first.Timing.Total, second.Timing.Catalogue = 1, 1
	first.ForeignRequests, second.ForeignRequests = 1, 2
	second.Strict, first.Environment = false, &report.Environment{Started: "2026-01-01T00:00:01Z"}
	got, err := merge(shard(first, 1, 2, 3), shard(second, 2, 2, 3))
	if diff := cmp.Diff(whole.Ordered(), got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	cut := second
	cut.Incomplete = "lost"
	if got, err = merge(shard(first, 1, 2, 3), shard(cut, 2, 2, 3)); err != nil || got.Incomplete != "r1: lost" {
		t.Errorf("got %q, %v; want that r1 is incomplete", got.Incomplete, err)
	}
}

func TestMergeRefuses(t *testing.T) {
	a, b := shard(part("v1.36.3", "pass a.x", "pass a.y"), 1, 2, 3), shard(part("v1.36.3", "pass b.x"), 2, 2, 3)
	other, gates, named, twice := shard(part("v1.35.4", "pass b.x"), 2, 2, 3), b, b, shard(part("v1.36.3", "pass a.y"), 2, 2, 3)
	gates.Target.FeatureGates = map[string]bool{"X": true}
	named.Implementation = &framework.Implementation{Project: "p"}
	tests := map[string]struct {
		reports []report.Report
		want    string
	}{
		"nothing":         {nil, "got no reports"},
		"overlap":         {[]report.Report{a, twice}, "r1 has scenario a.y, as another shard has"},
		"a shard twice":   {[]report.Report{a, b, a}, "r2 is shard 1, which is given twice"},
		"another version": {[]report.Report{a, other}, `r0 and r1 are of different servers: their version of the API server differ`},
		"other gates":     {[]report.Report{a, gates}, "their feature gates differ"},
		"another product": {[]report.Report{a, named}, "their implementation differ"},
		"one is no shard": {[]report.Report{a, part("v1.36.3", "pass b.x")}, "r1 is no shard"},
		"no shards":       {[]report.Report{part("v1.36.3", "pass b.x"), a}, "r0 is no shard"},
		"a shard missing": {[]report.Report{shard(a, 1, 3, 5), shard(b, 3, 3, 5)}, "shard 2/3 is missing; want all 3 shards"},
		"other shards":    {[]report.Report{a, shard(b, 2, 3, 3)}, "want shards of one selection"},
		"a scenario lost": {[]report.Report{shard(a, 1, 2, 4), shard(b, 2, 2, 4)}, "the shards have 3 scenarios, want the 4 that were selected"},
		"absurd":          {[]report.Report{shard(a, 1, 1<<60, 4)}, "shard 2/1152921504606846976 is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := merge(test.reports...); err == nil || !strings.HasPrefix(err.Error(), "merge reports: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
