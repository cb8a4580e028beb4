package rules_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/rules"
)

// TestHostileHandlers: whatever a handler does, WH-PROTO-3 fails with a message about it, no rule passes except the
// rules about what it refuses, and all rules return soon if it hangs.
func TestHostileHandlers(t *testing.T) {
	megabyte := make([]byte, 1<<20)
	large := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"warnings":[%q]}}`, strings.Repeat("a", 4<<20))
	for name, test := range map[string]struct {
		serve func(http.ResponseWriter, *http.Request)
		want  string
	}{
		"panics":      {func(http.ResponseWriter, *http.Request) { panic("out of coffee") }, "the handler panicked: out of coffee"},
		"hangs":       {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "not answered within 3s"},
		"never reads": {func(http.ResponseWriter, *http.Request) {}, `body "" is not JSON`},
		"10 MiB":      {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 10<<20)) }, "more than 3 MiB"},
		"4 MiB":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) }, "more than 3 MiB"},
		"endless": {func(w http.ResponseWriter, _ *http.Request) {
			for written := 0; written < 1<<26; written += len(megabyte) {
				if _, err := w.Write(megabyte); err != nil {
					return
				}
			}
			t.Error("an answer of 64 MiB is kept")
		}, "more than 3 MiB"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "HTTP status 302"},
		"two documents": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"response":{"allowed":true}}{}`))
		}, "more than one JSON document"},
		"no response": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) }, "has no response"},
	} {
		t.Run(name, func(t *testing.T) {
			s := soundSubject(fault{})
			s.Handler = http.HandlerFunc(test.serve)
			timeout := int32(1)
			s.Configurations[0].Object.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks[0].TimeoutSeconds = &timeout
			started := time.Now()
			for _, each := range checkAll(t, s) {
				switch id := each.Rule.ID; {
				case id == "WH-PROTO-3":
					if each.Verdict != framework.Fail || !strings.Contains(each.Reason, test.want) {
						t.Errorf("%s: got %s: %s, want fail with %q", each.Rule, each.Verdict, each.Reason, test.want)
					}
				case id == "WH-ROBUST-2", id == "WH-SEC-3": // they are about what the webhook refuses
				case each.Verdict == framework.Pass:
					t.Errorf("%s: pass", each.Rule)
				}
			}
			if took := time.Since(started); name == "hangs" && took > time.Minute {
				t.Errorf("it took %s, want less than a minute: after a call without an answer the next ones wait less", took)
			}
		})
	}
}

