package providers

import (
	"fmt"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// The files of the profile with credentials for webhooks.
const (
	admissionFile   = "admissiontest-admission.yaml"
	credentialsFile = "admissiontest-webhooks.kubeconfig"
)

// defaultProfile returns the profile of the default server: a profile in which the API server has a token for webhooks that it
// calls by the name localhost at the port of the Hooks. Hooks are called by IP address
// unless a scenario says otherwise, and then get no token, as on a server without the
// profile. See
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers
func defaultProfile(port int) envtest.Profile {
	configuration := ""
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		configuration += fmt.Sprintf(`- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: $(files)/%s
`, plugin, credentialsFile)
	}
	return envtest.Profile{
		Flags: map[string]string{"admission-control-config-file": "$(files)/" + admissionFile},
		Files: map[string]string{
			admissionFile: "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n" + configuration,
			credentialsFile: fmt.Sprintf(`apiVersion: v1
kind: Config
users:
- name: localhost:%d
  user: {token: token-of-the-kubeconfig}
`, port),
		},
	}
}
