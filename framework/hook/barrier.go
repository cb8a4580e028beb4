package hook

import "context"

// barrier is a point at which calls wait for each other. It is guarded by owner.mu.
type barrier struct {
	waiting int
	open    chan struct{}
}

// waitAtBarrier returns when size calls of the owner wait at the barrier of that name,
// when the client disconnects, or when the owner is unregistered. The next calls meet
// at a new barrier.
func (o *owner) waitAtBarrier(ctx context.Context, name string, size int) {
	o.mu.Lock()
	current := o.barriers[name]
	if current == nil {
		current = &barrier{open: make(chan struct{})}
		o.barriers[name] = current
	}
	current.waiting++
	if current.waiting >= size {
		close(current.open)
		delete(o.barriers, name)
	}
	o.mu.Unlock()

	select {
	case <-current.open:
	case <-o.gone:
	case <-ctx.Done():
		o.mu.Lock()
		current.waiting--
		o.mu.Unlock()
	}
}
