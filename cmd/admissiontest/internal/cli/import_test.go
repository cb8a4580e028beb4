package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
)

// kyvernoTest returns the files of a test of kyverno's CLI, in a folder.
func kyvernoTest(folder string) map[string]string {
	return map[string]string{
		folder + "/kyverno-test.yaml": "kind: Test\npolicies: [policy.yaml]\nresources: [pod.yaml]\nresults:\n- {isValidatingAdmissionPolicy: true, policy: owner, kind: Pod, result: fail}\n- {policy: other, result: pass}\n",
		folder + "/policy.yaml":       "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: owner}}\n",
		folder + "/pod.yaml":          "{apiVersion: v1, kind: Pod, metadata: {name: bad}}\n",
	}
}

// The command import writes a file for each test, or prints them, and overwrites nothing without --force.
func TestImport(t *testing.T) {
	files := kyvernoTest("in/a")
	for name, content := range kyvernoTest("in/deep/a") {
		files[name] = content
	}
	files["in/none/kyverno-test.yaml"] = "kind: Test\nresults: [{policy: other, result: pass}]\n"
	dir := write(t, files)
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	run := func(args ...string) result {
		return onCatalogue(t.Context(), append([]string{"import"}, args...)...)
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(out, name)) //nolint:gosec // a file of the test
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}

	run("kyverno", in, "--to", out).check(t, exit.Pass, "results[1] for policy other: not a ValidatingAdmissionPolicy")
	for name, want := range map[string]string{"a.yaml": "../in/a/policy.yaml", "a-2.yaml": "../in/deep/a/policy.yaml"} {
		if got := read(name); !strings.Contains(got, "policies: "+want+"\n") || !strings.Contains(got, "denied: true") {
			t.Errorf("%s has no policies %s or no case:\n%s", name, want, got)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "a-2.yaml"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(out, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	run("kyverno", in, "--to", out).check(t, exit.Usage, "a-2.yaml exists", "--force")
	if _, err := os.Stat(filepath.Join(out, "a.yaml")); err == nil || read("a-2.yaml") != "mine" {
		t.Error("it wrote files although one exists")
	}
	run("kyverno", in, "--to", out, "--force").check(t, exit.Pass)
	if read("a-2.yaml") == "mine" {
		t.Error("--force did not overwrite")
	}
	listed := onCatalogue(t.Context(), "list", out)
	listed.check(t, exit.Pass)
	if !strings.Contains(listed.stdout, "out.a.create-pod-bad") || !strings.Contains(listed.stdout, "out.a-2.create-pod-bad") {
		t.Errorf("the files cannot be loaded together:\n%s", listed.stdout)
	}

	printed := run("kyverno", filepath.Join(in, "a", "kyverno-test.yaml"), filepath.Join(in, "deep", "a", "kyverno-test.yaml"))
	printed.check(t, exit.Pass)
	if strings.Count(printed.stdout, "kind: PolicyTest") != 2 || strings.Count(printed.stdout, "\n---\n") != 1 {
		t.Errorf("got other than two documents:\n%s", printed.stdout)
	}
	run("kyverno", filepath.Join(in, "none")).check(t, exit.Nothing, "found nothing to convert")
	run("kyverno", filepath.Join(dir, "out")).check(t, exit.Nothing, "found no kyverno-test.yaml")
	run("kyverno", filepath.Join(dir, "missing")).check(t, exit.Usage, "no such file")
	run("kyverno", filepath.Join(in, "a", "pod.yaml")).check(t, exit.Usage, `kind is "Pod"; expected a kyverno Test`)
	run("kyverno").check(t, exit.Usage, "want kyverno-test.yaml files")
	run("kyvrno", in).check(t, exit.Usage, `did you mean "kyverno"?`)
	run().check(t, exit.Usage, "unknown tool \"\"; want one of: kyverno")
}
