package rules_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/rule"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/rules"
)

// protocolFaults returns the faults for the rules about answers and repeated calls.
func protocolFaults() map[string]fault {
	return map[string]fault{
		"WH-PROTO-1": {validate: func(_ *sound, _ incoming, out *outgoing) {
			if out.denied() {
				out.response["uid"] = "another"
			}
		}},
		"WH-PROTO-2":              {validate: func(_ *sound, _ incoming, out *outgoing) { out.apiVersion = "admission.k8s.io/v1beta1" }},
		"WH-PROTO-2 with v1beta1": {mutate: func(_ *sound, _ incoming, out *outgoing) { out.apiVersion = "admission.k8s.io/v1" }},
		"WH-PROTO-3": {validate: func(_ *sound, _ incoming, out *outgoing) {
			if out.denied() {
				out.status = http.StatusForbidden
			}
		}},
		"WH-PROTO-4": {mutate: func(_ *sound, _ incoming, out *outgoing) { out.patchType = true }, validate: func(_ *sound, _ incoming, out *outgoing) { out.patchType = true }},
		"WH-PROTO-5": {parentless: true},
		"WH-IDEM-1": {mutate: func(s *sound, in incoming, out *outgoing) {
			if in.operation == "CREATE" && in.subresource == "" {
				u := unstructured.Unstructured{Object: in.object}
				s.addLabel(u, out, "sound.example.com/calls", u.GetLabels()["sound.example.com/calls"]+"x")
			}
		}},
		"WH-IDEM-2": {mutate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "CREATE" && (&unstructured.Unstructured{Object: in.object}).GetLabels()[label] != "" {
				out.deny(403, "the label "+label+" is reserved")
			}
		}},
		"WH-IDEM-3": {marked: true},
		"WH-IDEM-4": {mutate: func(s *sound, in incoming, out *outgoing) {
			if strings.HasPrefix(string(in.raw), `{"request"`) {
				s.addLabel(unstructured.Unstructured{Object: in.object}, out, "sound.example.com/first", "request")
			}
		}},
		"WH-IDEM-4 always": {mutate: func(s *sound, in incoming, out *outgoing) {
			if in.object != nil && in.subresource == "" {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.turn = (s.turn + 1) % 3
				s.addLabel(unstructured.Unstructured{Object: in.object}, out, "sound.example.com/turn", fmt.Sprint(s.turn))
			}
		}},
	}
}

// fieldFaults returns the faults for the rules about patches.
func fieldFaults() map[string]fault {
	isPod := func(in incoming) bool {
		u := unstructured.Unstructured{Object: in.object}
		return in.kind == "Pod" && in.subresource == "" && in.operation == "CREATE" && u.GetAnnotations()["kubernetes.io/config.mirror"] == ""
	}
	return map[string]fault{
		"WH-FIELD-1": {mutate: func(_ *sound, in incoming, out *outgoing) {
			var typed corev1.Pod
			data, _ := json.Marshal(in.object)
			if !isPod(in) || json.Unmarshal(data, &typed) != nil {
				return
			}
			known := map[string]any{}
			data, _ = json.Marshal(typed)
			_ = json.Unmarshal(data, &known)
			for key := range in.object {
				if _, ok := known[key]; !ok {
					out.operation("remove", "/"+key, nil)
				}
			}
		}},
		"WH-FIELD-2": {mutate: func(_ *sound, in incoming, out *outgoing) {
			if isPod(in) {
				out.operation("add", "/metadata/annotations", map[string]any{"sound.example.com/injected": "true"})
			}
		}},
		"WH-FIELD-3": {mutate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "UPDATE" && in.subresource == "" {
				out.operation("remove", "/metadata/managedFields", nil)
			}
		}},
		"WH-FIELD-4": {mutate: func(_ *sound, in incoming, out *outgoing) {
			var review struct {
				Request struct{ Object struct{ Spec map[string]any } }
			}
			if isPod(in) && json.Unmarshal(in.raw, &review) == nil { // numbers are float64
				out.patch = append([]map[string]any{{"op": "replace", "path": "/spec", "value": review.Request.Object.Spec}}, out.patch...)
			}
		}},
		"WH-FIELD-5": {mutate: func(_ *sound, in incoming, out *outgoing) {
			if in.kind == "ReplicaSet" {
				out.operation("add", "/spec/template/spec/priorityClassName", "low")
			}
		}},
		"WH-FIELD-6": {mirrors: true},
		"WH-FIELD-2 with limits": {mutate: eachContainer(func(container map[string]any, path string, out *outgoing) {
			if _, has, _ := unstructured.NestedString(container, "resources", "limits", "memory"); !has {
				out.operation("add", path+"/resources/limits", map[string]any{"memory": "1Gi"})
			}
		})},
		"WH-FIELD-7": {mutate: alwaysPulls},
		"WH-FIELD-7 with a value of a sample": {mutate: eachContainer(func(_ map[string]any, path string, out *outgoing) {
			out.operation("replace", path+"/env/0/value", "slow")
		})},
		"WH-FIELD-7 with 0": {mutate: func(_ *sound, in incoming, out *outgoing) {
			if seconds, _, _ := unstructured.NestedInt64(in.object, "spec", "terminationGracePeriodSeconds"); isPod(in) && seconds == 0 {
				out.operation("add", "/spec/terminationGracePeriodSeconds", 60)
			}
		}},
	}
}

