package apiserver

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/internal/testserver"
)

func TestRequireRights(t *testing.T) {
	if err := RequireRights(t.Context(), testserver.Config(t), RunRights()); err != nil {
		t.Errorf("administrator: %v", err)
	}
	config := testserver.Config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: "stranger", Groups: []string{"system:authenticated"}}
	err := RequireRights(t.Context(), config, append(RunRights(), Right{Verb: "get", Path: "/metrics"}, Right{Verb: "get", Path: "/version"}))
	if !errors.Is(err, ErrRightsMissing) {
		t.Fatalf("stranger: %v, want ErrRightsMissing", err)
	}
	for _, part := range []string{"user stranger: rights are missing: ", "get /metrics;", "create namespaces,", "nothing was created", `"admissiontest rbac"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}
