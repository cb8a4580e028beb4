package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

var _ io.ReadCloser = &stream{}

// stream is the body of a watch. Its Read waits for events, so it needs no goroutine.
type stream struct {
	r      *Request
	s      selection
	next   int // index in the history of the store
	ready  []byte
	idle   bool // the client waits for an event
	closed chan struct{}
	close  func()
	end    <-chan time.Time // nil means that the watch does not end by itself
}

// watch responds with a stream of the present objects, if the client requested them, and of
// later changes.
// See https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists
func (r *Request) watch() (reply, error) {
	s, err := r.selection()
	if err != nil {
		return reply{}, err
	}
	body := &stream{r: r, s: s, closed: make(chan struct{})}
	body.close = sync.OnceFunc(func() { close(body.closed) })
	if seconds, err := strconv.Atoi(r.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		closed := body.close
		body.end, body.close = timer.C, func() { timer.Stop(); closed() }
	}
	if err := body.begin(); err != nil {
		body.close()
		return reply{}, err
	}
	if r.Call.Informer {
		r.server.Informers.watch(body)
		closed := body.close
		body.close = func() { r.server.Informers.end(body); closed() }
	}
	return reply{code: http.StatusOK, stream: body}, nil
}

// begin finds the first event in the history and makes the initial events ready.
func (b *stream) begin() error {
	version, initial := b.r.query.Get("resourceVersion"), b.r.query.Get("sendInitialEvents")
	revision := uint64(0)
	if version != "" {
		var err error
		if revision, err = strconv.ParseUint(version, 10, 64); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("watch: resourceVersion %q is not a number", version))
		}
	}
	objects := b.r.objects
	objects.Lock()
	defer objects.Unlock()
	if initial != "true" && (revision != 0 || initial == "false") {
		if revision == 0 {
			revision = objects.Revision()
		}
		b.next = objects.After(revision)
		return nil
	}
	for _, object := range objects.List(b.r.kind, b.s.namespace) {
		if !b.s.has(object) {
			continue
		}
		if err := b.put(watch.Added, object); err != nil {
			return err
		}
	}
	b.next = len(objects.History())
	if initial == "true" {
		return b.put(watch.Bookmark, b.bookmark())
	}
	return nil
}

// bookmark returns the object of the event that ends the initial events.
func (b *stream) bookmark() runtime.Object {
	object := b.r.kind.Empty()
	kinds.Metadata(object).SetResourceVersion(b.r.objects.Version())
	kinds.Metadata(object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return object
}

// put appends an event to those that are ready.
func (b *stream) put(typ watch.EventType, object runtime.Object) error {
	encoded, err := b.r.encodeFor(object)
	if err != nil {
		return fmt.Errorf("encode event of watch: %w", err)
	}
	event, err := json.Marshal(metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Raw: encoded}})
	if err != nil {
		return fmt.Errorf("encode event of watch: %w", err)
	}
	b.ready = append(append(b.ready, event...), '\n')
	return nil
}

// Read implements io.Reader.
func (b *stream) Read(p []byte) (int, error) {
	for len(b.ready) == 0 {
		changed, err := b.advance()
		if err != nil {
			return 0, err
		}
		if changed == nil {
			continue
		}
		select {
		case <-changed:
		case <-b.end:
			return 0, io.EOF
		case <-b.closed:
			return 0, io.EOF
		case <-b.r.Call.Context.Done():
			return 0, b.r.Call.Context.Err()
		}
	}
	if b.r.Call.Informer {
		b.r.server.Informers.delivered()
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}

// advance makes the next event ready. If there is none yet, it returns a channel that is closed
// at the next change.
func (b *stream) advance() (<-chan struct{}, error) {
	objects := b.r.objects
	objects.Lock()
	defer objects.Unlock()
	for b.next < len(objects.History()) {
		c := objects.History()[b.next]
		b.next++
		if c.Kind != b.r.kind {
			continue
		}
		if typ, ok := b.s.event(c); ok {
			b.idle = false
			return nil, b.put(typ, c.Object)
		}
	}
	b.idle = true
	return objects.Changed.Wait(), nil
}

// behind reports whether the client has to read something.
func (b *stream) behind() bool {
	if b.r.Call.Context.Err() != nil {
		return false
	}
	b.r.objects.Lock()
	defer b.r.objects.Unlock()
	return !b.idle || b.next < len(b.r.objects.History())
}

// Close implements io.Closer.
func (b *stream) Close() error {
	b.close()
	return nil
}