// TestBadSubjects: each mistake has a message, and what can be checked is checked.
func TestBadSubjects(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) []check.Manifest {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return []check.Manifest{{File: file}}
	}
	configuration := func(version, webhooks string) []check.Manifest {
		return write("configuration.yaml", "apiVersion: admissionregistration.k8s.io/"+version+"\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks: "+webhooks)
	}
	for name, test := range map[string]struct {
		change func(*check.Subject)
		want   string
	}{
		"no handler":          {func(s *check.Subject) { s.Handler = nil }, "neither Handler nor URL is set"},
		"both":                {func(s *check.Subject) { s.URL = "https://127.0.0.1" }, "both Handler and URL are set"},
		"plain http":          {func(s *check.Subject) { s.Handler, s.URL = nil, "http://127.0.0.1" }, "want an address such as https://127.0.0.1:9443"},
		"no CA":               {func(s *check.Subject) { s.Handler, s.URL, s.CA = nil, "https://127.0.0.1", []byte("x") }, "CA has no certificate"},
		"no samples":          {func(s *check.Subject) { s.Allow, s.Reject = nil, nil }, "it has no samples"},
		"no webhooks":         {func(s *check.Subject) { s.Configurations = configuration("v1", "[]") }, "ValidatingWebhookConfiguration a has no webhooks"},
		"v1beta1":             {func(s *check.Subject) { s.Configurations = configuration("v1beta1", "[]") }, "want admissionregistration.k8s.io/v1, the only version since"},
		"caBundle no base64":  {func(s *check.Subject) { s.Configurations = configuration("v1", `[{clientConfig: {caBundle: "%"}}]`) }, "illegal base64"},
		"no file":             {func(s *check.Subject) { s.Configurations = check.Files(folder + "/none*.yaml") }, "none*.yaml: cannot be read"},
		"sample is no object": {func(s *check.Subject) { s.Allow[0].Manifest = write("list.yaml", "[1, 2]")[0] }, "list.yaml:1"},
		"sample has no kind":  {func(s *check.Subject) { s.Allow[0].Manifest = write("nokind.yaml", "metadata: {name: a}")[0] }, "the document has no apiVersion or no kind"},
		"sample is no YAML":   {func(s *check.Subject) { s.Allow[0].Manifest = write("bad.yaml", "a: [")[0] }, "bad.yaml:1"},
		"two objects": {func(s *check.Subject) {
			s.Allow[0].Manifest = write("two.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}}")[0]
		}, "two.yaml has 2 objects; want one"},
		"unknown field": {func(s *check.Subject) {
			s.Allow[0].Manifest = write("field.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spek: {}}")[0]
		}, `unknown field "spek"`},
		"no metadata": {func(s *check.Subject) {
			s.Allow[0].Manifest = write("meta.yaml", "{apiVersion: a.example.com/v1, kind: A}")[0]
		}, "has no metadata"},
		"empty sample": {func(s *check.Subject) { s.Allow[0].Manifest = check.Manifest{} }, "it has no object: set Object or File"},
		"operation":    {func(s *check.Subject) { s.Allow[0].Operation = "create" }, `operation is "create"; want CREATE`},
		"subresource":  {func(s *check.Subject) { s.Allow[0].Subresource = "exec" }, `CREATE of subresource "exec"`},
		"fix":          {func(s *check.Subject) { s.Reject[0].Fix = "a: [" }, "read the Fix of "},
	} {
		t.Run(name, func(t *testing.T) {
			s := soundSubject(fault{})
			test.change(&s)
			p := check.Prepare(context.Background(), s)
			if got := strings.Join(p.Misuse, "\n"); !strings.Contains(got, test.want) {
				t.Errorf("misuse is %q, want %q in it", got, test.want)
			}
		})
	}
}

// TestBareAnswer: an API server takes an answer to a v1beta1 review without apiVersion, but not one to a v1 review.
func TestBareAnswer(t *testing.T) {
	for version, want := range map[string]framework.Verdict{"v1": framework.Fail, "v1beta1": framework.Pass} {
		s := soundSubject(fault{mutate: func(_ *sound, in incoming, out *outgoing) {
			if in.review["apiVersion"] == "admission.k8s.io/"+version {
				out.apiVersion = ""
			}
		}})
		if o := checkOne(t, s, "WH-PROTO-2", rule.DefaultBudget); o.Verdict != want {
			t.Errorf("%s: got %s (%s), want %s", version, o.Verdict, o.Reason, want)
		}
	}
}

