package envtest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"github.com/admissiontest/admissiontest/framework/cluster/envtest"
)

// A failed start returns the reason and leaves nothing.
func TestFailedStartLeavesNothing(t *testing.T) {
	found, err := assets.Ensure(t.Context(), assets.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	server, err := envtest.Start(t.Context(), envtest.Options{Assets: found, Profile: envtest.Profile{Flags: map[string]string{"no-such-flag": "1"}}})
	if err == nil {
		_ = server.Stop()
		t.Fatal("a server started with a flag that does not exist")
	}
	if !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got error %q, want one that names the flag", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("left in the folder of temporary files: %v, %v", left, err)
	}
}

// The API server does not start with a bad kubeconfig for webhooks (behaviour CLIENT-015), and
// starts with a good one.
func TestBadWebhookKubeconfig(t *testing.T) {
	found, err := assets.Ensure(t.Context(), assets.Options{Progress: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	for name, kubeconfig := range map[string]string{
		"missing":   "",
		"malformed": "this is not a kubeconfig",
		"good":      "apiVersion: v1\nkind: Config\n",
	} {
		t.Run(name, func(t *testing.T) {
			profile := envtest.Profile{
				Flags: map[string]string{"admission-control-config-file": "$(files)/admission.yaml"},
				Files: map[string]string{"admission.yaml": `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: $(files)/webhooks.kubeconfig}
`},
			}
			if kubeconfig != "" {
				profile.Files["webhooks.kubeconfig"] = kubeconfig
			}
			server, err := envtest.Start(t.Context(), envtest.Options{Assets: found, Profile: profile})
			if err == nil {
				err := server.Stop()
				if name != "good" || err != nil {
					t.Errorf("the server started, and stopped with %v; want it to start with a good kubeconfig only", err)
				}
				return
			}
			if name == "good" || !strings.Contains(err.Error(), "ValidatingAdmissionWebhook") {
				t.Errorf("got error %q, want one that names the plugin, and none with a good kubeconfig", err)
			}
		})
	}
}
