package bystander_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/admissiontest/admissiontest/hack/bystander"
	"github.com/admissiontest/admissiontest/internal/testserver"
)

func TestMain(m *testing.M) { os.Exit(testserver.Main(m)) }

// Limits of the wait until a bystander notices a webhook, and until a removed webhook is no
// longer called.
const (
	noticeLimit = 30 * time.Second
	noticePoll  = 50 * time.Millisecond
)

// interference is a webhook of a scenario that is not narrowed to the scenario.
type interference struct {
	mutating  bool
	operation admissionregistrationv1.OperationType
	resource  string
	// answer handles a call. The response allows the request unless answer changes it.
	answer func(r *http.Request, request *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse)
	// noticed reports whether the report has the interference.
	noticed func(bystander.Report) bool
}

func interferences(t *testing.T, client kubernetes.Interface) map[string]interference {
	lineWith := func(lines []string, parts ...string) bool {
		for _, line := range lines {
			missing := 0
			for _, part := range parts {
				if !strings.Contains(line, part) {
					missing++
				}
			}
			if missing == 0 {
				return true
			}
		}
		return false
	}
	return map[string]interference{
		"request refused": {
			operation: admissionregistrationv1.Create, resource: "configmaps",
			answer: func(_ *http.Request, _ *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) {
				response.Allowed, response.Result = false, &metav1.Status{Message: "by a scenario"}
			},
			noticed: func(r bystander.Report) bool {
				return lineWith(r.Failed, "configmaps dry-run", "denied the request: by a scenario")
			},
		},
		"object changed": {
			mutating: true, operation: admissionregistrationv1.Create, resource: "secrets",
			answer: func(_ *http.Request, _ *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) {
				patchType := admissionv1.PatchTypeJSONPatch
				response.PatchType, response.Patch = &patchType, []byte(`[{"op": "add", "path": "/metadata/labels/scenario", "value": "was-here"}]`)
			},
			noticed: func(r bystander.Report) bool {
				return len(r.Failed) == 0 && lineWith(r.Changed, "secrets create", "scenario:was-here") && lineWith(r.Changed, "secrets get", "scenario:was-here")
			},
		},
		"warning added": {
			operation: admissionregistrationv1.Create, resource: "pods",
			answer: func(_ *http.Request, _ *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) {
				response.Warnings = []string{"from a scenario"}
			},
			noticed: func(r bystander.Report) bool {
				return lineWith(r.Failed, "pods dry-run", "a warning", "from a scenario")
			},
		},
		"object deleted": { // between the read and the write of a PATCH
			operation: admissionregistrationv1.Update, resource: "leases",
			answer: func(r *http.Request, request *admissionv1.AdmissionRequest, _ *admissionv1.AdmissionResponse) {
				if err := client.CoordinationV1().Leases(request.Namespace).Delete(r.Context(), request.Name, metav1.DeleteOptions{}); err != nil {
					t.Errorf("delete a Lease of the bystander: %v", err)
				}
			},
			noticed: func(r bystander.Report) bool { return lineWith(r.Failed, "leases patch", "404") },
		},
		"request delayed": { // until the timeout of the webhook; its failure is ignored
			operation: admissionregistrationv1.Create, resource: "services",
			answer: func(r *http.Request, _ *admissionv1.AdmissionRequest, _ *admissionv1.AdmissionResponse) {
				<-r.Context().Done()
			},
			noticed: func(r bystander.Report) bool { return r.Longest() >= time.Second && r.Median() < time.Second },
		},
	}
}

