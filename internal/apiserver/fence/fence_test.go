package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

// fences returns the fences of a run with its own Hook server.
func fences(t *testing.T, run string, config *rest.Config, options hook.Options) *Fences {
	t.Helper()
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	hooks, err := hook.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	installer := &install.Installer{
		Client: c, Hooks: hooks, Run: run, ClientConfig: install.URLClientConfig, HookAddress: hooks.Address(),
	}
	made := &Fences{Client: c, Install: installer, HooksErr: func() error { return nil }, Limit: 30 * time.Second}
	t.Cleanup(func() {
		if made.scope != nil {
			if err := installer.Uninstall(context.WithoutCancel(t.Context()), made.scope); err != nil {
				t.Error(err)
			}
		}
	})
	return made
}

func all() Kinds {
	return Kinds{MutatingWebhooks: true, ValidatingWebhooks: true, ValidatingPolicies: true, MutatingPolicies: true}
}

func TestWait(t *testing.T) {
	f := fences(t, "wait", testserver.Config(t), hook.Options{})
	if err := f.Wait(t.Context(), Kinds{}); err != nil || f.scope != nil {
		t.Errorf("nothing to wait for: %v, namespace %v", err, f.scope)
	}
	for range 2 {
		if err := f.Wait(t.Context(), all()); err != nil {
			t.Fatal(err)
		}
	}
}

