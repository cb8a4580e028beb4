package webhook

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Recorder records what the clients of a webhook write to an API server, for Subject.Effects:
//
//	var recorder webhook.Recorder
//	config.Wrap(recorder.Wrap) // config is the *rest.Config of the client of the webhook
//	webhook.Run(t, webhook.Subject{Effects: recorder.Writes, …})
//
// It records every request that is not a GET, except dry runs and reviews of access and of tokens, which store nothing. The zero
// value is ready to use.
type Recorder struct {
	mu     sync.Mutex
	writes []string
}

// Wrap returns a transport that records the requests that it sends with next.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return recording{r, next} }

// Writes returns the method and the path of each request so far, as a []string.
func (r *Recorder) Writes() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.writes)
}

type recording struct {
	recorder *Recorder
	next     http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (r recording) RoundTrip(request *http.Request) (*http.Response, error) {
	stores := request.Method != http.MethodGet && request.Method != http.MethodHead && request.URL.Query().Get("dryRun") == ""
	for _, group := range []string{"/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"} {
		stores = stores && !strings.Contains(request.URL.Path, group) // the address of an API server can have a path
	}
	if stores {
		r.recorder.mu.Lock()
		r.recorder.writes = append(r.recorder.writes, request.Method+" "+request.URL.Path)
		r.recorder.mu.Unlock()
	}
	return r.next.RoundTrip(request)
}
