package cli

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/report"
)

const guardConfiguration = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
  - name: guard.example.com
    clientConfig: {service: {namespace: a, name: a, path: /guard}}
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
    admissionReviewVersions: [v1]
    sideEffects: None
`

// guardWebhook denies ConfigMaps whose mode is bad. With forget, it forgets the uid.
func guardWebhook(forget bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 7<<20)).Decode(&review)
		if r.URL.Path != "/guard" {
			http.NotFound(w, r)
			return
		}
		if err != nil || review.Request == nil || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
			return
		}
		var object struct{ Data map[string]string }
		if err := json.Unmarshal(review.Request.Object.Raw, &object); err != nil && review.Request.Operation != admissionv1.Delete {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if forget {
			review.Response.UID = "forgotten"
		}
		if object.Data["mode"] == "bad" {
			review.Response.Allowed = false
			review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "the mode is not allowed"}
		}
		_ = json.NewEncoder(w).Encode(review)
	})
}

// served returns the arguments for a webhook that runs.
func served(t *testing.T, handler http.Handler) []string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	files := map[string]string{
		"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})), "webhook.yaml": guardConfiguration,
		"good.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\ndata: {mode: good}\n",
		"bad.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {mode: bad}\n",
	}
	dir := write(t, files)
	in := func(name string) string { return filepath.Join(dir, name) }
	return []string{"contract", "--url", server.URL, "--ca-file", in("ca.crt"), "--configuration", in("webhook.yaml"), "--allow", in("good.yaml"), "--reject", in("bad.yaml") + "=mode is not allowed"}
}

// TestContract: contract has the exit codes and reports of run.
func TestContract(t *testing.T) {
	sound, forgetful := served(t, guardWebhook(false)), served(t, guardWebhook(true))
	slow := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // another system is slow
		guardWebhook(false).ServeHTTP(w, r)
	}))
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a rule":      {append(slices.Clip(sound), "--only", "WH-PROTO-1,tls-is-current"), exitPass, "2 pass"},
		"all":         {sound, exitPass, "does to other systems cannot be seen"},
		"no allow":    {slices.Delete(slices.Clone(sound), 7, 9), exitInconclusive, "WH-PROTO-5 (guard.example.com)"},
		"broken":      {append(slices.Clip(forgetful), "--only", "WH-PROTO-1,WH-PROTO-3"), exitFail, `got "forgotten", want `},
		"waived":      {append(slices.Clip(forgetful), "--only", "WH-PROTO-1,WH-PROTO-3", "--waive", "WH-PROTO-1=a test"), exitPass, "1 skipped"},
		"budget":      {append(slow, "--only", "WH-IDEM-4", "--budget", "100ms"), exitInconclusive, "more time with --budget"},
		"junit":       {append(slices.Clip(sound), "--only", "WH-PROTO-1", "-o", "junit"), exitPass, "<testsuite"},
		"nothing":     {append(slices.Clip(sound), "--only", "WH-IDEM-1"), exitNothing, "1 unsupported"},
		"no samples":  {sound[:7], exitUsage, "fill --allow and --reject"},
		"rule":        {append(slices.Clip(sound), "--only", "WH-PROTO-11"), exitUsage, `there is no rule "WH-PROTO-11"; did you mean`},
		"kind":        {append(slices.Clip(sound), "--kind", "validating"), exitUsage, "cannot be combined"},
		"a Service":   {append(slices.Clip(sound), "--only", "WH-PROTO-1", "--server-name", "example.com"), exitPass, "1 pass"},
		"no Service":  {append(slices.Clip(sound), "--server-name", "guard.default.svc"), exitInfrastructure, "not guard.default.svc; want --ca-file ("},
		"no CA":       {slices.Delete(slices.Clone(sound), 3, 5), exitInfrastructure, "is not trusted: x509: certificate signed by unknown authority"},
		"no path":     {append(slices.Delete(slices.Clone(sound), 5, 7), "--kind", "validating"), exitInfrastructure, "/: HTTP status 404; the path of a webhook is in its URL"},
		"not broken":  {append(slices.Clip(sound), "--only", "WH-PROTO-1", "--waive", "WH-PROTO-1=a test"), exitFail, "not broken: remove the waiver"},
		"not checked": {append(slices.Clip(sound), "--only", "WH-IDEM-1", "--waive", "WH-IDEM-1=a test"), exitNothing, "1 unsupported"},
		"operation":   {append(slices.Clip(sound), "--url", "https://127.0.0.1:1", "--allow", "UPDTE:good.yaml"), exitUsage, `there is no operation "UPDTE"; did you mean "UPDATE"?`},
		"a file":      {append(slices.Clip(sound), "--url", "https://127.0.0.1:1", "--allow", "goood.yaml"), exitUsage, "--allow goood.yaml: cannot be read"},
		"of policies": {append(slices.Clip(sound), "--good", "good.yaml"), exitUsage, "belong to --policies"},
		"of webhooks": {[]string{"contract", "--policies", "policy.yaml", "--allow", "good.yaml"}, exitUsage, "belong to --url"},
		"output":      {append(slices.Clip(sound), "-o", "jnit"), exitUsage, `did you mean "junit"?`},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, test.args...)
			got.check(t, test.code)
			if !strings.Contains(got.stdout+got.stderr, test.want) {
				t.Errorf("%q is not in:\n%s\n%s", test.want, got.stdout, got.stderr)
			}
		})
	}
	dir := t.TempDir()
	got := execute(t.Context(), nil, append(slices.Clip(forgetful), "-o", "json", "--report-dir", dir)...)
	got.check(t, exitFail)
	var r report.Report
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || r.Summary.Fail != 1 || r.Summary.Total != len(r.Outcomes) {
		t.Errorf("got %+v, %v; want one failure", r.Summary, err)
	}
	for _, name := range []string{report.JSONFile, report.JUnitFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// policyFiles are a policy that leaves out init containers, a Pod that it allows, and one that it refuses.
func policyFiles(t *testing.T) (args []string) {
	t.Helper()
	pod := "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: IMAGE}]}}\n"
	policy := `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: images}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.spec.containers.all(c, c.image.startsWith('good/'))", message: wrong image}]
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: images}, spec: {policyName: images, validationActions: [Deny]}}
`
	dir := t.TempDir()
	for name, text := range map[string]string{"policy.yaml": policy, "good.yaml": strings.ReplaceAll(pod, "IMAGE", "good/a"), "bad.yaml": strings.ReplaceAll(pod, "IMAGE", "a")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"contract", "--policies", filepath.Join(dir, "policy.yaml"), "--good", filepath.Join(dir, "good.yaml"), "--bad", filepath.Join(dir, "bad.yaml") + "=wrong image"}
}

func TestContractOfPolicies(t *testing.T) {
	args := policyFiles(t)
	got := execute(t.Context(), nil, append(slices.Clip(args), "-o", "json")...)
	got.check(t, exitFail)
	var r report.Report
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, outcome := range r.Outcomes {
		if outcome.Verdict == framework.Fail {
			failed = append(failed, outcome.Name)
		}
	}
	if want := []string{"PO-DOOR-1", "PO-DOOR-2", "PO-DOOR-3"}; !slices.Equal(failed, want) {
		t.Errorf("it breaks %v, want %v", failed, want)
	}
	waived := execute(t.Context(), nil, append(args, "--only", "PO-DOOR-1", "--waive", "PO-DOOR-1=our Pods are not updated")...)
	waived.check(t, exitNothing)
}

// A run that is interrupted during a contract, which takes some seconds, does not pass.
func TestRunContractInterrupted(t *testing.T) {
	args := policyFiles(t)
	path := filepath.Join(filepath.Dir(args[2]), "test.yaml")
	test := "apiVersion: admissiontest.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: images}\npolicies: policy.yaml\ncases: [{object: good.yaml}]\ncontract: {}\n"
	if err := os.WriteFile(path, []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := execute(ctx, &fake{atEnd: func() { time.AfterFunc(time.Second, cancel) }}, "run", path, "--report", t.TempDir())
	got.check(t, exitInterrupted)
	if !strings.Contains(got.stdout, "incomplete: the contract of images was not checked to its end") {
		t.Errorf("standard output:\n%s", got.stdout)
	}
}

// The contract of a PolicyTest has an outcome for each rule, beside the outcomes of the cases.
func TestRunContract(t *testing.T) {
	args := policyFiles(t)
	dir := filepath.Dir(args[2])
	test := "apiVersion: admissiontest.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: images}\npolicies: policy.yaml\n" +
		"cases: [{object: good.yaml}, {object: bad.yaml, denied: wrong image}]\n" +
		"contract: {except: [{rule: RULE, reason: our Pods are not updated}]}\n"
	run := func(rule string, more ...string) result {
		if err := os.WriteFile(filepath.Join(dir, "test.yaml"), []byte(strings.ReplaceAll(test, "RULE", rule)), 0o600); err != nil {
			t.Fatal(err)
		}
		return execute(t.Context(), &fake{}, append([]string{"run", filepath.Join(dir, "test.yaml"), "-o", "json"}, more...)...)
	}
	got := run("PO-DOOR-1")
	got.check(t, exitFail)
	var r report.Report
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]framework.Verdict{}
	for _, outcome := range r.Outcomes {
		verdicts[outcome.Name] = outcome.Verdict
	}
	for name, want := range map[string]framework.Verdict{"images.PO-DOOR-1": framework.Skipped, "images.PO-DOOR-2": framework.Fail, "images.PO-VERDICT-1": framework.Pass} {
		if verdicts[name] != want {
			t.Errorf("%s is %q, want %s", name, verdicts[name], want)
		}
	}
	if r.Summary.Total != len(r.Outcomes) || len(r.Outcomes) < 30 {
		t.Errorf("%d outcomes, a total of %d", len(r.Outcomes), r.Summary.Total)
	}
	run("PO-DOR-1").check(t, exitUsage, `test.yaml:6: contract.except: there is no rule "PO-DOR-1"; did you mean "PO-DOOR-1"`)
	got = run("PO-DOOR-1", "--target", "kind")
	if !strings.Contains(got.stdout, "it needs an API server that ends with the run") {
		t.Errorf("without an API server that ends with the run: %s", got.stdout)
	}
}

// Many contracts share several API servers, and have the verdicts of one.
func TestRunContracts(t *testing.T) {
	t.Parallel()
	args := policyFiles(t)
	dir, run := filepath.Dir(args[2]), []string{"run", "-o", "json"}
	const tests = contractsOfServer + 1
	for i := range tests {
		name := filepath.Join(dir, fmt.Sprintf("test%d.yaml", i))
		text := fmt.Sprintf("apiVersion: admissiontest.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: images%d}\npolicies: policy.yaml\n", i) +
			"cases: [{object: good.yaml}, {object: bad.yaml, denied: wrong image}]\ncontract: {}\n"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run = append(run, name)
	}
	began := time.Now()
	got := execute(t.Context(), &fake{}, run...)
	took := time.Since(began).Seconds()
	got.check(t, exitFail, fmt.Sprintf("%d of %d contracts checked", tests, tests))
	var r report.Report
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Timing.Total < took/2 {
		t.Errorf("the report says that the run took %.1f s, it took %.1f s with the contracts", r.Timing.Total, took)
	}
	verdicts := map[string]map[string]framework.Verdict{}
	for _, outcome := range r.Outcomes {
		if test, rule, found := strings.Cut(outcome.Name, ".PO-"); found {
			if verdicts[test] == nil {
				verdicts[test] = map[string]framework.Verdict{}
			}
			verdicts[test][rule] = outcome.Verdict
		}
	}
	if len(verdicts) != tests || verdicts["images0"]["DOOR-2"] != framework.Fail {
		t.Errorf("got the contracts of %d tests: %v", len(verdicts), verdicts["images0"])
	}
	for test, got := range verdicts {
		if diff := cmp.Diff(verdicts["images0"], got); diff != "" {
			t.Errorf("%s has other verdicts:\n%s", test, diff)
		}
	}
}
