package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

// runTo runs scenarios, "MUST fine" each, with a report in a new folder, and returns it.
func runTo(t *testing.T, target *fake, code int, args []string, scenarios ...string) string {
	t.Helper()
	files := map[string]string{}
	for i, text := range scenarios {
		level, object, _ := strings.Cut(text, " ")
		files[fmt.Sprintf("mine/%02d.yaml", i)] = scenarioFile(fmt.Sprintf("mine.s%02d", i), level, object)
	}
	out := t.TempDir()
	execute(t.Context(), target, append([]string{"run", write(t, files) + "/mine", "--report", out}, args...)...).check(t, code)
	return out
}

// A run writes report.html, and "report html" writes the same from report.json.
func TestReportHTML(t *testing.T) {
	dir := runTo(t, &fake{}, exitFail, []string{"--strict"}, "MUST fine", "SHOULD refused")
	file := filepath.Join(dir, report.HTMLFile)
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"folder": dir, "file": filepath.Join(dir, report.JSONFile)} {
		t.Run(name, func(t *testing.T) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			got := execute(t.Context(), nil, "report", "html", path)
			got.check(t, exitPass)
			if got.stdout != file+"\n" {
				t.Errorf("standard output = %q", got.stdout)
			}
			again, err := os.ReadFile(file)
			if diff := cmp.Diff(string(want), string(again)); err != nil || diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
	if !strings.Contains(string(want), "FAIL") || !strings.Contains(string(want), "scenario/mine.s01") {
		t.Errorf("the page is\n%s", want)
	}
}

func TestReportDiff(t *testing.T) {
	before := runTo(t, &fake{version: "v1.35.4"}, exitPass, nil, "MUST fine", "MUST fine")
	after := runTo(t, &fake{}, exitFail, nil, "MUST fine", "MUST refused", "MUST fine")
	got := execute(t.Context(), nil, "report", "diff", before, after)
	got.check(t, exitFail)
	for _, part := range []string{"API server v1.35.4", "changed verdict (1)\n  pass -> fail  mine.s01  MUST\n", "new (1)\n  pass  mine.s02", "1 changed verdict, 1 new, 0 gone, 1 unchanged\n"} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("standard output lacks %q:\n%s", part, got.stdout)
		}
	}
	execute(t.Context(), nil, "report", "diff", after, before).check(t, exitPass)
	got = execute(t.Context(), nil, "report", "diff", before, after, "-o", "json")
	got.check(t, exitFail)
	var diff report.Diff
	if err := json.Unmarshal([]byte(got.stdout), &diff); err != nil || len(diff.Changed) != 1 || diff.Before.File != before {
		t.Errorf("got %+v, %v", diff, err)
	}
}

// The exit code of a merged report is that of one run.
func TestReportMerge(t *testing.T) {
	scenarios := []string{"MUST fine", "MUST fine", "SHOULD refused"}
	shard := func(part string, code int) string {
		return runTo(t, &fake{}, code, []string{"--strict", "--shard", part}, scenarios...)
	}
	a, b, out := shard("1/2", exitPass), shard("2/2", exitFail), t.TempDir()
	got := execute(t.Context(), nil, "report", "merge", a, b, "--report", out, "-o", "json")
	got.check(t, exitFail)
	if r := checkReport(t, got, out); r.Summary.Total != 3 || r.Summary.Pass != 2 || r.Summary.Fail != 1 {
		t.Errorf("summary = %+v", r.Summary)
	}
	if _, err := os.Stat(filepath.Join(out, report.HTMLFile)); err != nil {
		t.Error(err)
	}
	if got = execute(t.Context(), nil, "report", "merge", a, b); !strings.Contains(got.stdout, "mine  2 pass, 1 fail\n") {
		t.Errorf("standard output:\n%s", got.stdout)
	}
	cut, err := report.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	cut.Incomplete, cut.Outcomes[len(cut.Outcomes)-1].Verdict = "the server is gone", framework.Pass
	if err := report.SaveDir(out, cut.Ordered()); err != nil {
		t.Fatal(err)
	}
	execute(t.Context(), nil, "report", "merge", a, out).check(t, exitInfrastructure)
}

// Bad input of the commands for reports ends with exit code 2, and says what to do.
func TestReportBadInput(t *testing.T) {
	good := runTo(t, &fake{}, exitPass, nil, "MUST fine")
	bad := write(t, map[string]string{"foreign.json": `{"kind": "List", "apiVersion": "v1"}`, "truncated.json": `{"kind"`, "file": "", "empty/x": ""})
	for want, args := range map[string][]string{
		"takes one DIR or FILE; got 0 arguments":                         {"html"},
		"no such file or directory; want a file that":                    {"html", bad + "/none"},
		"it is not a report of admissiontest":                            {"html", bad + "/foreign.json"},
		"truncated.json: unexpected EOF: the file is truncated":          {"html", bad + "/truncated.json"},
		"empty/report.json: no such file":                                {"html", bad + "/empty"},
		"takes BEFORE and AFTER; got 1 arguments":                        {"diff", good},
		`--output "xml": want text or json`:                              {"diff", good, good, "-o", "xml"},
		"foreign.json: got apiVersion":                                   {"diff", good, bad + "/foreign.json"},
		"takes the folders of reports; got none":                         {"merge"},
		"is no shard: want the reports of run --shard":                   {"merge", good, good},
		"--report: mkdir ":                                               {"merge", good, "--report", bad + "/file"},
		`unknown command "htm" for "admissiontest report"; did you mean`: {"htm", good},
	} {
		t.Run(want, func(t *testing.T) {
			got := execute(t.Context(), nil, append([]string{"report"}, args...)...)
			got.check(t, exitUsage, want)
		})
	}
}

// A report folder that is a file, or that cannot be written to, is found before the run.
func TestReportFolderIsChecked(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": scenarioFile("mine.a", "MUST", "fine"), "file": "", "full/x": ""})
	full := filepath.Join(dir, "full")
	if err := os.Chmod(full, 0o500); err != nil { //nolint:gosec // a folder that cannot be written to
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(full, 0o700) }) //nolint:gosec // so that it can be removed
	for _, out := range []string{dir + "/file", full} {
		t.Run(filepath.Base(out), func(t *testing.T) {
			if file, err := os.CreateTemp(full, "x"); out == full && err == nil {
				_ = file.Close() // the user of this test, root for instance, can write everywhere
				return
			}
			target := &fake{}
			execute(t.Context(), target, "run", dir+"/a.yaml", "--report", out).check(t, exitUsage, "--report: ")
			if target.closed {
				t.Errorf("%s: the run began", out)
			}
		})
	}
}
