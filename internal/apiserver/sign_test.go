package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// clientOf returns a client of a server.
func clientOf(t *testing.T, server *httptest.Server) *client.Client {
	t.Helper()
	c, err := client.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Stop does not wait for an API server that does not answer the renewal.
func TestStopDuringRenewal(t *testing.T) {
	renewing := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPut {
			renewing <- struct{}{}
			<-r.Context().Done()
		}
		_, _ = w.Write(body)
	}))
	defer server.Close()
	rec := newSign(clientOf(t, server), "x")
	if err := rec.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-renewing
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		rec.end()
	}()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	select {
	case <-stopped:
	case <-late.C:
		t.Error("the renewal was not stopped")
	}
}

// A run is alive if it renewed its sign recently, unless its process was on this machine
// and has ended.
func TestAlive(t *testing.T) {
	process := exec.CommandContext(t.Context(), "true")
	if err := process.Run(); err != nil {
		t.Skipf("no process to end: %v", err)
	}
	dead := fmt.Sprintf("%s, process %d", hostname(), process.Process.Pid)
	for name, test := range map[string]struct {
		holder string
		age    time.Duration
		want   bool
	}{
		"this process":                  {holder(), 0, true},
		"ended process":                 {dead, 0, false},
		"process of another machine":    {strings.Replace(dead, hostname(), "elsewhere", 1), 0, true},
		"not renewed":                   {holder(), 2 * aliveFor, false},
		"holder that another one wrote": {"somewhere", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			run := runState{id: "x", holder: test.holder, renewed: time.Now().Add(-test.age)}
			if got := run.alive(); got != test.want {
				t.Errorf("%s (%s): alive %t, want %t", name, run, got, test.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	stored := unstructured.Unstructured{Object: (&sign{run: "x"}).manifest()}
	if got, err := parseSign("x", stored); err != nil || got.holder != holder() || !got.alive() {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parseSign("x", unstructured.Unstructured{}); err == nil {
		t.Error("a ConfigMap without data is a sign")
	}
}

// Other clients can write a ConfigMap with the label of a run, and an API server can ignore selectors. A run has its
// sign in its own namespace.
func TestRunsIgnoresOthers(t *testing.T) {
	item := func(namespace, name, run string) map[string]any {
		manifest := (&sign{run: run}).manifest()
		manifest["metadata"] = map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{RunLabel: run}}
		return manifest
	}
	list := map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "items": []any{
		item(signNamespace("mine"), signName, "mine"), item("tenant", signName, "elsewhere"), item(signNamespace("other"), "another", "other"),
		item(signNamespace(""), signName, ""),
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	found, err := runs(t.Context(), clientOf(t, server))
	if found := slices.Sorted(maps.Keys(found)); err != nil || !slices.Equal(found, []string{"mine"}) {
		t.Errorf("runs %q, %v; want only mine", found, err)
	}
}
