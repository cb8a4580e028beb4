package report_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/report"
)

func TestImplausibleVersion(t *testing.T) {
	newest := version.MustParseGeneric(binaries.DefaultVersion)
	for server, plausible := range map[string]bool{
		"v" + binaries.DefaultVersion: true,
		"v1.25.0":                     true, "v1.33.1-eks-1-33": true, "v1.31.1+k3s1": true, "1.30.0": true,
		fmt.Sprintf("v1.%d.0-alpha.1", newest.Minor()+3): true,
		fmt.Sprintf("v1.%d.0", newest.Minor()+4):         false,
		"v1.24.17":                                       false, "v0.36.3": false, "v2.0.0": false, "v1.99.0": false, "v0.0.0-master+$Format:%H$": false,
		"": false, "v1": false, "fake": false, "1.x": false,
	} {
		t.Run(server, func(t *testing.T) {
			if reason := report.ImplausibleVersion(server); (reason == "") != plausible || !plausible && !strings.Contains(reason, fmt.Sprintf("%q", server)) {
				t.Errorf("%q: got %q; want plausible = %t", server, reason, plausible)
			}
		})
	}
}

// A server whose version is not plausible has no PASS, and a failure still counts.
func TestNoPassWithAnImplausibleVersion(t *testing.T) {
	for verdicts, want := range map[string]struct {
		code int
		word string
	}{
		"MUST pass": {report.ExitInconclusive, "INCONCLUSIVE"}, "SHOULD pass": {report.ExitInconclusive, "INCONCLUSIVE"},
		"MUST unsupported": {report.ExitInconclusive, "INCONCLUSIVE"},
		"MUST fail":        {report.ExitFail, "FAIL"}, "MUST error": {report.ExitError, "ERROR"},
	} {
		t.Run(verdicts, func(t *testing.T) {
			r := outcomes(verdicts)
			r.Target = report.TargetInfo{Kind: framework.TargetKubeconfig, ServerVersion: "v1.99.0"}
			var text strings.Builder
			if err := report.WriteConsole(&text, r, report.ConsoleOptions{}); err != nil {
				t.Fatal(err)
			}
			if code := r.ExitCode(false); code != want.code || !strings.HasSuffix(text.String(), ": "+want.word+"\n") {
				t.Errorf("exit code %d; want %d, %s\n%s", code, want.code, want.word, &text)
			}
			if !strings.Contains(text.String(), `inconclusive: the server reports the version "v1.99.0": want one from v1.25 `) {
				t.Errorf("the console does not say why:\n%s", &text)
			}
			if why := r.WhyNothing(false); !strings.Contains(why, "v1.99.0") {
				t.Errorf("WhyNothing = %q", why)
			}
		})
	}
	for verdicts, want := range map[string]string{
		"": "nothing was selected", "MUST pass": "", "MUST fail": "", "MUST inconclusive": "",
		"MUST unsupported": "nothing could be judged: 1 unsupported", "MAY fail": "nothing passed: 1 fail",
	} {
		t.Run(verdicts, func(t *testing.T) {
			r := outcomes()
			if verdicts != "" {
				r = outcomes(verdicts)
			}
			if got := r.WhyNothing(false); got != want {
				t.Errorf("%q: WhyNothing = %q; want %q", verdicts, got, want)
			}
		})
	}
}
