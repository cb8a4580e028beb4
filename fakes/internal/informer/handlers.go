package informer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/internal/minor"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// registration is a handler of an informer.
type registration struct {
	cache.ResourceEventHandlerRegistration // only its HasSyncedChecker is used

	inf     *Informer
	handler cache.ResourceEventHandler
	// initial is the number of queued events for the objects that were in the cache at first.
	// synced is closed when the informer has synced and no such event is left.
	initial   int
	synced    chan struct{}
	hasSynced bool
}

// HasSynced implements cache.ResourceEventHandlerRegistration: the handler has been called for
// the first objects of the cache.
func (r *registration) HasSynced() bool {
	defer r.inf.use()()
	r.inf.askLocked()
	return r.hasSynced
}

// checker returns what HasSyncedChecker returns.
func (r *registration) checker() minor.Checker { return registrationChecker{checker{r.inf}, r} }

type registrationChecker struct {
	checker
	r *registration
}

// Done implements minor.Checker.
func (c registrationChecker) Done() <-chan struct{} {
	defer c.r.inf.use()()
	c.r.inf.askLocked()
	return c.r.synced
}

// updateLocked closes synced if the informer has synced and the handler has received the first
// objects.
func (r *registration) updateLocked() {
	if !r.hasSynced && r.inf.hasSynced && r.initial == 0 {
		r.hasSynced = true
		close(r.synced)
	}
}

// AddEventHandlerWithOptions implements cache.SharedInformer. The handler gets an event for each
// object in the cache, on the goroutine of events. HasSynced of the registration is true
// afterwards.
func (inf *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, errors.New("add event handler: the handler is nil: expected a cache.ResourceEventHandler")
	}
	r := &registration{inf: inf, handler: handler, synced: make(chan struct{})}
	r.ResourceEventHandlerRegistration = minor.Registration(r.checker)
	inf.set.beforeHandler()
	defer inf.use()()
	if inf.stopped {
		return nil, errors.New("add event handler: the informer was stopped already: add handlers before")
	}
	inf.handlers = append(inf.handlers, r)
	for _, it := range inf.sortedLocked() {
		inf.handLocked(it, true)
		inf.set.enqueueLocked(delivery{to: r, typ: watch.Added, object: it.object, initial: true})
	}
	r.updateLocked()
	return r, nil
}

// RemoveEventHandler implements cache.SharedInformer.
func (inf *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	defer inf.use()()
	inf.handlers = slices.DeleteFunc(inf.handlers, func(r *registration) bool { return r == handle })
	return nil
}

// notifyLocked queues an event for all handlers.
func (inf *Informer) notifyLocked(d delivery) {
	d.initial = inf.filling && d.typ == watch.Added
	for _, r := range inf.handlers {
		d.to = r
		inf.set.enqueueLocked(d)
	}
}

// Resync queues a call of OnUpdate of each event handler for each object in its cache, as informers
// do at each resync period: the old and the new object are the same. It does not wait for the
// calls. It returns the number of event handlers.
func (s *Set) Resync() (handlers int) {
	s.store.Lock()
	defer s.store.Unlock()
	ids := make([]any, 0, len(s.informers))
	for id, inf := range s.informers {
		if len(inf.handlers) > 0 {
			ids, handlers = append(ids, id), handlers+len(inf.handlers)
		}
	}
	slices.SortFunc(ids, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, id := range ids {
		inf := s.informers[id]
		for _, it := range inf.sortedLocked() {
			inf.handLocked(it, true)
			inf.notifyLocked(delivery{typ: watch.Modified, old: it.object, object: it.object})
		}
	}
	return handlers
}