// eachContainer changes each container of new pods that has the environment of a sample.
func eachContainer(change func(container map[string]any, path string, out *outgoing)) func(*sound, incoming, *outgoing) {
	return func(_ *sound, in incoming, out *outgoing) {
		containers, _, _ := unstructured.NestedSlice(in.object, "spec", "containers")
		for i, each := range containers {
			u := unstructured.Unstructured{Object: in.object}
			if container := each.(map[string]any); in.kind == "Pod" && in.subresource == "" && in.operation == "CREATE" && u.GetAnnotations()["kubernetes.io/config.mirror"] == "" && container["env"] != nil {
				change(container, fmt.Sprintf("/spec/containers/%d", i), out)
			}
		}
	}
}

// deniesDeletionBy denies the deletions by a controller.
func deniesDeletionBy(controller string) func(*sound, incoming, *outgoing) {
	return func(_ *sound, in incoming, out *outgoing) {
		user, _, _ := unstructured.NestedString(in.request, "userInfo", "username")
		if in.operation == "DELETE" && strings.HasSuffix(user, ":"+controller) {
			out.deny(403, "want a person")
		}
	}
}

// wantsContainers denies what has no containers for a subresource, as if it were a Pod.
func wantsContainers(subresource string) func(*sound, incoming, *outgoing) {
	return func(_ *sound, in incoming, out *outgoing) {
		if containers, _, _ := unstructured.NestedSlice(in.object, "spec", "containers"); in.subresource == subresource && len(containers) == 0 {
			out.deny(403, "want a container")
		}
	}
}

// alwaysPulls replaces the imagePullPolicy of new pods.
func alwaysPulls(s *sound, in incoming, out *outgoing) {
	eachContainer(func(_ map[string]any, path string, out *outgoing) {
		out.operation("add", path+"/imagePullPolicy", "IfNotPresent")
	})(s, in, out)
}

