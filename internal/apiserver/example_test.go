package apiserver_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// A webhook that denies ConfigMaps, on an API server that envtest starts. The Hook server of
// the Target answers the call.
func Example() {
	if err := denyConfigMaps(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 403 admission webhook "deny.example.com" denied the request: not today
	// validating call of deny.example.com, observed: true
}

func denyConfigMaps(ctx context.Context) error {
	found, err := binaries.Ensure(ctx, binaries.Options{})
	if err != nil {
		return err
	}
	server, err := envtest.Start(ctx, envtest.Options{BinaryAssetsDirectory: found.Dir})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	target, err := apiserver.New(ctx, apiserver.Options{Config: server.Config, Disposable: true})
	if err != nil {
		return err
	}
	defer func() { _ = target.Close(ctx) }()
	id := "at-" + target.RunID() + "-example" // also the name of its namespace
	sandbox, err := target.NewSandbox(ctx, apiserver.SandboxOptions{ID: id})
	if err != nil {
		return err
	}

	configuration := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "deny"},
		"webhooks": []any{map[string]any{
			"name": "deny.example.com",
			"rules": []any{map[string]any{
				"operations": []any{"CREATE"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
			}},
		}},
	}
	deny := hook.Script{Replies: []hook.Reply{{Status: map[string]any{"code": int64(403), "message": "not today"}}}}
	if err := sandbox.Install(ctx, configuration, map[string]hook.Script{"deny.example.com": deny}); err != nil {
		return err
	}
	if err := target.WaitUntilEffective(ctx, []map[string]any{configuration}); err != nil {
		return err
	}
	result, err := sandbox.Do(ctx, framework.Create(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: id},
	}))
	if err != nil {
		return err
	}
	fmt.Println(result.Status.Code, result.Status.Message)
	for _, call := range result.Trace {
		fmt.Printf("%s call of %s, observed: %t\n", call.Phase, call.Webhook, call.Observed)
	}
	return nil
}
