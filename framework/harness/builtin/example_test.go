package builtin_test

import (
	"fmt"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/framework/harness/builtin"
	"github.com/admissiontest/admissiontest/framework/hook"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// printer is a framework.T that prints. In a test, use its *testing.T.
type printer struct{ cleanups *[]func() }

func (printer) Helper()                        {}
func (p printer) Cleanup(f func())             { *p.cleanups = append(*p.cleanups, f) }
func (printer) Logf(format string, a ...any)   { fmt.Printf(format+"\n", a...) }
func (printer) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }
func (printer) Fatalf(format string, a ...any) { fmt.Printf(format+"\n", a...) }

// A webhook, called over TLS, in the chain of an API server.
func ExampleHooks() {
	t := printer{&[]func(){}} // in a test, its *testing.T
	defer func() {
		for _, end := range *t.cleanups {
			end()
		}
	}()
	w := fakes.NewWorld(t, fakes.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}))
	hooks := builtin.NewHooks(t, w)
	hooks.Install(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "policy"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "deny.example.com",
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, map[string]hook.Script{
		"deny.example.com": {Replies: []hook.Reply{{Status: map[string]any{"code": 403, "reason": "Forbidden", "message": "not today"}}}},
	})
	h := harness.NewChain(t, harness.Chain{Plugins: builtin.Plugins()}, harness.WithWorld(w))

	result := h.Do(framework.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})).MustReject(t, metav1.StatusReasonForbidden, "not today")
	for _, call := range result.Trace.With(hooks.Calls()) {
		if call.Plugin != nil {
			fmt.Println(call.Phase, call.Plugin.Name)
		} else {
			fmt.Println("  ", call.Webhook, call.Answer)
		}
	}
	// Output:
	// mutating NamespaceLifecycle
	// mutating MutatingAdmissionPolicy
	// mutating MutatingAdmissionWebhook
	// validating ValidatingAdmissionPolicy
	// validating ValidatingAdmissionWebhook
	//    deny.example.com denied
}
