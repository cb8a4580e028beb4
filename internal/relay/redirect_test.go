package relay

import (
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
)

// A node that answers the request for a port with a redirect does not get the credentials
// sent elsewhere.
func TestDialersFollowNoRedirect(t *testing.T) {
	asked, elsewhere := 0, 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	s, err := prepare(Options{Config: &rest.Config{Host: server.URL, BearerToken: "token-of-the-operator"}, Run: "r1", Image: "i", Hooks: hooks(t)})
	if err != nil {
		t.Fatal(err)
	}
	newer, older, err := s.dialers(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, dialer := range map[string]httpstream.Dialer{"websocket": newer, "SPDY": older} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			if _, _, err := dialer.Dial(constants.PortForwardV1Name); err == nil {
				t.Error("a redirect is a connection")
			}
			if asked != 1 || elsewhere != 0 {
				t.Errorf("%d requests to the API server, %d elsewhere; want 1 and none", asked, elsewhere)
			}
		})
	}
}
