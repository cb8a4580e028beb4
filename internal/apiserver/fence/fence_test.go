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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// of returns parameters of a kind in a namespace.
func of(t *testing.T, f *Fences, policy string, kind schema.GroupVersionKind, namespace string) install.Param {
	t.Helper()
	res, err := f.Client.Resources.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	return install.Param{Policy: policy, Kind: kind, Resource: res, Namespace: namespace}
}

func policyPlugins() []string {
	return []string{install.KindValidatingPolicy, install.KindMutatingPolicy}
}

// The wait proves that both plugins see a parameter, its change, and its end.
func TestWaitForParams(t *testing.T) {
	f := fences(t, "params", testserver.Own(t), hook.Options{}) // at its end, the API server stops reading the kind
	scope, err := f.Install.NewScope(t.Context(), "at-params-001", hook.Conversion{})
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	var all []install.Param
	for _, policy := range policyPlugins() {
		all = append(all, of(t, f, policy, kind, scope.ID))
	}
	object := client.Object{Resource: all[0].Resource, Namespace: scope.ID, Name: "limit"}
	manifest := func(value string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "limit"}, "data": map[string]any{"value": value}}
	}
	many := func() (err error) {
		for n := range partSize + 1 {
			one := object
			one.Name = fmt.Sprintf("many%d", n)
			_, failed := f.Client.Create(t.Context(), one, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": one.Name}})
			err = errors.Join(err, failed)
		}
		return err
	}
	for step, write := range []func() error{
		func() error { return nil },
		func() error { _, err := f.Client.Create(t.Context(), object, manifest("a")); return err },
		func() error { _, err := f.Client.Update(t.Context(), object, manifest("b")); return err },
		func() error { return f.Client.Delete(t.Context(), object) },
		func() error { _, err := f.Client.Create(t.Context(), object, manifest("c")); return err },
		many,
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := f.WaitForParams(t.Context(), all); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
}

// What the plugins answer is compared with what there is.
func TestUnseen(t *testing.T) {
	t.Parallel()
	const policy = install.KindValidatingPolicy
	p := install.Param{Policy: policy, Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Limit"}}
	one := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "limit", UID: "u", ResourceVersion: "7"}}
	const warning = "Validation failed for ValidatingAdmissionPolicy 'a' with binding 'b': param u "
	const denied = "leases \"a\" is forbidden: ValidatingAdmissionPolicy 'at-x-fence-%s' with binding 'b' denied request: failed to configure policy: %s"
	for name, test := range map[string]struct {
		warnings  []string
		annotated string
		refused   string
		current   []metav1.PartialObjectMetadata
		want      string
	}{
		"none":                {want: ""},
		"seen":                {warnings: []string{"other", warning + "7"}, current: []metav1.PartialObjectMetadata{one}},
		"seen later":          {annotated: "10", current: []metav1.PartialObjectMetadata{one}},
		"not seen":            {warnings: []string{"other"}, current: []metav1.PartialObjectMetadata{one}, want: "a " + policy + " does not see the parameter Limit limit"},
		"later, not a number": {annotated: "x", current: []metav1.PartialObjectMetadata{one}, want: "a " + policy + " sees an old version of the parameter Limit limit"},
		"old":                 {annotated: "6", current: []metav1.PartialObjectMetadata{one}, want: "a " + policy + " sees an old version of the parameter Limit limit"},
		"gone":                {warnings: []string{warning + "7"}, want: "a " + policy + " still has a parameter of kind Limit, which does not exist any more"},
		"refused by another":  {refused: fmt.Sprintf(denied, "other", "no params found"), warnings: []string{warning + "7"}, current: []metav1.PartialObjectMetadata{one}},
		"kind of another":     {refused: fmt.Sprintf(denied, "other", kindUnknown), want: "a " + policy + " cannot read parameters of kind Limit: "},
		"own kind":            {refused: fmt.Sprintf(denied, install.ReaderPrefix+"1", kindUnknown), want: "a " + policy + " cannot read parameters of kind Limit: failed to configure policy: " + kindUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := framework.Result{Warnings: test.warnings}
			answer.Status.Code, answer.Status.Message = 201, test.refused
			if test.refused != "" {
				answer.Status.Code = 422
			}
			answer.Object = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{paramAnnotation + "u": test.annotated}}}}
			if test.annotated == "" {
				answer.Object = nil
			}
			if got := unseen(p, answer, test.current); !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if why := whyUnseen(kindUnknown); !strings.Contains(why, "kubernetes/kubernetes#124237") {
		t.Errorf("got %q, want the issue", why)
	}
}

// After the last policy with a built-in paramKind is gone, the API server never reads that kind again. The
// wait says so, and what is known about it.
func TestParamsOfAStoppedInformer(t *testing.T) {
	f := fences(t, "stopped", testserver.Own(t), hook.Options{})
	scope, err := f.Install.NewScope(t.Context(), "at-stopped-001", hook.Conversion{})
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "PodTemplate"} // kube-apiserver itself does not read it
	p := of(t, f, install.KindValidatingPolicy, kind, scope.ID)
	readers := func(f *Fences) error { return f.WaitForParams(t.Context(), []install.Param{p}) }
	if err := readers(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Install.Uninstall(t.Context(), f.scope); err != nil {
		t.Fatal(err)
	}
	if err := f.Wait(t.Context(), Kinds{ValidatingPolicies: true}); err != nil {
		t.Fatal(err)
	}
	again := &Fences{Client: f.Client, Install: f.Install, HooksErr: f.HooksErr, Limit: f.Limit, scope: f.scope}
	again.count.Store(100)
	if err := readers(again); err != nil {
		t.Fatalf("there is no parameter, and none is seen: %v", err)
	}
	template := map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": map[string]any{"name": "limit"}, "template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
	}}
	if _, err := f.Client.Create(t.Context(), client.Object{Resource: p.Resource, Namespace: p.Namespace, Name: "limit"}, template); err != nil {
		t.Fatal(err)
	}
	err = readers(again)
	want := "timed out after " + paramLimit.String() + ": a ValidatingAdmissionPolicy does not see the parameter PodTemplate limit: "
	if !errors.Is(err, framework.ErrTimeout) || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "kubernetes/kubernetes#130887") {
		t.Errorf("got %v, want %q and the issue", err, want)
	}
}
