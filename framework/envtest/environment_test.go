package envtest_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// The Environment of a server is one that runs: it makes users, and installs and removes what its options say. Its
// Stop does not end the server. This also is so if anonymous requests are refused, which controller-runtime's own
// question whether kube-apiserver is ready is.
func TestEnvironmentRuns(t *testing.T) {
	for name, flags := range map[string]map[string]string{"default": nil, "no anonymous requests": {"anonymous-auth": "false"}} {
		t.Run(name, func(t *testing.T) {
			server := start(t, envtest.Options{Profile: envtest.Profile{Flags: flags}})
			environment := server.Environment
			user, err := environment.AddUser(crenvtest.User{Name: "jane", Groups: []string{"admins"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := whoAmI(t, user.Config()); got != "jane admins" {
				t.Errorf("the new user is %q, want jane admins", got)
			}
			environment.CRDInstallOptions = crenvtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgets()}, CleanUpAfterUse: true}
			config, err := environment.Start()
			if err != nil || config.Host != server.Config.Host {
				t.Fatalf("got %v, %v; want the configuration of the server", config, err)
			}
			client, err := discovery.NewDiscoveryClientForConfig(server.Config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.ServerResourcesForGroupVersion("example.com/v1"); err != nil {
				t.Errorf("the CustomResourceDefinition is not installed: %v", err)
			}
			if err := environment.Stop(); err != nil {
				t.Error(err)
			}
			if _, err := client.ServerVersion(); err != nil || server.Err() != nil {
				t.Errorf("the server ended with the Environment: %v, %v", err, server.Err())
			}
		})
	}
}

// A profile can have an authority of its own for the certificates of users.
func TestOwnAuthority(t *testing.T) {
	server := start(t, envtest.Options{Profile: envtest.Profile{
		Flags: map[string]string{"client-ca-file": "$(files)/kube-apiserver/apiserver.crt"}, // it signed no user
	}})
	user, err := server.Environment.AddUser(crenvtest.User{Name: "jane"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := whoAmI(t, user.Config()); got != string(metav1.StatusReasonUnauthorized) {
		t.Errorf("a user with a certificate of another authority is %q", got)
	}
}

func widgets() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}},
			}},
		},
	}
}
