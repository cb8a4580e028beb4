package ready_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/ready"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

type fields = map[string]any

// bench has an API server, and a Hook that it can call.
type bench struct {
	*testing.T
	config *rest.Config
	client dynamic.Interface
	hooks  *hook.Server
	to     hook.ClientConfig
	calls  *hook.Recording
}

func newBench(t *testing.T, replies ...hook.Reply) *bench {
	t.Helper()
	b := &bench{T: t, config: testserver.Config(t)}
	var err error
	if b.client, err = dynamic.NewForConfig(b.config); err != nil {
		t.Fatal(err)
	}
	if b.hooks, err = hook.Start(t.Context(), hook.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.hooks.Close() })
	b.to, err = b.hooks.Register(hook.Hook{Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Validating, Script: hook.Script{Replies: replies}})
	if err != nil {
		t.Fatal(err)
	}
	b.calls = b.hooks.Record("o")
	t.Cleanup(b.calls.Stop)
	return b
}

// in returns the objects of a kind, cluster-scoped or in namespace default.
func (b *bench) in(kind string) dynamic.ResourceInterface {
	switch kind {
	case "ConfigMap", "EndpointSlice":
		group := map[string]string{"EndpointSlice": "discovery.k8s.io"}[kind]
		return b.client.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"}).Namespace("default")
	case "Namespace":
		return b.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	}
	resource := strings.ToLower(strings.TrimSuffix(kind+"s", "ys") + map[bool]string{true: "ies"}[strings.HasSuffix(kind, "y")])
	return b.client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource})
}

// create creates objects from manifests.
func (b *bench) create(manifests ...fields) {
	b.Helper()
	for _, manifest := range manifests {
		if _, err := b.tryCreate(manifest); err != nil {
			b.Fatal(err)
		}
	}
}

// tryCreate sends the creation of an object.
func (b *bench) tryCreate(manifest fields) (*unstructured.Unstructured, error) {
	b.Helper()
	text, err := json.Marshal(manifest) // then values have the types of JSON
	object := &unstructured.Unstructured{}
	if err = errors.Join(err, object.UnmarshalJSON(text)); err != nil {
		b.Fatal(err)
	}
	return b.in(object.GetKind()).Create(b.Context(), object, metav1.CreateOptions{})
}

