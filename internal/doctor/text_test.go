package doctor

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/internal/shipped"
)

// What has one cause is printed once, with every place; notes and remarks of a kind are one line. -v and -o json have each.
func TestText(t *testing.T) {
	var manifests []shipped.Manifest
	for _, name := range []string{"a", "b", "c"} {
		m := webhookWith("Validating", func(w map[string]any) {
			delete(w, "timeoutSeconds")
			w["admissionReviewVersions"] = []any{"v1beta1"}
		})
		m.Object["metadata"] = map[string]any{"name": name}
		manifests = append(manifests, m)
	}
	report, err := Judge(t.Context(), Input{Manifests: manifests, Only: []string{"CF-SEM-2", "CF-BLOCK-5", "CF-REACH-1", "CF-REACH-2"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) != 6 || len(report.NotChecked) != 6 || len(report.Inconclusive()) > 0 {
		t.Errorf("got %d findings, %d remarks, %d inconclusive", len(report.Findings), len(report.NotChecked), len(report.Inconclusive()))
	}
	for part, want := range map[string][2]int{ // in short, and with -v
		"warning  CF-SEM-2":                          {1, 3},
		"and       ValidatingWebhookConfiguration/c": {1, 0},
		"note  CF-BLOCK-5":                           {1, 3},
		"webhooks[0].timeoutSeconds and 2 more":      {1, 0},
		"remark  CF-REACH-":                          {1, 6},
		"remark  CF-REACH-1, CF-REACH-2  ValidatingWebhookConfiguration/a and 2 more": {1, 0},
		"6 remarks": {1, 1},
	} {
		if got := [2]int{strings.Count(report.Text(false), part), strings.Count(report.Text(true), part)}; got != want {
			t.Errorf("%q: got %d, want %d\n%s", part, got, want, report.Text(false))
		}
	}
}
