package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/providers"
	"github.com/admissiontest/admissiontest/scenarios"
)

// The program kube-apiserver of a folder can be a script that starts another API server: it gets all flags, of a
// scenario and for the audit log too.
func TestScriptStartsServer(t *testing.T) {
	t.Parallel()
	found, err := binaries.Ensure(t.Context(), binaries.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "flags")
	script := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" >> %s\nexec %s \"$@\"\n", log, found.KubeAPIServer())
	if err := os.WriteFile(filepath.Join(dir, "kube-apiserver"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	if err := os.Symlink(found.Etcd(), filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	all, err := scenario.Load(scenario.LoadOptions{FS: scenarios.FS})
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(s scenario.Scenario) bool { return s.Area != "audit" && s.Area != "flags" })
	r, err := engine.Run(t.Context(), engine.Options{Provider: providers.NewEnvtest(providers.EnvtestOptions{Assets: binaries.Options{Dir: dir}}), Scenarios: all})
	wantAllPass(t, r, err)
	passed, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--audit-webhook-config-file", "--disable-admission-plugins"} {
		if !strings.Contains(string(passed), flag+"=") {
			t.Errorf("the script did not get the flag %s", flag)
		}
	}
}
