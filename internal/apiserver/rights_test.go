package apiserver

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

func creation(group, version, kind string, fields map[string]any) framework.Request {
	return framework.Request{
		Verb: framework.VerbCreate, Kind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Object: &unstructured.Unstructured{Object: fields},
	}
}

// wantedBy returns the rights that one scenario needs, besides the rights that every run needs.
func wantedBy(requests ...framework.Request) []string {
	var texts []string
	for right, who := range wanted(client.BuiltIn(), []Need{{Who: "s", Requests: requests}}) {
		if len(who) > 0 && !strings.HasPrefix(right.String(), "get ") && !strings.HasPrefix(right.String(), "list ") && !strings.HasPrefix(right.String(), "patch ") && !strings.HasPrefix(right.String(), "deletecollection ") {
			texts = append(texts, right.String())
		}
	}
	return texts
}

func TestWanted(t *testing.T) {
	impersonated := creation("", "v1", "Secret", nil)
	impersonated.User = &framework.User{Name: "jane-$(id)", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"scopes": {"x"}}}
	scale := framework.Request{Verb: framework.VerbApply, Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Subresource: "scale"}
	connectRequest := framework.Request{Verb: framework.VerbConnect, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Subresource: "exec", HTTP: framework.HTTP{Method: http.MethodDelete}}
	approval := creation("certificates.k8s.io", "v1", "CertificateSigningRequest", map[string]any{"spec": map[string]any{"signerName": "example.com/s"}})
	approval.Subresource, approval.Verb = "approval", framework.VerbUpdate
	role := creation("rbac.authorization.k8s.io", "v1", "ClusterRole", map[string]any{"rules": []any{
		map[string]any{"verbs": []any{"watch"}, "apiGroups": []any{""}, "resources": []any{"pods"}, "resourceNames": []any{"a"}},
		map[string]any{"verbs": []any{"use"}, "nonResourceURLs": []any{"/x"}},
	}})
	policy := creation("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", map[string]any{"spec": map[string]any{
		"paramKind": map[string]any{"apiVersion": "v1", "kind": "Secret"},
	}})
	for name, test := range map[string]struct {
		requests []framework.Request
		want     []string
	}{
		"create":         {[]framework.Request{creation("", "v1", "Secret", nil)}, []string{"create secrets", "delete secrets", "update secrets"}},
		"impersonate":    {[]framework.Request{impersonated}, []string{"create secrets", "delete secrets", "impersonate groups g", "impersonate uids.authentication.k8s.io u", "impersonate userextras/scopes.authentication.k8s.io x", "impersonate users", "update secrets"}},
		"review":         {[]framework.Request{creation("authentication.k8s.io", "v1", "TokenReview", nil)}, []string{"create tokenreviews.authentication.k8s.io"}},
		"connect":        {[]framework.Request{connectRequest}, []string{"delete pods/exec"}},
		"role":           {[]framework.Request{role}, []string{"create clusterroles.rbac.authorization.k8s.io", "delete clusterroles.rbac.authorization.k8s.io", "update clusterroles.rbac.authorization.k8s.io", "use /x", "watch pods a"}},
		"approval":       {[]framework.Request{approval}, []string{"approve signers.certificates.k8s.io example.com/s", "update certificatesigningrequests/approval.certificates.k8s.io"}},
		"kind not known": {[]framework.Request{creation("example.com", "v1", "Widget", nil)}, nil},
		"policy":         {[]framework.Request{policy}, []string{"create validatingadmissionpolicies.admissionregistration.k8s.io", "delete validatingadmissionpolicies.admissionregistration.k8s.io", "update validatingadmissionpolicies.admissionregistration.k8s.io"}},
		"apply":          {[]framework.Request{scale}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := wantedBy(test.requests...)
			if diff := cmp.Diff(set(test.want), set(got)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func set(list []string) map[string]bool {
	out := map[string]bool{}
	for _, item := range list {
		out[item] = true
	}
	return out
}

func TestVerbOf(t *testing.T) {
	for method, want := range map[string]string{
		"": "create", http.MethodPost: "create", http.MethodGet: "get", http.MethodHead: "get",
		http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodOptions: "",
	} {
		t.Run(method, func(t *testing.T) {
			if got := verbOf(framework.Request{Verb: framework.VerbConnect, HTTP: framework.HTTP{Method: method}}); got != want {
				t.Errorf("connect with %q: got %q, want %q", method, got, want)
			}
		})
	}
	if got := verbOf(framework.Request{Verb: framework.VerbApply}); got != "patch" {
		t.Errorf("apply: got %q", got)
	}
}

func TestCheckRights(t *testing.T) {
	need := Need{Who: "a.scenario", Requests: []framework.Request{creation("", "v1", "Secret", nil)}, Metrics: true}
	if err := CheckRights(t.Context(), testserver.Config(t), []Need{need}); err != nil {
		t.Errorf("administrator: %v", err)
	}
	config := testserver.Config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: "stranger", Groups: []string{"system:authenticated"}}
	err := CheckRights(t.Context(), config, []Need{need, {Who: "b", Metrics: true}, {Who: "c", Metrics: true}})
	if !errors.Is(err, ErrRightsMissing) {
		t.Fatalf("stranger: %v, want ErrRightsMissing", err)
	}
	for _, part := range []string{"user stranger: rights are missing: ", "create secrets (a.scenario)", "get /metrics (a.scenario and 2 more)", "create namespaces,", "nothing was created", `"admissiontest rbac"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

// A run that gives users their rights needs the rights to create roles, and those in the roles.
func TestWantedGrants(t *testing.T) {
	request := creation("rbac.authorization.k8s.io", "v1", "RoleBinding", nil)
	request.User = &framework.User{Name: "jane"}
	got := wanted(client.BuiltIn(), []Need{{Who: "s", Requests: []framework.Request{request}, Grants: true}})
	for _, want := range []Right{
		{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "roles"},
		{Verb: "*", Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, {Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	} {
		if len(got[want]) == 0 {
			t.Errorf("got %v; want %s among them", got, want)
		}
	}
}

// No run needs Secrets or impersonates, unless a scenario does.
func TestWantedByEveryRun(t *testing.T) {
	got := wanted(client.BuiltIn(), nil)
	for right, who := range got {
		if len(who) > 0 || right.Resource == "secrets" || right.Verb == "impersonate" || right.Verb == "escalate" {
			t.Errorf("every run needs %s, for %v", right, who)
		}
	}
	if len(got) < 20 {
		t.Errorf("%d rights of every run", len(got))
	}
}