// shapeFaults returns the faults for the rules about requests of other shapes, and about updates.
func shapeFaults() map[string]fault {
	return map[string]fault{
		"WH-SHAPE-1": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "DELETE" {
				out.deny(400, "there is no content to decode")
			}
		}},
		"WH-SHAPE-1 without a name": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "DELETE" && in.request["name"] == nil {
				out.deny(403, "want a name")
			}
		}},
		"WH-SHAPE-1 by the garbage collector":    {validate: deniesDeletionBy("generic-garbage-collector")},
		"WH-SHAPE-1 by the namespace controller": {validate: deniesDeletionBy("namespace-controller")},
		"WH-SHAPE-2": {mutate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "CREATE" && in.subresource == "" && (&unstructured.Unstructured{Object: in.object}).GetName() == "" {
				out.deny(403, "the object has no name")
			}
		}},
		"WH-SHAPE-3": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "CONNECT" {
				out.deny(400, "unable to decode PodExecOptions into *v1.Pod")
			}
		}},
		"WH-SHAPE-3 with an Eviction":    {validate: wantsContainers("eviction")},
		"WH-SHAPE-3 with PodExecOptions": {validate: wantsContainers("exec")},
		"WH-SHAPE-3 with a Scale": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.subresource == "scale" && (&unstructured.Unstructured{Object: in.object}).GetLabels()["app"] == "" {
				out.deny(403, "want the label app")
			}
		}},
		"WH-SHAPE-3 with an ephemeral container": {mutate: func(_ *sound, in incoming, out *outgoing) {
			if in.subresource == "ephemeralcontainers" {
				out.operation("remove", "/spec/ephemeralContainers", nil)
			}
		}},
		"WH-SHAPE-4":                        {closed: true},
		"WH-SHAPE-5":                        {ignored: "behind"},
		"WH-SHAPE-5 with an init container": {ignored: "initContainers"},
		"WH-SHAPE-4 with scale": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.subresource == "scale" {
				out.allow()
			}
		}},
		"WH-UPDATE-1": {mutate: func(s *sound, in incoming, out *outgoing) {
			if in.operation == "UPDATE" && in.subresource == "" {
				u := unstructured.Unstructured{Object: in.object}
				s.addLabel(u, out, "sound.example.com/updates", u.GetLabels()["sound.example.com/updates"]+"x")
			}
		}},
		"WH-UPDATE-2": {late: true},
		"WH-UPDATE-2 with its own finalizer": {mutate: func(_ *sound, in incoming, out *outgoing) {
			u := unstructured.Unstructured{Object: in.object}
			switch finalizers := u.GetFinalizers(); {
			case in.object == nil || in.subresource != "" || slices.Contains(finalizers, "sound.example.com/release"):
			case len(finalizers) == 0:
				out.operation("add", "/metadata/finalizers", []string{"sound.example.com/release"})
			default:
				out.operation("add", "/metadata/finalizers/-", "sound.example.com/release")
			}
		}},
		"WH-UPDATE-3": {old: true},
		"WH-UPDATE-3 with a status": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.subresource == "status" && badImage(in.object, "bad") {
				out.deny(403, "an image is bad: use another one")
			}
		}},
		"WH-UPDATE-5": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "UPDATE" && in.subresource == "" {
				out.allow()
			}
		}},
		"WH-UPDATE-4": {mutate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "UPDATE" && in.kind == "Pod" && in.subresource == "" {
				setPullPolicy(unstructured.Unstructured{Object: in.object}, out)
			}
		}},
	}
}

// verdictFaults returns the faults for the rules about verdicts and malformed reviews.
func verdictFaults() map[string]fault {
	return map[string]fault{
		"WH-VERDICT-1": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.operation == "CREATE" && badImage(in.object, "fixed") {
				out.deny(403, "an image is bad: use another one")
			}
		}},
		"WH-VERDICT-2": {validate: func(_ *sound, _ incoming, out *outgoing) {
			if out.denied() {
				out.deny(403, "")
			}
		}},
		"WH-VERDICT-3": {validate: func(_ *sound, _ incoming, out *outgoing) {
			if out.denied() {
				out.deny(500, "an image is bad: runtime error: index out of range")
			}
		}},
		"WH-ROBUST-1":                         {trusting: true},
		"WH-ROBUST-1 with a string as object": {blind: true},
		"WH-ROBUST-1 with one group": {validate: func(_ *sound, in incoming, _ *outgoing) {
			groups, _, _ := unstructured.NestedSlice(in.request, "userInfo", "groups")
			_ = groups[1]
		}},
		"WH-ROBUST-2":                    {unlimited: true},
		"WH-ROBUST-2 with a slow sender": {locked: true},
		"WH-ROBUST-3 with an unknown kind": {everything: true, validate: func(_ *sound, in incoming, out *outgoing) {
			if in.kind == "Future" {
				out.deny(500, "no kind Future is registered")
			}
		}},
		"WH-ROBUST-4": {small: true},
		"WH-ROBUST-3": {validate: func(_ *sound, in incoming, out *outgoing) {
			if _, ok := in.review["contractFuture"]; ok {
				out.status = http.StatusBadRequest
			}
		}},
		"WH-ANNOT-1": {validate: func(_ *sound, _ incoming, out *outgoing) {
			out.response["warnings"] = []string{"images are checked\nby name only"}
		}},
		"WH-ANNOT-2": {validate: func(_ *sound, _ incoming, out *outgoing) {
			out.response["auditAnnotations"] = map[string]string{"sound.example.com/checked": "images"}
		}},
	}
}

