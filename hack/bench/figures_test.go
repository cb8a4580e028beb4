package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

func TestFigures(t *testing.T) {
	var out strings.Builder
	f := &figures{out: &out}
	f.heading("a heading")
	f.figure("a figure", 1.23456, "s")
	f.count("a count", 12)
	f.atMost("at its upper limit", 2, 2, "s")
	f.atMost("above its limit", 2.001, 2, "MiB")
	f.atLeast("at its lower limit", 10, 10, "x")
	f.atLeast("below its limit", 9.999, 10, "x")
	f.judged("judged", "no scenario tests it", false)
	f.note("%d %s", 1, "note")
	want := `
a heading
  a figure                                           1.235 s
  a count                                               12
  at its upper limit                                 2.000 s, limit 2: ok
  above its limit                                    2.001 MiB, limit 2: EXCEEDED
  at its lower limit                                10.000 x, want 10: ok
  below its limit                                    9.999 x, want 10: EXCEEDED
  judged                                         no scenario tests it: EXCEEDED
  1 note
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	out.Reset()
	const summary = `3 figures exceed their limits: ["above its limit" "below its limit" "judged"]`
	if err := f.verdict(false); err != nil || out.String() != "\n"+summary+"\n" {
		t.Errorf("verdict = %v, printed %q; want nil and %q", err, out.String(), summary)
	}
	if err := f.verdict(true); err == nil || err.Error() != summary {
		t.Errorf("strict verdict = %v; want %s", err, summary)
	}
	out.Reset()
	if err := (&figures{out: &out}).verdict(true); err != nil || out.String() != "\nno figure exceeds its limit\n" {
		t.Errorf("verdict without figures = %v, printed %q", err, out.String())
	}
}

func TestMedian(t *testing.T) {
	values := []float64{5, 1, 3}
	if got := median(values); got != 3 {
		t.Errorf("median of %v = %g; want 3", values, got)
	}
	if diff := cmp.Diff([]float64{5, 1, 3}, values); diff != "" {
		t.Errorf("median changed its argument:\n%s", diff)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 3 {
		t.Errorf("median of four = %g; want 3, the higher of the two in the middle", got)
	}
	if got := median(nil); got != 0 {
		t.Errorf("median of nothing = %g; want 0", got)
	}
}

func TestMemory(t *testing.T) {
	for status, want := range map[string]float64{
		"Name:\tadmissiontest\nVmPeak:\t 9999 kB\nVmHWM:\t   51200 kB\nVmRSS:\t 100 kB\n": 50,
		"Name:\tkernel thread\n": 0,
		"VmHWM:\n":               0,
		"VmHWM: 1 MB\n":          0,
	} {
		t.Run(status, func(t *testing.T) {
			if got := vmHWM(status); got != want {
				t.Errorf("vmHWM(%q) = %g; want %g", status, got, want)
			}
		})
	}
	if _, err := os.Stat("/proc/self/status"); err == nil && highWater(os.Getpid()) < 1 {
		t.Errorf("memory of this process = %g MiB; want at least 1", highWater(os.Getpid()))
	}
	if got := highWater(-1); got != 0 {
		t.Errorf("memory of no process = %g; want 0", got)
	}
}

func TestExecute(t *testing.T) {
	b := &bench{command: "sh"}
	got, err := b.execute(t.Context(), "-c", "printf hello")
	if err != nil || string(got.stdout) != "hello" || got.wall <= 0 {
		t.Errorf("execute = %q after %s, %v; want hello", got.stdout, got.wall, err)
	}
	_, err = b.execute(t.Context(), "-c", `echo '{"outcomes": [{"name": "a.b", "verdict": "fail", "reason": "step 1"}]}'; echo oops >&2; exit 3`)
	for _, part := range []string{"exit status 3", "oops", "fail a.b: step 1"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("execute = %v; want %q in it", err, part)
		}
	}
}

// manifest returns a manifest of an API version.
func manifest(apiVersion string) map[string]any { return map[string]any{"apiVersion": apiVersion} }

func TestWork(t *testing.T) {
	write := scenario.Step{Create: manifest("v1")}
	all := []scenario.Scenario{
		{Spec: scenario.Spec{
			Given: []map[string]any{manifest("v1"), manifest("admissionregistration.k8s.io/v1"), manifest("admissionregistration.k8s.io/v1beta1")},
			When: []scenario.Step{
				write,
				{Parallel: []scenario.Step{write, write}},
				{Install: []map[string]any{manifest("admissionregistration.k8s.io/v1"), manifest("v1")}},
				{Remove: []scenario.ObjectReference{{}, {}}},
				{Script: map[string]scenario.Hook{"a": {}}},
			},
			Hooks: map[string]scenario.Hook{"a": {
				Reply:   scenario.Reply{Meanwhile: []scenario.Step{write}},
				Replies: []scenario.Reply{{Reply: hook.Reply{}}, {Meanwhile: []scenario.Step{write, write}}},
			}},
		}},
		{Spec: scenario.Spec{Server: &scenario.Server{}}},
	}
	want := work{namespaces: 2, configurations: 5, writes: 8}
	if got := workOf(all); got != want {
		t.Errorf("workOf = %+v; want %+v", got, want)
	}
	if got := defaultProfile(all); len(got) != 1 || got[0].Spec.Server != nil || len(all) != 2 {
		t.Errorf("defaultProfile returned %d scenarios of %d; want the one without a profile", len(got), len(all))
	}
}

func TestSubset(t *testing.T) {
	group := covered{"a", []string{"REINV-", "CLIENT-011"}}
	for behaviour, want := range map[string]bool{"REINV-007": true, "CLIENT-011": true, "CLIENT-0110": false, "CLIENT-012": false, "REINV": false} {
		t.Run(behaviour, func(t *testing.T) {
			one := scenario.Scenario{Spec: scenario.Spec{Behaviours: []string{"ORDER-001", behaviour}}}
			if got := group.shows(one); got != want {
				t.Errorf("shows(%s) = %t; want %t", behaviour, got, want)
			}
		})
	}
}
