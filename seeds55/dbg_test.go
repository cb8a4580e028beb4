package seeds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/admissiontest/admissiontest/suites/webhook"
)

func dbgFile(name string) webhook.Manifest { return webhook.Manifest{File: "testdata/" + name + ".yaml"} }

func traced(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
		var rv review
		_ = json.Unmarshal(b, &rv)
		if q := rv.Request; q != nil {
			fmt.Fprintln(os.Stderr, "TRACE", r.URL.Path, q.Operation, q.Resource.Group, q.Resource.Resource, q.SubResource, q.Kind.Kind, q.Namespace, q.Name, q.UserInfo.Username, bytes.Contains(q.Object.Raw, []byte("deletionTimestamp")))
		}
		h.ServeHTTP(w, r)
	})
}

// TestWrongReject: Reject samples that no webhook gets.
func TestWrongReject(t *testing.T) {
	s := &Server{}
	webhook.Run(t, webhook.Subject{
		Handler:        s.Handler(),
		Configurations: webhook.Files("config/crd.yaml", "config/webhook.yaml"),
		Allow:          webhook.SampleFiles("testdata/allow/*.yaml"),
		Reject: []webhook.Sample{
			{Manifest: dbgFile("cm"), Message: "nonsense"},
			{Manifest: dbgFile("pod-kubesystem"), Message: "nonsense"},
			{Manifest: dbgFile("allow/pod"), Operation: "DELETE", Message: "nonsense"},
		},
	}, webhook.Only("WH-VERDICT-1"), webhook.Strict())
}

func TestWhatArrives(t *testing.T) {
	s := &Server{}
	webhook.Run(t, webhook.Subject{
		Handler:        traced(s.Handler()),
		Configurations: webhook.Files("config/crd.yaml", "config/all.yaml"),
		Reject: []webhook.Sample{
			{Manifest: dbgFile("eviction"), Subresource: "eviction", Message: "nonsense"},
			{Manifest: dbgFile("scale-old"), Operation: "UPDATE", Subresource: "scale", Old: dbgFile("scale-old"), Message: "nonsense"},
		},
	}, webhook.Only("WH-VERDICT-1"))
}

func TestTrace(t *testing.T) {
	s := &Server{}
	webhook.Run(t, webhook.Subject{
		Handler:        traced(s.Handler()),
		Configurations: webhook.Files("config/crd.yaml", "config/webhook.yaml"),
		Allow:          webhook.SampleFiles("testdata/allow/*.yaml"),
		Reject:         []webhook.Sample{{Manifest: dbgFile("reject/widget-protected"), Operation: "DELETE"}, {Manifest: dbgFile("reject/widget-image")}},
	})
}