// callerFaults returns the faults for the rules about dry runs, parallel calls and callers.
func callerFaults() map[string]fault {
	return map[string]fault{
		"WH-DRY-1": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.dryRun {
				out.response["allowed"] = true
			}
		}},
		"WH-DRY-2": {validate: func(s *sound, in incoming, _ *outgoing) {
			if in.dryRun {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.wrote++
			}
		}},
		"WH-PERF-1": {validate: func(s *sound, _ incoming, _ *outgoing) {
			s.mu.Lock()
			s.calls++
			busy := s.calls > 8
			s.mu.Unlock()
			time.Sleep(time.Millisecond) //nolint:forbidigo // other requests come meanwhile
			if busy {
				time.Sleep(600 * time.Millisecond) //nolint:forbidigo // the fault: timeoutSeconds is 1
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls--
		}},
		"WH-PERF-2": {validate: func(s *sound, in incoming, out *outgoing) {
			s.mu.Lock()
			s.last = in.uid
			s.mu.Unlock()
			time.Sleep(time.Millisecond) //nolint:forbidigo // another request comes meanwhile
			s.mu.Lock()
			defer s.mu.Unlock()
			out.response["uid"] = s.last
		}},
		"WH-PERF-3": {patient: true},
		"WH-PERF-3 with a goroutine": {validate: func(_ *sound, in incoming, _ *outgoing) {
			select {
			case <-in.end:
			default:
				go func() { <-time.After(time.Minute) }() //nolint:forbidigo // it is what a faulty webhook does
			}
		}},
		"WH-PERF-3 with the body": {alone: true, validate: func(s *sound, in incoming, _ *outgoing) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.kept = append(s.kept, in.raw)
		}},
		"WH-SEC-2": {validate: func(_ *sound, in incoming, out *outgoing) {
			if namespace := (&unstructured.Unstructured{Object: in.object}).GetNamespace(); in.object != nil && namespace != "" && namespace != "default" {
				out.deny(403, "namespace "+namespace+" is closed")
			}
		}},
		"WH-SEC-3":                      {careless: true},
		"WH-SEC-3 with an unknown path": {lost: true},
		"WH-SEC-4": {validate: func(_ *sound, in incoming, out *outgoing) {
			u := unstructured.Unstructured{Object: in.object}
			if value := u.GetAnnotations()["contract.example.com/secret"]; value != "" {
				out.response["warnings"] = []string{"annotation contract.example.com/secret: " + value}
			}
		}},
		"WH-SEC-4 connects later": {validate: func(_ *sound, in incoming, _ *outgoing) {
			u := unstructured.Unstructured{Object: in.object}
			if _, address, ok := strings.Cut(u.GetAnnotations()["contract.example.com/url"], "https://"); ok {
				go func() {
					if connection, err := net.Dial("tcp", strings.TrimSuffix(address, "/")); err == nil {
						_ = connection.Close()
					}
				}()
			}
		}},
		"WH-SEC-6": {validate: func(_ *sound, in incoming, out *outgoing) {
			if user, _, _ := unstructured.NestedString(in.request, "userInfo", "username"); strings.HasPrefix(user, "system:") {
				out.allow()
			}
		}},
		"WH-SEC-7": {validate: func(_ *sound, in incoming, out *outgoing) {
			if badImage(in.object, "fixed.example.com.") {
				out.allow()
			}
		}},
		"WH-SERVER-1": {validate: func(_ *sound, in incoming, out *outgoing) {
			if in.agent == serverAgent {
				out.response["allowed"] = true
			}
		}},
		"WH-VERSION-1": {validate: func(_ *sound, in incoming, out *outgoing) {
			if sent, ok := in.request["requestKind"].(map[string]any); ok && sent["version"] != "v1" {
				out.deny(403, "version "+fmt.Sprint(sent["version"])+" is not supported")
			}
		}},
	}
}

// faults returns the faults by the ID of the rule that they break, and a part of the rule if there is another fault for it.
func faults() map[string]fault {
	all := map[string]fault{}
	for _, each := range []map[string]fault{protocolFaults(), fieldFaults(), shapeFaults(), verdictFaults(), callerFaults()} {
		maps.Copy(all, each)
	}
	return all
}

// outcome is an Outcome for a webhook.
type outcome struct {
	rule.Outcome
	webhook string
}

