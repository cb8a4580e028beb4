package apiserver

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

func creation(group, version, kind string, fields map[string]any) framework.Request {
	return framework.Request{
		Verb: framework.VerbCreate, Kind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
		Object: &unstructured.Unstructured{Object: fields},
	}
}

func TestWanted(t *testing.T) {
	impersonated := creation("", "v1", "Secret", nil)
	impersonated.User = &framework.User{Name: "jane-$(id)", Groups: []string{"g"}}
	scale := framework.Request{Verb: framework.VerbApply, Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Subresource: "scale"}
	connect := framework.Request{Verb: framework.VerbConnect, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Subresource: "exec", HTTP: framework.HTTP{Method: http.MethodHead}}
	stored := func(resource string, more ...string) []string {
		for _, verb := range managed(true) {
			more = append(more, verb+" "+resource)
		}
		return more
	}
	for name, test := range map[string]struct {
		request framework.Request
		want    []string
	}{
		"create":         {creation("", "v1", "Secret", nil), stored("secrets")},
		"impersonate":    {impersonated, stored("secrets", "impersonate groups g", "impersonate users")},
		"review":         {creation("authentication.k8s.io", "v1", "TokenReview", nil), []string{"create tokenreviews.authentication.k8s.io"}},
		"kind not known": {creation("example.com", "v1", "Widget", nil), nil},
		"connect":        {connect, []string{"get pods/exec"}},
		"apply":          {scale, []string{"patch deployments/scale.apps"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for right, who := range Rights([]Need{{Who: "s", Requests: []framework.Request{test.request}}}) {
				if who != "" {
					got = append(got, right.String())
				}
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestCheckRights(t *testing.T) {
	need := Need{Who: "a.scenario", Requests: []framework.Request{creation("", "v1", "Secret", nil)}, Metrics: true}
	if err := CheckRights(t.Context(), testserver.Config(t), []Need{need}); err != nil {
		t.Errorf("administrator: %v", err)
	}
	config := testserver.Config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: "stranger", Groups: []string{"system:authenticated"}}
	err := CheckRights(t.Context(), config, []Need{need, {Who: "b", Metrics: true}})
	if !errors.Is(err, ErrRightsMissing) {
		t.Fatalf("stranger: %v, want ErrRightsMissing", err)
	}
	for _, part := range []string{"user stranger: rights are missing: ", "create secrets (a.scenario)", "get /metrics (a.scenario)", "create namespaces,", "nothing was created", `"admissiontest rbac"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}

// No run needs Secrets or impersonates, unless a scenario does.
func TestWantedByEveryRun(t *testing.T) {
	got := Rights(nil)
	for right, who := range got {
		if who != "" || right.Resource == "secrets" || right.Verb == "impersonate" || right.Verb == "escalate" {
			t.Errorf("every run needs %s, for %v", right, who)
		}
	}
	if len(got) < 20 {
		t.Errorf("%d rights of every run", len(got))
	}
}
