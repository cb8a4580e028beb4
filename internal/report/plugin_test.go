package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
)

// The report names the plugins of the server, and the calls of plugins in the timeline.
func TestPlugins(t *testing.T) {
	r := New(framework.TargetInfo{Kind: "envtest", ServerVersion: "v1.36.3", Transport: "url", Plugins: []string{"Owner", "Other"}})
	r.Outcomes = []Outcome{{Name: "a.b", Area: "a", Level: framework.Must, Verdict: framework.Fail, Evidence: &Evidence{Timeline: []TimelineEntry{
		{OffsetMillis: 1, Phase: "mutating", Round: 1, Plugin: "Owner", Summary: "CREATE pods ns/x: nothing", Observed: true, Divergent: true},
	}}}}
	var out bytes.Buffer
	if err := WriteConsole(&out, r, ConsoleOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"target envtest, API server v1.36.3 with Owner, Other, webhooks by url\n",
		">    +1.0ms  observed  mutating round 1  plugin Owner  CREATE pods ns/x: nothing\n",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the report lacks %q:\n%s", part, out.String())
		}
	}
}