// checkAll checks rules against a Subject; without IDs all that are not only on request. With WH-AUTH- these and no others.
func checkAll(t testing.TB, s check.Subject, ids ...string) (all []outcome) {
	t.Helper()
	p := check.Prepare(context.Background(), s)
	for _, each := range p.Misuse {
		t.Error(each)
	}
	for _, each := range rules.All() {
		if each.OnRequest && !slices.Contains(ids, each.ID) || slices.Equal(ids, []string{"WH-AUTH-"}) && !isTokenRule(each.ID) {
			continue
		}
		for _, w := range p.Webhooks {
			all = append(all, outcome{p.Check(each, w, rule.DefaultBudget), w.Name})
		}
	}
	return all
}

// checkOne checks a rule for the first webhook.
func checkOne(t *testing.T, s check.Subject, id string, budget time.Duration) rule.Outcome {
	t.Helper()
	p, all := check.Prepare(t.Context(), s), rules.All()
	return p.Check(all[slices.IndexFunc(all, func(each check.Rule) bool { return each.ID == id })], p.Webhooks[0], budget)
}

// at returns a Subject at the URL of a server.
func at(server *httptest.Server, s check.Subject) check.Subject {
	s.Handler, s.Stall, s.URL = nil, nil, server.URL
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return s
}

// alone returns a Subject without a configuration, whose webhook is one of the sound ones.
func alone(s check.Subject, kind check.Kind, path string) check.Subject {
	handler := s.Handler
	s.Configurations, s.Kind, s.Reject = nil, kind, nil
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = path
		handler.ServeHTTP(w, r)
	})
	return s
}

// elsewhere reports whether a rule needs more than a handler of admission reviews: TestTLS, TestProcess, TestConversions and TestTokens are about it.
func elsewhere(id string) bool {
	return slices.Contains([]string{"WH-SEC-1", "WH-PERF-4", "WH-SEC-5", "WH-CONVERT-1"}, id) || isTokenRule(id)
}

// TestSound: the correct webhooks pass every rule that applies to them, and nothing is inconclusive. Each rule applies to one
// of them.
func TestSound(t *testing.T) {
	passed := map[string]bool{}
	for _, each := range checkAll(t, soundSubject(fault{}), "WH-PERF-1") {
		switch each.Verdict {
		case framework.Pass:
			passed[each.Rule.ID] = true
		case framework.Unsupported:
		default:
			t.Errorf("%s: %s: got %s, want pass: %s", each.webhook, each.Rule, each.Verdict, each.Reason)
		}
	}
	for _, each := range rules.All() {
		if !passed[each.ID] && !elsewhere(each.ID) {
			t.Errorf("%s: it applies to none of the webhooks", each)
		}
	}
}

// TestKillMatrix: each faulty webhook fails its own rule and no other.
func TestKillMatrix(t *testing.T) {
	all := faults()
	for _, each := range rules.All() {
		if _, ok := all[each.ID]; !ok && !elsewhere(each.ID) {
			t.Errorf("%s: no faulty webhook fails it", each)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		t.Run(key, func(t *testing.T) {
			if !all[key].alone {
				t.Parallel()
			}
			id, _, _ := strings.Cut(key, " ")
			var failed []string
			for _, each := range checkAll(t, soundSubject(all[key]), id) {
				if each.Verdict == framework.Fail || each.Verdict == framework.Errored {
					if failed = append(failed, each.Rule.ID); each.Rule.ID != id {
						t.Logf("it also fails %s: %s: %s", each.webhook, each.Rule, each.Reason)
					}
				}
			}
			if failed = slices.Compact(failed); !slices.Equal(failed, []string{id}) {
				t.Errorf("it fails %q, want only %q", failed, id)
			}
		})
	}
}

// TestTLS: at a URL, the correct webhooks pass all rules, and a server with TLS 1.0 or 3DES fails WH-SEC-1 only. If the server
// does not answer a handshake, that rule is inconclusive.
func TestTLS(t *testing.T) {
	silent := func(in func(hello *tls.ClientHelloInfo) bool) *tls.Config {
		return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if in(hello) {
				ctx, cancel := context.WithTimeout(hello.Context(), 4*time.Second) // the check gives up before
				defer cancel()
				<-ctx.Done()
			}
			return nil, nil //nolint:nilnil // the configuration of the server
		}}
	}
	for name, config := range map[string]*tls.Config{
		"sound": {MinVersion: tls.VersionTLS12},
		"silent for old": silent(func(hello *tls.ClientHelloInfo) bool {
			return !slices.Contains(hello.SupportedVersions, tls.VersionTLS12)
		}),
		"silent for HTTP/1": silent(func(hello *tls.ClientHelloInfo) bool {
			return slices.Equal(hello.SupportedProtos, []string{"http/1.1"})
		}),
		"old": {MinVersion: tls.VersionTLS10}, //nolint:gosec // the fault
		"3DES": {MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{ //nolint:gosec // the fault
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := soundSubject(fault{})
			server := httptest.NewUnstartedServer(s.Handler)
			server.TLS = config
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			defer server.Close()
			for _, each := range checkAll(t, at(server, s)) {
				want := each.Verdict == framework.Pass || each.Verdict == framework.Unsupported
				switch {
				case name == "sound" || each.Rule.ID != "WH-SEC-1":
				case strings.HasPrefix(name, "silent"):
					want = each.Verdict == framework.Inconclusive
				default:
					want = each.Verdict == framework.Fail
				}
				if !want || each.Rule.ID == "WH-SEC-1" && each.Verdict == framework.Unsupported {
					t.Errorf("%s: %s: got %s: %s", each.webhook, each.Rule, each.Verdict, each.Reason)
				}
			}
		})
	}
}

