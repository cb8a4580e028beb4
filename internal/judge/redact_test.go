package judge_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/judge"
)

// Mismatches in an audit event do not show the data of a Secret, unless they should.
func TestAuditIsRedacted(t *testing.T) {
	var got framework.Result
	got.Status.Code = 201
	got.Audit = &framework.Audit{Level: "RequestResponse", ResponseObject: map[string]any{"kind": "Secret", "data": map[string]any{"pin": "1234"}}}
	expect := &scenario.Expectation{Audit: map[string]any{"responseObject": map[string]any{"data": map[string]any{"pin": "1235"}}}}
	for _, one := range []struct {
		judge func(*scenario.Expectation, framework.Result) []judge.Mismatch
		want  string
	}{
		{judge.Judge, "audit.responseObject.data.pin: expected (redacted), actual (redacted)"},
		{judge.WithSecrets, `audit.responseObject.data.pin: expected "1235", actual "1234"`},
	} {
		found := one.judge(expect, got)
		if len(found) != 1 || !strings.Contains(found[0].String(), one.want) {
			t.Errorf("got %v; want %s", found, one.want)
		}
	}
}
