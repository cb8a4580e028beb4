package fakes

import (
	"errors"
	"slices"

	"github.com/admissiontest/admissiontest/internal/minor"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// registration is a handler of an informer.
type registration struct {
	cache.ResourceEventHandlerRegistration // its HasSyncedChecker is the informer's

	inf     *informer
	handler cache.ResourceEventHandler
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool { return r.inf.HasSynced() }

// delivery is one event for one handler.
type delivery struct {
	to          *registration
	typ         watch.EventType
	old, object any
	initial     bool
}

// AddEventHandlerWithOptions implements cache.SharedInformer. When it returns, the handler
// has been called for each object in the cache.
func (inf *informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, errors.New("add event handler: the handler is nil: expected a cache.ResourceEventHandler")
	}
	r := &registration{minor.Registration(inf.checker), inf, handler}
	unlock := inf.use()
	if inf.stopped {
		unlock()
		return nil, errors.New("add event handler: the informer was stopped already: add handlers before")
	}
	inf.handlers = append(inf.handlers, r)
	for _, it := range inf.sortedLocked() {
		inf.handLocked(it, true)
		inf.w.queue = append(inf.w.queue, delivery{to: r, typ: watch.Added, object: it.object, initial: true})
	}
	unlock()
	inf.w.deliver()
	return r, nil
}

// RemoveEventHandler implements cache.SharedInformer.
func (inf *informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	defer inf.use()()
	inf.handlers = slices.DeleteFunc(inf.handlers, func(r *registration) bool { return r == handle })
	return nil
}

// notifyLocked queues an event for all handlers.
func (inf *informer) notifyLocked(d delivery) {
	for _, r := range inf.handlers {
		d.to = r
		inf.w.queue = append(inf.w.queue, d)
	}
}

// deliver calls the handlers for all queued events, unless another goroutine does so now.
func (w *World) deliver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		return
	}
	w.busy = true
	defer func() { w.busy = false }()
	for len(w.queue) > 0 {
		d := w.queue[0]
		w.queue = w.queue[1:]
		w.call(d)
	}
}

// call calls a handler, without holding the lock.
func (w *World) call(d delivery) {
	if !slices.Contains(d.to.inf.handlers, d.to) {
		return
	}
	w.mu.Unlock()
	defer w.mu.Lock()
	switch d.typ {
	case watch.Added:
		d.to.handler.OnAdd(d.object, d.initial)
	case watch.Modified:
		d.to.handler.OnUpdate(d.old, d.object)
	default:
		d.to.handler.OnDelete(d.object)
	}
}
