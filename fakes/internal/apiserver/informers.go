package apiserver

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/internal/processes"
)

// Informers are the informers that plugins make themselves with clients of this server. Unlike those
// of a World, they get their objects by list and watch, on goroutines of client-go. The zero value
// has none.
type Informers struct {
	mu sync.Mutex
	// watches are the open watches. listed has the lists whose watch has not begun yet, by
	// Request.selected.
	watches map[*stream]bool
	listed  map[string]bool
	// fresh is true if a watch or a list was answered since the last Wait.
	fresh bool
}

// ByInformer reports whether the calling goroutine fills the cache of an informer.
func ByInformer() bool {
	return processes.In(func(function string) bool {
		return strings.HasPrefix(function, "k8s.io/client-go/tools/cache.(*Reflector).")
	})
}

// ReadFrom makes a list or watch read from another store than that of the server.
func (r *Request) ReadFrom(objects *Store) { r.objects = objects }

// selected identifies what a list or watch selects.
func (r *Request) selected() string {
	return r.Call.Resource.String() + " " + r.Call.Namespace + " " + r.query.Get("labelSelector") + " " + r.query.Get("fieldSelector")
}

func (i *Informers) list(r *Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.listed == nil {
		i.listed = map[string]bool{}
	}
	i.listed[r.selected()], i.fresh = true, true
}

func (i *Informers) watch(s *stream) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.watches == nil {
		i.watches = map[*stream]bool{}
	}
	i.watches[s] = true
	delete(i.listed, s.r.selected())
}

func (i *Informers) end(s *stream) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.watches, s)
}

func (i *Informers) delivered() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fresh = true
}

const (
	// unwatched is how long Wait waits at most: an informer may have stopped after its list.
	unwatched = 200 * time.Millisecond
	// What an informer has read from its watch is in its cache after its goroutines have run a few
	// times. Wait lets them run so many times, with a pause in between.
	turns = 10
	pause = 200 * time.Microsecond
)

// Wait waits until the informers have read all changes so far and had time to put them into their
// caches, or until the context ends.
func (i *Informers) Wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, unwatched)
	defer cancel()
	for i.behind() && ctx.Err() == nil {
		time.Sleep(pause) //nolint:forbidigo // client-go does not tell when an informer has read an event
	}
	i.mu.Lock()
	fresh := i.fresh
	i.fresh = false
	clear(i.listed) // what has no watch by now has none
	i.mu.Unlock()
	for n := 0; fresh && n < turns; n++ {
		runtime.Gosched()
		time.Sleep(pause) //nolint:forbidigo // nor when it has put the event into its cache
	}
}

// behind reports whether an informer has to read something.
func (i *Informers) behind() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for watch := range i.watches {
		if watch.behind() {
			return true
		}
	}
	return len(i.listed) > 0
}