// TestUserValues: what is enforced on purpose, what has a prefix, and what is denied does not break WH-FIELD-7. Other values do.
func TestUserValues(t *testing.T) {
	set := func(path, value string) func(*sound, incoming, *outgoing) {
		return func(_ *sound, in incoming, out *outgoing) {
			if in.kind == "Pod" && in.operation == "CREATE" && in.subresource == "" {
				out.operation("add", path, value)
			}
		}
	}
	for name, test := range map[string]struct {
		mutate   func(*sound, incoming, *outgoing)
		enforced string
		want     framework.Verdict
	}{
		"enforced":                {alwaysPulls, "/spec/containers/*/imagePullPolicy", framework.Pass},
		"enforced below":          {alwaysPulls, "/spec/containers", framework.Pass},
		"another one is enforced": {alwaysPulls, "/spec/containers/other", framework.Fail},
		"label of the webhook":    {set("/metadata/labels/sound.example.com~1tier", "gold"), "", framework.Pass},
		"label of users":          {set("/metadata/labels/tier", "gold"), "", framework.Fail},
		"a name":                  {set("/spec/priorityClassName", "low"), "", framework.Fail},
		"a mirror":                {set("/spec/containers/0/image", "mirror.example.com/good"), "", framework.Pass},
		"another image":           {set("/spec/containers/0/image", "mirror.example.com/other"), "", framework.Fail},
		"another, enforced":       {set("/spec/containers/0/image", "mirror.example.com/other"), "/spec/containers/*/image", framework.Pass},
		"an unknown word":         {set("/spec/dnsPolicy", "ClusterFirstWithHostNet"), "", framework.Pass},
		"denied": {func(_ *sound, in incoming, out *outgoing) {
			spec, _ := in.object["spec"].(map[string]any)
			if name := spec["priorityClassName"]; name != nil && name != "low" {
				out.deny(403, "want priorityClassName low")
			} else {
				set("/spec/priorityClassName", "low")(nil, in, out)
			}
		}, "", framework.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			s := soundSubject(fault{mutate: test.mutate})
			if test.enforced != "" {
				s.Enforced = []string{test.enforced}
			}
			if o := checkOne(t, s, "WH-FIELD-7", rule.DefaultBudget); o.Verdict != test.want {
				t.Errorf("got %s (%s), want %s", o.Verdict, o.Reason, test.want)
			}
		})
	}
}

// TestSidecarFirst: a Fix is for the sample, not for what a mutating webhook made of it.
func TestSidecarFirst(t *testing.T) {
	sidecar := map[string]any{"name": "sidecar", "image": "sidecar", "imagePullPolicy": "IfNotPresent"}
	s := soundSubject(fault{mutate: func(_ *sound, in incoming, out *outgoing) {
		containers, _, _ := unstructured.NestedSlice(in.object, "spec", "containers")
		if in.operation == "CREATE" && len(containers) > 0 && containers[0].(map[string]any)["name"] != "sidecar" {
			out.operation("add", "/spec/containers/0", sidecar)
		}
	}})
	for _, each := range checkAll(t, s) {
		if each.webhook == "validate.sound.example.com" && each.Verdict != framework.Pass && each.Verdict != framework.Unsupported {
			t.Errorf("%s: got %s (%s), want pass", each.Rule, each.Verdict, each.Reason)
		}
	}
}

// TestVaryingAnswers: if the webhook answers differently each time, the rules that compare answers are inconclusive because of that.
func TestVaryingAnswers(t *testing.T) {
	s := soundSubject(faults()["WH-IDEM-4 always"])
	for id, want := range map[string]framework.Verdict{"WH-IDEM-4": framework.Fail, "WH-IDEM-1": framework.Inconclusive, "WH-DRY-1": framework.Inconclusive, "WH-PERF-2": framework.Inconclusive} {
		o := checkOne(t, s, id, rule.DefaultBudget)
		if o.Verdict != want || want == framework.Inconclusive && !strings.Contains(o.Reason, "see WH-IDEM-4") {
			t.Errorf("%s: got %s (%s), want %s", id, o.Verdict, o.Reason, want)
		}
	}
}

// TestSlowWebhooks: a webhook with client-go's default limit of calls, and one with a lock, pass the rules that call it often.
func TestSlowWebhooks(t *testing.T) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(5, 10)
	var lock sync.Mutex
	for name, wait := range map[string]func(){
		"limit": limiter.Accept,
		"lock": func() {
			lock.Lock()
			defer lock.Unlock()
			time.Sleep(60 * time.Millisecond) //nolint:forbidigo // another system is slow
		},
	} {
		for _, id := range []string{"WH-PERF-2", "WH-IDEM-4"} {
			t.Run(name+" "+id, func(t *testing.T) {
				s := soundSubject(fault{mutate: func(*sound, incoming, *outgoing) { wait() }})
				if o := checkOne(t, s, id, rule.DefaultBudget); o.Verdict != framework.Pass {
					t.Errorf("got %s (%s), want pass", o.Verdict, o.Reason)
				}
			})
		}
	}
}

