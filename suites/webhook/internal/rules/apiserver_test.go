package rules_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/review"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// serverAgent is the User-Agent of an API server.
const serverAgent = "kube-apiserver-admission"

// apiServer calls the sound webhooks for a dry run, as an API server does.
type apiServer struct {
	handler http.Handler
	// defaults changes an object before the webhooks get it.
	defaults func(*unstructured.Unstructured)
	// answer replaces what the API server returns.
	answer func(object *unstructured.Unstructured, err error) error
}

func (s apiServer) dryRun(_ context.Context, object *unstructured.Unstructured) error {
	if s.defaults != nil {
		s.defaults(object)
	}
	err := s.call(object)
	if s.answer != nil {
		err = s.answer(object, err)
	}
	return err
}

func (s apiServer) call(object *unstructured.Unstructured) error {
	for _, path := range []string{"mutate", "validate"} {
		r, err := review.Kinds{}.New(object.Object, review.OpCreate, "")
		if err != nil {
			return err
		}
		r.DryRun = true
		body := check.Encode(review.Build(r, "admission.k8s.io/v1", "uid"))
		request, answer := httptest.NewRequest(http.MethodPost, "/"+path, bytes.NewReader(body)), httptest.NewRecorder()
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("User-Agent", serverAgent)
		s.handler.ServeHTTP(answer, request)
		var got struct{ Response check.Response }
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
			return fmt.Errorf("failed calling webhook %q: %w", path+".sound.example.com", err)
		}
		if !got.Response.Allowed {
			return fmt.Errorf("admission webhook %q denied the request: %s", path+".sound.example.com", got.Response.Status.Message)
		}
		if patch, err := jsonpatch.DecodePatch(got.Response.Patch); err == nil {
			data, _ := json.Marshal(object.Object)
			if data, err = patch.Apply(data); err != nil {
				return err
			}
			_ = json.Unmarshal(data, &object.Object)
		}
	}
	return nil
}

// TestAPIServer: what the dry run of a sample shows, and what it does not show.
func TestAPIServer(t *testing.T) {
	const mutating, validating = "mutate.sound.example.com", "validate.sound.example.com"
	replace := func(with error) func(*unstructured.Unstructured, error) error {
		return func(*unstructured.Unstructured, error) error { return with }
	}
	for name, test := range map[string]struct {
		server  apiServer
		webhook string
		want    framework.Verdict
		text    string
	}{
		"denied only by the server": {apiServer{answer: replace(errors.New(`admission webhook "validate.sound.example.com" denied the request: no`))}, validating, framework.Fail, "but not when the API server calls it"},
		"no change": {apiServer{answer: func(object *unstructured.Unstructured, err error) error {
			object.SetLabels(map[string]string{"app": "good"})
			return err
		}}, mutating, framework.Fail, "none of the changes"},
		"another message": {apiServer{answer: func(_ *unstructured.Unstructured, err error) error {
			if err != nil {
				err = errors.New(`admission webhook "validate.sound.example.com" denied the request without explanation`)
			}
			return err
		}}, validating, framework.Fail, "the message of the denial is another one"},
		"no call":        {apiServer{answer: replace(errors.New(`failed calling webhook "validate.sound.example.com": connection refused`))}, validating, framework.Fail, "cannot call the webhook"},
		"another reason": {apiServer{answer: replace(errors.New(`pods is forbidden: exceeded quota`))}, validating, framework.Inconclusive, "for another reason"},
		"ignored":        {apiServer{answer: replace(nil)}, validating, framework.Fail, "the API server allows it, but the webhook denies it"},
		"defaults": {apiServer{defaults: func(u *unstructured.Unstructured) {
			pod := podPath(*u)
			_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "main", "image": "good"}}, append(pod, "containers")...)
		}}, validating, framework.Inconclusive, "with its defaults"},
	} {
		t.Run(name, func(t *testing.T) {
			s := soundSubject(fault{})
			s.Reject = s.Reject[:1]
			test.server.handler = s.Handler
			s.APIServer.DryRun = test.server.dryRun
			checkServerRule(t, s, map[string]framework.Verdict{test.webhook: test.want}, test.text)
		})
	}
}

// TestAPIServerShowsNothing: if only samples are accepted that the webhook does not change, nothing shows that it was called.
func TestAPIServerShowsNothing(t *testing.T) {
	s := soundSubject(fault{})
	same := pod("good", "good")
	same.Labels[label] = "true"
	s.Allow = []check.Sample{{Manifest: check.Manifest{Object: same}}}
	s.Reject = nil
	both := map[string]framework.Verdict{"mutate.sound.example.com": framework.Inconclusive, "validate.sound.example.com": framework.Inconclusive}
	checkServerRule(t, s, both, "nothing shows that it called the webhook")
	same.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent // now there is nothing that could be a default either
	checkServerRule(t, s, both, "nothing shows that it called the webhook")
}

// TestAPIServerNamespace: namespaced samples are sent in the namespace, without what only an API server sets.
func TestAPIServerNamespace(t *testing.T) {
	s := soundSubject(fault{})
	next, sent := s.APIServer.DryRun, 0
	s.APIServer.DryRun = func(ctx context.Context, object *unstructured.Unstructured) error {
		if sent++; object.GetNamespace() != "contract-run" || object.GetManagedFields() != nil || object.GetUID() != "" {
			t.Errorf("sent %v", object.Object["metadata"])
		}
		return next(ctx, object)
	}
	checkServerRule(t, s, map[string]framework.Verdict{"mutate.sound.example.com": framework.Pass, "validate.sound.example.com": framework.Pass}, "")
	if sent != 4 {
		t.Errorf("%d dry runs, want one for each sample", sent)
	}
}

func checkServerRule(t *testing.T, s check.Subject, want map[string]framework.Verdict, text string) {
	t.Helper()
	for _, each := range checkAll(t, s) {
		if verdict, ok := want[each.webhook]; ok && each.Rule.ID == "WH-SERVER-1" && (each.Verdict != verdict || !strings.Contains(each.Reason, text)) {
			t.Errorf("%s: got %s (%s), want %s with %q", each.webhook, each.Verdict, each.Reason, verdict, text)
		}
	}
}
