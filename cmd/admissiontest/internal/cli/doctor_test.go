package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/doctor"
)

// doctorFile returns a file of the tests of package doctor.
func doctorFile(rule, name string) string {
	return filepath.Join("..", "..", "..", "..", "internal", "doctor", "testdata", rule, name)
}

func TestDoctor(t *testing.T) {
	bad, good, warning := doctorFile("cf-block-1", "bad.yaml"), doctorFile("cf-block-1", "good.yaml"), doctorFile("cf-block-5", "bad.yaml")
	dir := write(t, map[string]string{
		"alone.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks:\n" +
			"- {name: a.example.com, sideEffects: None, timeoutSeconds: 5, admissionReviewVersions: [v1], clientConfig: {service: {namespace: ns, name: s}, caBundle: ''}, rules: []}\n",
		"service.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"broken.yaml":   "a: [b",
		"type.yaml":     "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks: 7\n",
		"template.yaml": "{{ if .x }}\na: b\n{{ end }}\n",
		"other.json":    "{}",
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, test := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"an error":               {[]string{bad}, exitFail, []string{"CF-BLOCK-1", "bad.yaml:", "CREATE pods/guard-1-0 in guard-system", "source"}},
		"nothing":                {[]string{good}, exitPass, []string{"0 errors, 0 warnings"}},
		"a warning":              {[]string{warning}, exitPass, []string{"CF-BLOCK-5", "patch"}},
		"a warning fails":        {[]string{warning, "--fail-on", "warning"}, exitFail, nil},
		"nothing fails":          {[]string{bad, "--fail-on", "none"}, exitPass, nil},
		"only another rule":      {[]string{bad, "--only", "CF-SEM"}, exitPass, nil},
		"not that rule":          {[]string{bad, "--skip", "own-backend-can-start"}, exitPass, nil},
		"inconclusive":           {[]string{in("alone.yaml"), "--only", "CF-REACH-1"}, exitInconclusive, []string{"inconclusive", "Service s in namespace ns is not in the files"}},
		"nothing to check":       {[]string{in("service.yaml")}, exitNothing, []string{"no webhook configuration, policy or binding was found"}},
		"no argument":            {nil, exitUsage, []string{"nothing to check"}},
		"unknown rule":           {[]string{bad, "--only", "CF-BLOK-1"}, exitUsage, []string{"CF-BLOK-1", "did you mean"}},
		"unknown format":         {[]string{bad, "-o", "yaml"}, exitUsage, []string{`-o "yaml"`}},
		"unknown severity":       {[]string{bad, "--fail-on", "eror"}, exitUsage, []string{`did you mean "error"?`}},
		"not a version":          {[]string{bad, "--k8s-version", "new"}, exitUsage, []string{"want a version like 1.37"}},
		"dial of files":          {[]string{bad, "--dial"}, exitUsage, []string{"--dial needs --kubeconfig"}},
		"missing file":           {[]string{in("none.yaml")}, exitUsage, []string{"none.yaml", "no such file"}},
		"broken file":            {[]string{in("broken.yaml"), bad}, exitUsage, []string{"broken.yaml:1:", "CF-BLOCK-1"}},
		"wrong type":             {[]string{in("type.yaml"), bad}, exitUsage, []string{"type.yaml:1:", "CF-BLOCK-1"}},
		"a template":             {[]string{in("template.yaml")}, exitUsage, []string{"helm template"}},
		"a baseline of nonsense": {[]string{bad, "--baseline", in("other.json")}, exitUsage, []string{"no baseline of doctor"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, append([]string{"doctor"}, test.args...)...)
			got.check(t, test.code)
			for _, say := range test.says {
				if !strings.Contains(got.stdout+got.stderr, say) {
					t.Errorf("the output lacks %q:\n%s%s", say, got.stdout, got.stderr)
				}
			}
		})
	}
}

// A baseline accepts what it was written with.
func TestDoctorBaseline(t *testing.T) {
	bad, file := doctorFile("cf-block-1", "bad.yaml"), filepath.Join(t.TempDir(), "baseline.json")
	execute(t.Context(), nil, "doctor", bad, "--write-baseline", file).check(t, exitFail)
	got := execute(t.Context(), nil, "doctor", bad, "--baseline", file)
	if got.check(t, exitPass); !strings.Contains(got.stdout, "1 suppressed") {
		t.Errorf("standard output = %q; want a suppressed finding", got.stdout)
	}
	execute(t.Context(), nil, "doctor", doctorFile("cf-block-1", "good.yaml"), "--baseline", file).check(t, exitPass, "the baseline has a finding that is gone: CF-BLOCK-1")
}

func TestDoctorJSON(t *testing.T) {
	got := execute(t.Context(), nil, "doctor", doctorFile("cf-block-2", "bad.yaml"), "-o", "json")
	var document doctor.Document
	if err := json.Unmarshal([]byte(got.stdout), &document); err != nil {
		t.Fatal(err)
	}
	if document.Kind != "DoctorReport" || document.Summary.Errors != 1 || len(document.Findings) != 1 || document.Findings[0].Rule != "CF-BLOCK-2" {
		t.Errorf("got %+v, want a DoctorReport with one error", document)
	}
}

// TestDoctorSARIF checks the properties that SARIF 2.1.0 requires, and the values that it allows.
func TestDoctorSARIF(t *testing.T) {
	got := execute(t.Context(), nil, "doctor", doctorFile("cf-block-2", "bad.yaml"), doctorFile("cf-block-5", "bad.yaml"), "-o", "sarif")
	if got.code != exitUsage { // both files have an object of the same name
		t.Errorf("exit code %d, want %d", got.code, exitUsage)
	}
	got = execute(t.Context(), nil, "doctor", doctorFile("cf-block-2", "bad.yaml"), "-o", "sarif")
	var log struct {
		Schema  string `json:"$schema"`
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct{ ID string }
				}
			}
			Results []struct {
				RuleID, Level string
				RuleIndex     int
				Message       struct{ Text string }
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || log.Schema == "" || len(log.Runs) != 1 {
		t.Fatalf("got version %q, %d runs", log.Version, len(log.Runs))
	}
	run := log.Runs[0]
	if run.Tool.Driver.Name == "" || len(run.Tool.Driver.Rules) != len(doctor.All()) || len(run.Results) != 1 {
		t.Fatalf("got %+v", run)
	}
	for _, result := range run.Results {
		where := result.Locations[0].PhysicalLocation
		if run.Tool.Driver.Rules[result.RuleIndex].ID != result.RuleID || result.Message.Text == "" || result.Level != "error" || where.Region.StartLine < 1 || where.ArtifactLocation.URI != "internal/doctor/testdata/cf-block-2/bad.yaml" {
			t.Errorf("got %+v", result)
		}
	}
}
