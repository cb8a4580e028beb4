package cli

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/admissiontest/admissiontest/internal/doctor"
)

// doctorFile returns a file of the tests of package doctor.
func doctorFile(rule, name string) string {
	return filepath.Join("..", "..", "..", "..", "internal", "doctor", "testdata", rule, name)
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
