package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The command prints the files of docs/schemas, which have their names in $id. Without a name it prints that of scenario.
func TestSchema(t *testing.T) {
	for _, format := range []string{"policytest", "report", "scenario", ""} {
		file := cmp.Or(format, "scenario") + ".json"
		got := execute(t.Context(), nil, append([]string{"schema"}, strings.Fields(format)...)...)
		got.check(t, exitPass)
		want, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "schemas", file))
		if err != nil || got.stdout != string(want) || !strings.Contains(got.stdout, `/v1alpha1/`+file+`",`) {
			t.Errorf("schema %s: the output is not %s, or has another $id (%v)", format, file, err)
		}
	}
	for _, wrong := range []string{"reports", "../schemas/report", "report scenario"} {
		got := execute(t.Context(), nil, append([]string{"schema"}, strings.Fields(wrong)...)...)
		got.check(t, exitUsage)
	}
}
