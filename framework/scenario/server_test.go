package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/admissiontest/admissiontest/internal/golden"
)

// What kube-apiserver must not get from a scenario, because it runs as the user of the run.
func TestServerOutside(t *testing.T) {
	file := filepath.Join("testdata", "server", "outside.yaml")
	_, err := Load(LoadOptions{}, file)
	if err == nil {
		t.Fatal("the file was loaded")
	}
	golden.Compare(t, filepath.Join("testdata", "server", "outside.golden"), filepath.ToSlash(err.Error())+"\n")
	wrong := map[int]bool{} // documents
	content := read(t, file)
	for _, one := range Errors(err) {
		before := strings.Join(strings.Split(content, "\n")[:one.Line], "\n")
		wrong[strings.Count(before, "\n---\n")] = true
	}
	if documents := strings.Count(content, "\n---\n") + 1; len(wrong) != documents {
		t.Errorf("%d of %d documents have an error", len(wrong), documents)
	}
}

// What a scenario needs in order to test admission is not refused.
func TestServerInside(t *testing.T) {
	if _, err := Load(LoadOptions{}, filepath.Join("testdata", "server", "inside.yaml")); err != nil {
		t.Error(err)
	}
}

// The operator can allow flags by name, but not what the files of others have.
func TestAllowServerFlags(t *testing.T) {
	text := strings.Replace(named("mine.server"), "  when:", "  server: {flags: {audit-log-path: /tmp/x, tracing-config-file: $(files)/t}, files: {t: 'endpoint: x'}}\n  when:", 1)
	for _, test := range []struct {
		text    string
		allowed []string
		refused bool
	}{
		{text, nil, true},
		{text, []string{"audit-log-path"}, true},
		{text, []string{"audit-log-path", "tracing-config-file"}, false},
		{text, []string{"*"}, false},
		{strings.Replace(text, "endpoint: x", "user: {exec: {}}", 1), []string{"*"}, true},
	} {
		t.Run(fmt.Sprint(test.allowed), func(t *testing.T) {
			_, err := Load(LoadOptions{FS: fstest.MapFS{"one.yaml": {Data: []byte(test.text)}}, AllowServerFlags: test.allowed})
			if refused := err != nil; refused != test.refused {
				t.Errorf("with %v allowed: got the error %v, want one: %t", test.allowed, err, test.refused)
			}
		})
	}
}

// docs/scenarios.md lists the flags that a scenario can set.
func TestServerFlagsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range serverFlags() {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/scenarios.md does not list the flag %s", name)
		}
	}
}
