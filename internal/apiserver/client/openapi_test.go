package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1":
			fmt.Fprintf(w, `{"path": %q}`, r.URL.Path)
		case "/openapi/v3/apis/broken.example.com/v1":
			fmt.Fprint(w, "<html>")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	for of, want := range map[schema.GroupVersion]string{
		{Version: "v1"}: "/openapi/v3/api/v1", {Group: "apps", Version: "v1"}: "/openapi/v3/apis/apps/v1",
	} {
		t.Run(of.String(), func(t *testing.T) {
			if document, err := c.OpenAPI(t.Context(), of); err != nil || document["path"] != want {
				t.Errorf("%s: got %v, %v; want the document at %s", of, document, err, want)
			}
		})
	}
	if _, err := c.OpenAPI(t.Context(), schema.GroupVersion{Group: "broken.example.com", Version: "v1"}); err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "broken.example.com/v1") {
		t.Errorf("a document that is not JSON: got %v; want an error with the group", err)
	}
	if _, err := c.OpenAPI(t.Context(), schema.GroupVersion{Group: "none.example.com", Version: "v1"}); !apierrors.IsNotFound(err) {
		t.Errorf("no document: got %v; want NotFound", err)
	}
}