// The fence waits for what was written before: a denying policy and webhook are
// effective when Wait returns.
func TestWaitIsEnough(t *testing.T) {
	f := fences(t, "enough", testserver.Config(t), hook.Options{})
	scope, err := f.Install.NewScope(t.Context(), "at-enough-001", hook.Conversion{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Install.Uninstall(context.WithoutCancel(t.Context()), scope); err != nil {
			t.Error(err)
		}
	})
	denied := false
	manifests := map[string][]map[string]any{
		"validatingadmissionpolicy": {
			{"apiVersion": "admissionregistration.k8s.io/v1", "kind": install.KindValidatingPolicy, "metadata": map[string]any{"name": "p"}, "spec": map[string]any{
				"matchConstraints": map[string]any{"resourceRules": ProbeRules()}, "validations": []any{map[string]any{"expression": "false"}},
			}},
			{"apiVersion": "admissionregistration.k8s.io/v1", "kind": install.KindValidatingBinding, "metadata": map[string]any{"name": "p"}, "spec": map[string]any{
				"policyName": "p", "validationActions": []any{"Deny"},
			}},
		},
		"webhook": {{"apiVersion": "admissionregistration.k8s.io/v1", "kind": install.KindValidatingWebhooks, "metadata": map[string]any{"name": "w"}, "webhooks": []any{
			map[string]any{"name": "w.example.com", "rules": ProbeRules()},
		}}},
	}
	for name, list := range manifests {
		t.Run(name, func(t *testing.T) {
			for _, manifest := range list {
				if _, err := f.Install.InstallAdmission(t.Context(), scope, manifest, map[string]hook.Script{"w.example.com": {Replies: []hook.Reply{{Allowed: &denied}}}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Wait(t.Context(), KindsOf(list)); err != nil {
				t.Fatal(err)
			}
			got, err := f.Client.Send(t.Context(), Probe(scope.ID))
			if err != nil || got.Allowed() {
				t.Errorf("after the fence the request was allowed: %v %v", got.Status, err)
			}
			if err := f.Install.Uninstall(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
			if err := f.Wait(t.Context(), KindsOf(list)); err != nil {
				t.Fatal(err)
			}
			if got, err := f.Client.Send(t.Context(), Probe(scope.ID)); err != nil || !got.Allowed() {
				t.Errorf("after its removal and the fence the request was refused: %v %v", got.Status, err)
			}
		})
	}
}

// After a change of the labels of a namespace, the API server has received it when a sentinel selects
// the label that the namespace of the fences got after it.
func TestWaitForNamespaces(t *testing.T) {
	f := fences(t, "namespaces", testserver.Config(t), hook.Options{})
	changed := []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kube-public"}}}
	if kinds := KindsOf(changed); kinds != (Kinds{Namespaces: true}) {
		t.Errorf("got kinds %+v", kinds)
	}
	if err := f.Wait(t.Context(), KindsOf(changed)); err != nil {
		t.Error(err)
	}
	current := &fence{scope: f.scope, nonce: "n9", label: "a-label", kinds: Kinds{ValidatingWebhooks: true}}
	webhooks, _ := current.sentinels()[0]["webhooks"].([]any)
	if key, _, _ := unstructured.NestedSlice(webhooks[0].(map[string]any), "namespaceSelector", "matchExpressions"); len(key) != 1 || key[0].(map[string]any)["key"] != "a-label" {
		t.Errorf("the sentinel selects %v, want the label", key)
	}
}

// A Hook server that the API server cannot call is not a slow API server.
func TestWaitUnreachableHooks(t *testing.T) {
	// The Hooks listen on one loopback address and advertise another.
	f := fences(t, "unreachable", testserver.Config(t), hook.Options{Address: "127.0.0.1:0", AdvertiseHost: "127.0.0.2"})
	err := f.Wait(t.Context(), Kinds{ValidatingWebhooks: true})
	if err == nil || errors.Is(err, framework.ErrTimeout) || !strings.Contains(err.Error(), "cannot call the Hook server") {
		t.Errorf("got %v, want an error that the API server cannot call the Hook server", err)
	}
}

// A dry-run request that is refused for some time will be refused again, unless the API server has too much to do.
func TestRefused(t *testing.T) {
	sentinel := (&fence{nonce: "n1"}).webhook(framework.Validating)
	for message, want := range map[string]string{
		`failed calling webhook "` + sentinel + `": no`:                        "cannot call the Hook server",
		`failed calling webhook "` + sentinel + `": context deadline exceeded`: "",
		`failed calling webhook "their.example.com": no`:                       "refused a dry-run request",
		`namespaces "at-a" not found`:                                          "refused a dry-run request",
		`502 bad gateway`:                                                      "",
	} {
		t.Run(message, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := framework.Result{}
				answer.Status.Code, answer.Status.Message = 403, message
				_, _ = fmt.Sscan(message, &answer.Status.Code) // others have none
				var refusals refusals
				before := refusals.note(answer)
				time.Sleep(refusedLimit + 1) //nolint:forbidigo // in a bubble of synctest
				after := refusals.note(answer)
				if before != nil || (after == nil) != (want == "") || after != nil && !strings.Contains(after.Error(), want) || errors.As(after, new(apierrors.APIStatus)) != (want == "refused a dry-run request") {
					t.Errorf("got %v, and then %v, want %q", before, after, want)
				}
			})
		})
	}
}

// A wait that ends early says what is missing.
func TestWaitErrors(t *testing.T) {
	f := fences(t, "errors", testserver.Config(t), hook.Options{})
	broken := errors.New("the relay is gone")
	f.HooksErr = func() error { return broken }
	if err := f.Wait(t.Context(), Kinds{MutatingWebhooks: true}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	current := &fence{scope: f.scope, nonce: "n9", kinds: all()}
	missing := current.missing(framework.Result{}, nil)
	if !strings.HasPrefix(missing, "all: the API server refused the dry-run request") {
		t.Errorf("refused: missing %q", missing)
	}
	allowed := framework.Result{Warnings: []string{current.warning() + " and more"}}
	allowed.Status.Code = 201
	call := func(phase framework.Phase, name string) framework.Call {
		return framework.Call{Webhook: current.webhook(phase), Review: map[string]any{"request": map[string]any{"object": map[string]any{"metadata": map[string]any{"name": name}}}}}
	}
	calls := framework.Trace{call(framework.Mutating, current.probe()), call(framework.Validating, "of another fence")}
	if got, want := current.missing(allowed, calls), "fence validating n9, fence policy n9, fence mutating policy"; got != want {
		t.Errorf("missing %q, want %q", got, want)
	}
}