// install serves and installs the webhook for the requests of all clients.
func (i interference) install(t *testing.T, client kubernetes.Interface) (remove func(context.Context) error) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Errorf("decode the review: %v", err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		i.answer(r, review.Request, review.Response)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	ignore, none, one := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone, int32(1)
	bundle := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: server.Certificate().Raw})
	webhook := map[string]any{
		"name": "interference.example.com", "failurePolicy": ignore, "sideEffects": none, "timeoutSeconds": one, "admissionReviewVersions": []any{"v1"},
		"clientConfig": map[string]any{"url": server.URL, "caBundle": base64.StdEncoding.EncodeToString(bundle)},
		"rules":        []any{map[string]any{"operations": []any{i.operation}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{i.resource}}},
	}
	resource := "validatingwebhookconfigurations"
	if i.mutating {
		resource = "mutatingwebhookconfigurations"
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "interference"}, "webhooks": []any{webhook}})
	if err != nil {
		t.Fatal(err)
	}
	api := client.AdmissionregistrationV1().RESTClient()
	if err := api.Post().Resource(resource).Body(body).SetHeader("Content-Type", "application/json").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) error {
		return api.Delete().Resource(resource).Name("interference").Do(ctx).Error()
	}
}

// A bystander notices each way in which a scenario can disturb other clients, and reports
// nothing without a disturbance.
func TestInterferenceIsNoticed(t *testing.T) {
	config := testserver.Config(t)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bystander.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	const kinds = 10 // one object of each
	write := func(ctx context.Context) bystander.Report {
		b.Write(ctx, kinds, 1)
		return b.Take()
	}
	undisturbed := write(t.Context())
	if err := undisturbed.Check(); err != nil || undisturbed.Objects != kinds || len(undisturbed.Durations) != 5*kinds {
		t.Fatalf("undisturbed: %v, %d objects by %d requests; want %d by %d", err, undisturbed.Objects, len(undisturbed.Durations), kinds, 5*kinds)
	}
	for name, one := range interferences(t, client) {
		t.Run(name, func(t *testing.T) {
			remove := one.install(t, client)
			var report bystander.Report
			err := wait.PollUntilContextTimeout(t.Context(), noticePoll, noticeLimit, true, func(ctx context.Context) (bool, error) {
				report = write(ctx)
				return one.noticed(report), nil
			})
			if err != nil {
				t.Errorf("not noticed: %v; the last report is %+v", err, report)
			}
			if disturbed := len(report.Failed)+len(report.Changed) > 0; disturbed != (report.Check() != nil) {
				t.Errorf("Check = %v for %+v", report.Check(), report)
			}
			if err := remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			err = wait.PollUntilContextTimeout(t.Context(), noticePoll, noticeLimit, true, func(ctx context.Context) (bool, error) {
				report = write(ctx)
				return report.Check() == nil && report.Longest() < time.Second, nil
			})
			if err != nil {
				t.Errorf("still disturbed without the webhook: %v; the last report is %+v", err, report)
			}
		})
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNewWithoutRights(t *testing.T) {
	config := testserver.Config(t)
	config.Impersonate.UserName = "stranger"
	if _, err := bystander.New(t.Context(), config); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("New without rights = %v; want 403", err)
	}
}

// When the context of Write ends, an object that was created is deleted, and one that was not
// is not a failure.
func TestWriteEnds(t *testing.T) {
	for last, want := range map[string][]string{
		"POST ?dryRun=All": {"POST ?dryRun=All"},
		"POST ?":           {"POST ?dryRun=All", "POST ?", "DELETE ?"},
	} {
		t.Run(last, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			var requests []string
			learned := false
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if request := r.Method + " ?" + r.URL.RawQuery; learned {
					requests = append(requests, request)
					if request == last {
						cancel()
					}
				}
				_, _ = w.Write([]byte("{}"))
			}))
			b, err := bystander.New(t.Context(), &rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Learn(t.Context()); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			learned = true
			mu.Unlock()
			b.Write(ctx, 1, 1)
			if report := b.Take(); report.Check() != nil {
				t.Errorf("the context ended at %s: %v", last, report.Check())
			}
			mu.Lock()
			if diff := cmp.Diff(want, requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			mu.Unlock()
			server.Close()
			cancel()
		})
	}
}