// TestUnreachedSample: a sample that no rule matches is unsupported, with the reason.
func TestUnreachedSample(t *testing.T) {
	s := soundSubject(fault{})
	s.Reject = nil
	s.Allow = []check.Sample{{Manifest: manifest(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}}")}}
	for _, each := range checkAll(t, s) {
		if each.Verdict != framework.Unsupported || !strings.Contains(each.Reason, "CREATE widgets default/a: it is not called: ") {
			t.Fatalf("%s: got %s: %s, want unsupported with the sample and the rule", each.Rule, each.Verdict, each.Reason)
		}
	}
}

// TestNoConfiguration: without a configuration, the correct webhooks break no rule.
func TestNoConfiguration(t *testing.T) {
	for _, kind := range []check.Kind{check.Mutating, check.Validating, ""} {
		path := map[check.Kind]string{check.Mutating: "/mutate", check.Validating: "/validate", "": "/mutate"}[kind]
		for _, each := range checkAll(t, alone(soundSubject(fault{}), kind, path)) {
			if each.Verdict != framework.Pass && each.Verdict != framework.Unsupported {
				t.Errorf("kind %q: %s: got %s: %s", kind, each.Rule, each.Verdict, each.Reason)
			}
		}
	}
}

// TestWebhookAtRoot: a server whose webhook is at / gets every path, which does not break WH-SEC-3. At another path it does.
func TestWebhookAtRoot(t *testing.T) {
	for path, want := range map[string]framework.Verdict{"/": framework.Pass, "/mutate": framework.Fail} {
		s := alone(soundSubject(fault{}), check.Mutating, "/mutate")
		server := httptest.NewTLSServer(s.Handler)
		defer server.Close()
		s = at(server, s)
		s.URL += path
		for _, each := range checkAll(t, s) {
			if each.Rule.ID == "WH-SEC-3" && each.Verdict != want {
				t.Errorf("at %s: got %s (%s), want %s", path, each.Verdict, each.Reason, want)
			}
		}
	}
}

// TestNoEffects: without Effects, a dry run without side effects is never a pass. For a URL there is nothing that could show
// them, so the rule does not apply.
func TestNoEffects(t *testing.T) {
	s := soundSubject(fault{})
	s.Effects = nil
	server := httptest.NewTLSServer(s.Handler)
	defer server.Close()
	for want, s := range map[framework.Verdict]check.Subject{framework.Inconclusive: s, framework.Unsupported: at(server, s)} {
		for _, each := range checkAll(t, s) {
			if each.Rule.ID == "WH-DRY-2" && (each.Verdict != want || !strings.Contains(each.Reason, "Subject.Effects")) {
				t.Errorf("%s: got %s (%s), want %s", each.webhook, each.Verdict, each.Reason, want)
			}
		}
	}
}

// TestEffects: effects that come after the answer break WH-DRY-2. Effects without a call, and effects that a repeated call does
// not have, are not known to be effects of a call. A webhook with sideEffects: NoneOnDryRun can have effects of real requests, as
// the rule before, WH-DRY-1, sends them.
func TestEffects(t *testing.T) {
	all := rules.All()
	index := slices.IndexFunc(all, func(each check.Rule) bool { return each.ID == "WH-DRY-2" })
	for name, test := range map[string]struct {
		// call and always have effects: when the webhook is called, and every 100 ms.
		call   func(wrote *atomic.Int64, dryRun bool)
		always func(wrote *atomic.Int64)
		none   bool // sideEffects: None
		want   framework.Verdict
		reason string
	}{
		"late": {call: func(wrote *atomic.Int64, _ bool) {
			time.AfterFunc(100*time.Millisecond, func() { wrote.Add(1) })
		}, none: true, want: framework.Fail, reason: "has side effects: before"},
		"of real requests": {call: func(wrote *atomic.Int64, dryRun bool) {
			if !dryRun {
				time.AfterFunc(20*time.Millisecond, func() { wrote.Add(1) })
			}
		}, want: framework.Pass},
		"of real requests, with None": {call: func(wrote *atomic.Int64, dryRun bool) {
			if !dryRun {
				wrote.Add(1)
			}
		}, none: true, want: framework.Fail, reason: "with sideEffects: None: the webhook has side effects"},
		"once": {call: func(wrote *atomic.Int64, _ bool) { wrote.CompareAndSwap(0, 1) }, none: true,
			want: framework.Inconclusive, reason: "not when the calls were repeated: before 0, after 1"},
		"without a call": {always: func(wrote *atomic.Int64) { wrote.Add(1) }, none: true, want: framework.Inconclusive, reason: "without a call too"},
		"none":           {none: true, want: framework.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var wrote atomic.Int64
			s := soundSubject(fault{validate: func(_ *sound, in incoming, _ *outgoing) {
				if test.call != nil {
					test.call(&wrote, in.dryRun)
				}
			}})
			s.Effects = func() any { return wrote.Load() }
			if test.always != nil {
				go wait.UntilWithContext(t.Context(), func(context.Context) { test.always(&wrote) }, 100*time.Millisecond)
			}
			p := check.Prepare(t.Context(), s)
			if !test.none {
				effects := admissionregistrationv1.SideEffectClassNoneOnDryRun
				p.Webhooks[1].Config.SideEffects = &effects
				p.Check(all[index-1], p.Webhooks[1], time.Minute)
			}
			wrote.Store(0) // Prepare calls the webhooks too
			got := p.Check(all[index], p.Webhooks[1], time.Minute)
			if got.Verdict != test.want || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("got %s (%s), want %s", got.Verdict, got.Reason, test.want)
			}
		})
	}
}