// remove deletes objects.
func (b *bench) remove(manifests ...fields) {
	b.Helper()
	for _, manifest := range manifests {
		if err := b.in(manifest["kind"].(string)).Delete(b.Context(), manifest["metadata"].(fields)["name"].(string), metav1.DeleteOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// wantCalled fails the test if a real request is no call.
func (b *bench) wantCalled() {
	b.Helper()
	before := len(b.calls.Calls())
	_, err := b.tryCreate(configMap(fmt.Sprintf("real-%d", before)))
	if len(b.calls.Calls()) == before {
		b.Errorf("a real request after Wait was no call: %v", err)
	}
}

// wait calls Wait, until a line about its progress has a string, if that is not empty.
func (b *bench) wait(until string, options ready.Options) error {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	progress := options.Progress
	options.Progress = func(line string) {
		if progress != nil {
			progress(line)
		}
		if until != "" && strings.Contains(line, until) {
			cancel()
		}
	}
	return ready.Wait(ctx, b.config, options)
}

const admission = "admissionregistration.k8s.io/v1"

func rules(operations string) []any {
	return []any{fields{"operations": strings.Split(operations, ","), "apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"configmaps"}}}
}

// webhook returns a configuration with a webhook that has the name of the test, and some other fields.
func (b *bench) webhook(name string, other fields) fields {
	w := fields{
		"name": strings.ToLower(strings.NewReplacer("/", ".", "_", "-", "Test", "").Replace(b.Name())) + ".example.com", "sideEffects": "None", "admissionReviewVersions": []string{"v1"},
		"rules": rules("*"), "clientConfig": fields{"url": b.to.URL, "caBundle": b.to.CABundle}, "timeoutSeconds": 1,
	}
	for field, value := range other {
		w[field] = value
	}
	return fields{"apiVersion": admission, "kind": "ValidatingWebhookConfiguration", "metadata": fields{"name": name}, "webhooks": []any{w}}
}

// policy returns a policy with a binding.
func policy(name, expression string, action ...string) []fields {
	return []fields{
		{"apiVersion": admission, "kind": "ValidatingAdmissionPolicy", "metadata": fields{"name": name}, "spec": fields{
			"matchConstraints": fields{"resourceRules": rules("CREATE,UPDATE")}, "validations": []any{fields{"expression": expression}},
		}},
		{"apiVersion": admission, "kind": "ValidatingAdmissionPolicyBinding", "metadata": fields{"name": name}, "spec": fields{"policyName": name, "validationActions": action}},
	}
}

func configMap(name string) fields {
	return fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": name}}
}

// wantError fails the test if Wait has no Error with a part of its reason.
func (b *bench) wantError(options ready.Options, part string, unknown bool) {
	b.Helper()
	err := b.wait(part, options)
	var why *ready.Error
	if !errors.As(err, &why) || !strings.Contains(why.Reason, part) || why.Unknown != unknown {
		b.Errorf("got %v, want a reason with %q, Unknown %t", err, part, unknown)
	}
}

// Wait says why a webhook is not called, and returns when it is: then a real request is a call.
func TestWebhook(t *testing.T) {
	to := func(client fields) func(*bench) fields {
		return func(*bench) fields { return fields{"clientConfig": client} }
	}
	with := func(name string, value any) func(*bench) fields {
		return func(*bench) fields { return fields{name: value} }
	}
	for name, test := range map[string]struct {
		replies []hook.Reply
		with    func(*bench) fields // fields of the webhook
		want    string              // a part of the reason
		unknown bool
	}{
		"refused": {with: to(fields{"url": "https://127.0.0.1:1"}), want: "connection refused"},
		"ignored": {with: func(*bench) fields {
			return fields{"failurePolicy": "Ignore", "clientConfig": fields{"url": "https://127.0.0.1:1"}}
		}, want: "Ignore hides"},
		"no-ca":      {with: func(b *bench) fields { return fields{"clientConfig": fields{"url": b.to.URL}} }, want: "x509: "},
		"no-service": {with: to(fields{"service": fields{"namespace": "default", "name": "none"}}), want: `service "none" not found`},
		"slow":       {replies: []hook.Reply{{}, {Delay: hook.Duration(5 * time.Second)}, {Delay: hook.Duration(5 * time.Second)}, {}}, want: "deadline exceeded"},
		"error":      {replies: []hook.Reply{{Fault: hook.HTTP500}, {Fault: hook.HTTP500}, {}}},
		"denies":     {replies: []hook.Reply{{Status: fields{"code": 403}}}},
		"selects": {with: func(*bench) fields {
			return fields{"objectSelector": fields{"matchLabels": fields{"a": "b"}}, "namespaceSelector": fields{"matchLabels": fields{"kubernetes.io/metadata.name": "selected"}}}
		}},
		"no-dry-run":   {with: with("sideEffects", "NoneOnDryRun")},
		"no-namespace": {with: with("namespaceSelector", fields{"matchLabels": fields{"no": "such"}}), want: "no namespace matches", unknown: true},
		"no-creation":  {with: with("rules", rules("DELETE")), want: "the rules match no object", unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.replies...)
			manifest := b.webhook("guard", nil)
			if test.with != nil {
				manifest = b.webhook("guard", test.with(b))
			}
			b.create(manifest, fields{"apiVersion": "v1", "kind": "Namespace", "metadata": fields{"name": "selected"}})
			options := ready.Options{Webhooks: []string{"guard"}}
			if test.unknown {
				b.wantError(options, test.want, true)
				return
			}
			if test.want != "" {
				b.wantError(options, test.want, false)
				b.remove(manifest)
				b.create(b.webhook("guard", nil))
			}
			if err := b.wait("", options); err != nil {
				t.Fatal(err)
			}
			if test.with == nil || test.want != "" {
				b.wantCalled()
			}
		})
	}
}

// A webhook whose process begins to listen later.
func TestServesLater(t *testing.T) {
	b := newBench(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	of, err := url.Parse(b.to.URL)
	if err != nil {
		t.Fatal(err)
	}
	b.create(b.webhook("guard", fields{"clientConfig": fields{"url": strings.Replace(b.to.URL, of.Host, address, 1), "caBundle": b.to.CABundle}}))
	var lines []string
	err = b.wait("", ready.Options{Webhooks: []string{"guard"}, Progress: func(line string) {
		if lines = append(lines, line); listener != nil && strings.Contains(line, "connection refused") {
			listener = nil
			b.forward(address, of.Host)
		}
	}})
	if err != nil || len(lines) == 0 {
		t.Fatalf("got %v after %q", err, lines)
	}
	b.wantCalled()
}

// forward forwards connections from an address to another one.
func (b *bench) forward(from, to string) {
	listener, err := net.Listen("tcp", from)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
}

// rounds is how often something is created and waited for. ADMISSIONTEST_READY_ROUNDS changes it.
func rounds() int {
	n, _ := strconv.Atoi(os.Getenv("ADMISSIONTEST_READY_ROUNDS"))
	return cmp.Or(n, 4)
}

// Right after Wait, a policy denies, also if the API server still uses a removed one of its name: that denies the dry runs too, and it
// never denied a request before.
func TestPolicyIsNeverEarly(t *testing.T) {
	b := newBench(t)
	for i := range rounds() {
		name, after := fmt.Sprintf("owners-%d", i), fmt.Sprintf("after-%d", i)
		if i%2 == 1 {
			earlier := append(policy(after, "has(object.secrets)", "Deny"), policy(name, "has(object.data)", "Deny")...)
			earlier[0]["spec"].(fields)["matchConstraints"].(fields)["resourceRules"].([]any)[0].(fields)["resources"] = []string{"serviceaccounts"}
			slices.Reverse(earlier) // so that it is effective when the other one is
			b.create(earlier...)
			if err := b.wait("", ready.Options{Policies: []string{after}}); err != nil {
				t.Fatal(err)
			}
			b.remove(earlier...)
		}
		manifests := policy(name, "has(object.data) && has(object.immutable)", "Deny")
		b.create(manifests...)
		if err := b.wait("", ready.Options{Policies: []string{name}}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.tryCreate(fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": name}, "data": fields{"a": "b"}}); err == nil {
			t.Errorf("policy %d did not deny a request after Wait", i)
		}
		b.remove(manifests...)
	}
}

// Right after Wait, a webhook is called.
func TestWebhookIsNeverEarly(t *testing.T) {
	b := newBench(t)
	for i := range rounds() {
		manifest := b.webhook("guard", fields{"name": fmt.Sprintf("w%d.guard.example.com", i/2)})
		b.create(manifest)
		if err := b.wait("", ready.Options{Webhooks: []string{"guard"}}); err != nil {
			t.Fatal(err)
		}
		b.wantCalled()
		b.remove(manifest)
	}
}

// What shows whether policies are evaluated.
func TestPolicies(t *testing.T) {
	mutating := policy("p", "true")
	for _, manifest := range mutating {
		manifest["kind"] = strings.Replace(manifest["kind"].(string), "Validating", "Mutating", 1)
		delete(manifest["spec"].(fields), "validationActions")
	}
	mutating[0]["spec"] = fields{
		"matchConstraints": fields{"resourceRules": rules("CREATE")}, "reinvocationPolicy": "Never",
		"mutations": []any{fields{"patchType": "ApplyConfiguration", "applyConfiguration": fields{"expression": `Object{metadata: Object.metadata{labels: {"a": "b"}}}`}}},
	}
	selecting := policy("p", "false", "Deny")
	selecting[1]["spec"].(fields)["matchResources"] = fields{"namespaceSelector": fields{"matchLabels": fields{"kubernetes.io/metadata.name": "kube-public"}}}
	for name, test := range map[string]struct {
		manifests []fields
		objects   []fields
		want      string
		unknown   bool
	}{
		"warns":        {manifests: policy("p", `!has(object.data) || object.data.size() < 3 || object.data["a"] != "x"`, "Warn"), objects: []fields{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": "given"}, "data": fields{"a": "x", "b": "x", "c": "x"}}}},
		"audits":       {manifests: policy("p", `object.metadata.name == "x"`, "Audit")},
		"denies name":  {manifests: policy("p", `!has(object.immutable) || !object.immutable`, "Deny")},
		"mutates":      {manifests: mutating},
		"never denies": {manifests: policy("p", "true", "Deny"), want: "let pass each object", unknown: true},
		"no binding":   {manifests: policy("p", "false", "Deny")[:1], want: "no such policy with a binding"},
		"none":         {want: "no such policy with a binding"},
		"selects":      {manifests: selecting},
		"invalid":      {manifests: policy("p", "false", "Deny"), objects: []fields{configMap("A b")}, want: "each object invalid", unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.create(test.manifests...)
			options := ready.Options{Policies: []string{"p"}, Objects: test.objects}
			if test.want != "" {
				b.wantError(options, test.want, test.unknown)
			} else if err := b.wait("", options); err != nil {
				t.Error(err)
			}
		})
	}
}

// Without the right to read metrics, what only they show is Unknown. A denial by a policy shows in the response.
func TestRights(t *testing.T) {
	b := newBench(t)
	b.create(append(policy("p", "false", "Deny"), b.webhook("guard", fields{"rules": rules("CREATE"), "matchConditions": []any{fields{"name": "a", "expression": `object.metadata.name != "b"`}}}))...)
	b.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/metrics" {
				return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
			}
			return next.RoundTrip(r)
		})
	})
	if err := b.wait("", ready.Options{Policies: []string{"p"}}); err != nil {
		t.Error(err)
	}
	b.remove(policy("p", "false")...)
	b.wantError(ready.Options{Webhooks: []string{"guard"}}, "/metrics", true)
}

// Two webhooks with one name cannot be told apart. What stands for several API servers is several connections.
func TestAmbiguous(t *testing.T) {
	b := newBench(t)
	b.create(b.webhook("guard", nil))
	b.create(fields{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": fields{"name": "second", "labels": fields{"kubernetes.io/service-name": "kubernetes"}},
		"addressType": "IPv4", "endpoints": []any{fields{"addresses": []string{"192.0.2.7"}}, fields{"addresses": []string{"192.0.2.8"}}},
	})
	if err := b.wait("", ready.Options{Webhooks: []string{"guard"}}); err != nil || len(b.calls.Calls()) < 20 {
		t.Errorf("got %v and %d calls, want one for each of 20 connections", err, len(b.calls.Calls()))
	}
	b.create(b.webhook("second", nil))
	b.wantError(ready.Options{Webhooks: []string{"guard"}}, "another configuration", true)
	if err := ready.Wait(t.Context(), b.config, ready.Options{}); err == nil {
		t.Error("Wait without names returned nil")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