// TestReplicas: another replica with other answers fails WH-IDEM-4, and one that cannot be reached makes it inconclusive.
func TestReplicas(t *testing.T) {
	serve := func(f fault) *httptest.Server {
		server := httptest.NewTLSServer(soundSubject(f).Handler)
		t.Cleanup(server.Close)
		return server
	}
	first, same := serve(fault{}), serve(fault{})
	other := serve(fault{mutate: func(s *sound, in incoming, out *outgoing) {
		s.addLabel(unstructured.Unstructured{Object: in.object}, out, "sound.example.com/replica", "2")
	}})
	for name, test := range map[string]struct {
		address string
		want    framework.Verdict
	}{"same": {same.URL, framework.Pass}, "other": {other.URL, framework.Fail}, "none": {"https://127.0.0.1:1", framework.Inconclusive}} {
		t.Run(name, func(t *testing.T) {
			s := at(first, soundSubject(fault{}))
			s.Replicas = []string{test.address}
			if o := checkOne(t, s, "WH-IDEM-4", rule.DefaultBudget); o.Verdict != test.want {
				t.Errorf("got %s (%s), want %s", o.Verdict, o.Reason, test.want)
			}
		})
	}
}

// TestLevels: what is a SHOULD for most webhooks is a MUST for some.
func TestLevels(t *testing.T) {
	level := func(f fault, reinvocation admissionregistrationv1.ReinvocationPolicyType, id string) framework.Level {
		s := soundSubject(f)
		p := check.Prepare(t.Context(), s)
		for _, w := range p.Webhooks {
			w.Config.ReinvocationPolicy = &reinvocation
			for _, each := range rules.All() {
				if each.ID == id && w.Kind == check.Mutating == (id == "WH-IDEM-3") {
					return p.Check(each, w, rule.DefaultBudget).Rule.Level
				}
			}
		}
		return ""
	}
	for _, test := range []struct {
		id           string
		f            fault
		reinvocation admissionregistrationv1.ReinvocationPolicyType
		want         framework.Level
	}{
		{"WH-IDEM-3", fault{marked: true}, admissionregistrationv1.NeverReinvocationPolicy, framework.Should},
		{"WH-IDEM-3", fault{marked: true}, admissionregistrationv1.IfNeededReinvocationPolicy, framework.Must},
		{"WH-UPDATE-3", fault{old: true}, admissionregistrationv1.NeverReinvocationPolicy, framework.Should},
	} {
		t.Run(test.id+" "+string(test.reinvocation), func(t *testing.T) {
			if got := level(test.f, test.reinvocation, test.id); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// BenchmarkSound checks all rules that are not only on request against two small webhooks. With -race it must take at most
// 3 seconds.
func BenchmarkSound(b *testing.B) {
	for b.Loop() {
		checkAll(b, soundSubject(fault{}))
	}
}
