package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/docs"
)

// The command prints the files of docs/schemas, which have their names in $id. Without a name it prints that of scenario.
func TestSchema(t *testing.T) {
	folder := filepath.Join("..", "..", "..", "..", "docs", "schemas")
	for _, format := range append(docs.Schemas(), "") {
		t.Run(format, func(t *testing.T) {
			name := format
			if name == "" {
				name = "scenario"
			}
			got := execute(t.Context(), nil, append([]string{"schema"}, strings.Fields(format)...)...)
			got.check(t, exitPass)
			want, err := os.ReadFile(filepath.Join(folder, name+".json"))
			if err != nil || got.stdout != string(want) {
				t.Errorf("the output is not the file (%v)", err)
			}
			var schema struct {
				ID string `json:"$id"`
			}
			if err := json.Unmarshal(want, &schema); err != nil || !strings.HasSuffix(schema.ID, "/v1alpha1/"+name+".json") {
				t.Errorf("$id is %q, %v; want one that ends with the name", schema.ID, err)
			}
		})
	}
	for _, wrong := range [][]string{{"reports"}, {"../schemas/report"}, {"report", "scenario"}} {
		got := execute(t.Context(), nil, append([]string{"schema"}, wrong...)...)
		got.check(t, exitUsage)
		if !strings.Contains(got.stderr, "policytest, report, scenario") && len(wrong) == 1 {
			t.Errorf("schema %s printed %q, want the names", wrong, got.stderr)
		}
	}
}
