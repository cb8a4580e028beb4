package hook_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/admissiontest/admissiontest/framework/hook"
)

// A call of a Shared Hook is recorded for the scenario of the request, and for the owner of the Hook if
// it belongs to no scenario.
func TestSharedHook(t *testing.T) {
	server := start(t)
	server.recording("at-x-00001")
	server.recording("at-x-00002")
	shared := proxyHook("at-x-installed", underTest(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	shared.Shared = true
	endpoint, err := server.Register(shared)
	if err != nil {
		t.Fatal(err)
	}
	to := callerOf(t, endpoint)
	for _, test := range []struct{ request, owner string }{
		{`"namespace": "at-x-00001"`, "at-x-00001"},
		{`"namespace": "at-x-00002-far", "name": "at-x-00001"`, "at-x-00002"},
		{`"name": "at-x-00001-role"`, "at-x-00001"},
		{`"object": {"metadata": {"generateName": "at-x-00002-"}}`, "at-x-00002"},
		{`"oldObject": {"metadata": {"name": "widgets.at-x-00001.example.com"}}`, "at-x-00001"},
		{`"userInfo": {"username": "at-x-00002-user"}`, "at-x-00002"},
		{`"namespace": "at-x-00003"`, "at-x-installed"},
		{`"namespace": "at-x-000010"`, "at-x-installed"},
		{`"namespace": 1`, "at-x-installed"},
	} {
		t.Run(test.request, func(t *testing.T) {
			before := map[string]int{}
			for owner, recording := range server.recordings {
				before[owner] = len(recording.Calls())
			}
			if _, err := to.post(t.Context(), fmt.Appendf(nil, `{"apiVersion": %q, "kind": "AdmissionReview", "request": {"uid": "u", %s}}`, v1, test.request)); err != nil {
				t.Fatal(err)
			}
			for owner, recording := range server.recordings {
				if got := len(recording.Calls()) - before[owner]; (got == 1) != (owner == test.owner) || got > 1 {
					t.Errorf("%s got %d calls; want one for %s", owner, got, test.owner)
				}
			}
		})
	}
}

// A client that has given up a call and waits sees its end.
func TestWait(t *testing.T) {
	server := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	to := register(t, server, "a", hook.Reply{Fault: hook.Hang, Meanwhile: func() error { cancel(); return nil }})
	if _, err := to.post(ctx, review(v1, "u-1")); err == nil {
		t.Fatal("the call was answered")
	}
	server.recordings["a"].Wait(t.Context())
	if calls := server.recordings["a"].Calls(); len(calls) != 1 || calls[0].Finished.IsZero() || !calls[0].GivenUp {
		t.Errorf("got %+v, want a call that was given up", calls)
	}
	if answered := register(t, server, "b").call(t); answered.StatusCode != http.StatusOK || server.recordings["b"].Calls()[0].GivenUp {
		t.Error("an answered call is given up")
	}
}
