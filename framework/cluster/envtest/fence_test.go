package envtest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// An API server that cannot reach the Hooks is told apart from one that is slow.
func TestUnreachableHooks(t *testing.T) {
	server := start(t)
	// The Hooks listen at one address of loopback and say that they are at another.
	hooks, err := hook.Start(t.Context(), hook.Options{Address: "127.0.0.1:0", AdvertiseHost: "127.0.0.2"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hooks.Close() }()
	on, err := cluster.New(t.Context(), cluster.Options{Config: server.Config, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	manifest := map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
	err = on.Settle(t.Context(), []map[string]any{manifest})
	if err == nil || errors.Is(err, framework.ErrNotSettled) || !strings.Contains(err.Error(), "does not get through") {
		t.Errorf("settle: got %v, want an error that says that the Hooks are out of reach", err)
	}
}
