package policy_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/suites/policy"
)

// BenchmarkCheck checks two policies with three samples, on an API server that runs.
func BenchmarkCheck(b *testing.B) {
	on := &policy.Server{}
	defer func() {
		if err := on.Close(b.Context()); err != nil {
			b.Error(err)
		}
	}()
	image := func(name string) string { return strings.ReplaceAll(pod, "IMAGE", name) }
	s := subject(b, sound)
	s.Bad = append(s.Bad, policy.Bad{Object: file(b, image("example.com/a")), Denied: "registry.example.com/"})
	requests := 0
	check := func() {
		report := on.Check(b.Context(), s)
		if report.Err != nil || len(report.Outcomes) == 0 {
			b.Fatal(report.Err, report.Misuse)
		}
		requests += report.Requests
	}
	check() // starts the API server
	requests = 0
	for b.Loop() {
		check()
	}
	b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
}
