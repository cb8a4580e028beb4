package hook

import "context"

// meeting is a barrier that calls wait at. It is guarded by owner.mu.
type meeting struct {
	waiting int
	open    chan struct{}
}

// meet waits until size calls of the owner are at the barrier, the caller gives up,
// or the owner is forgotten. The calls that met leave an empty barrier behind.
func (o *owner) meet(ctx context.Context, name string, size int) {
	o.mu.Lock()
	here := o.meetings[name]
	if here == nil {
		here = &meeting{open: make(chan struct{})}
		o.meetings[name] = here
	}
	here.waiting++
	if here.waiting >= size {
		close(here.open)
		delete(o.meetings, name)
	}
	o.mu.Unlock()

	select {
	case <-here.open:
	case <-o.gone:
	case <-ctx.Done():
		o.mu.Lock()
		here.waiting--
		o.mu.Unlock()
	}
}