// TestEmptyValues: a patch that adds an empty value breaks WH-FIELD-2, except for the {} that Go encodes for a struct.
func TestEmptyValues(t *testing.T) {
	widget := manifest(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: default}, spec: {size: 1}}").Object
	for name, test := range map[string]struct {
		object runtime.Object
		path   string
		value  any
		want   framework.Verdict
	}{
		"{} for a pointer in a pod":  {pod("good", "good"), "/spec/securityContext", map[string]any{}, framework.Fail},
		"{} for a map in a pod":      {pod("good", "good"), "/spec/nodeSelector", map[string]any{}, framework.Fail},
		"{} for a struct in a pod":   {pod("good", "good"), "/spec/containers/0/resources", map[string]any{}, framework.Pass},
		"null in a pod":              {pod("good", "good"), "/spec/securityContext", nil, framework.Fail},
		"{} in a custom resource":    {widget, "/spec/securityContext", map[string]any{}, framework.Pass},
		"null in a custom resource":  {widget, "/spec/securityContext", nil, framework.Fail},
		"no value, in this resource": {widget, "/spec/securityContext", "a value", framework.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			s := soundSubject(fault{mutate: func(_ *sound, in incoming, out *outgoing) {
				if in.operation == "CREATE" && in.subresource == "" {
					out.operation("add", test.path, test.value)
				}
			}})
			s.Allow = []check.Sample{{Manifest: check.Manifest{Object: test.object}}}
			for _, each := range checkAll(t, alone(s, check.Mutating, "/mutate")) {
				if each.Rule.ID == "WH-FIELD-2" && each.Verdict != test.want {
					t.Errorf("got %s (%s), want %s", each.Verdict, each.Reason, test.want)
				}
			}
		})
	}
}
