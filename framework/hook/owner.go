package hook

import (
	"context"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// owner has all Hooks of one owner. Each owner has its own lock, so that owners do not
// wait for each other.
type owner struct {
	gone chan struct{} // closed by Unregister

	mu         sync.Mutex
	userFilter func(user string) bool // nil accepts every user
	hooks      []*registration
	recordings []*Recording
	barriers   map[string]*barrier
}

func newOwner() *owner {
	return &owner{gone: make(chan struct{}), barriers: map[string]*barrier{}}
}

func (s *Server) owner(name string) *owner {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.owners[name]
}

// ownerOrNew returns the owner of that name. The caller holds s.mu.
func (s *Server) ownerOrNew(name string) *owner {
	if s.owners[name] == nil {
		s.owners[name] = newOwner()
	}
	return s.owners[name]
}

// Unregister removes the Hooks of an owner and ends its Recordings. Calls that wait
// at a barrier or for a delay are answered at once; calls that hang are disconnected.
// Later requests to these Hooks are counted by UnmatchedRequests.
func (s *Server) Unregister(ownerName string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.owners[ownerName]
	if of == nil {
		return
	}
	delete(s.owners, ownerName)
	for _, registered := range of.hooks {
		delete(s.paths, registered.path)
	}
	of.hooks = nil
	s.setAliases(of)
	close(of.gone)
}

// SetUserFilter sets the users whose requests an owner's Hooks are for, by name. On a
// cluster, controllers write to every namespace too: a call made for the request of
// another user is allowed, is not recorded and uses no reply of the Script. Nil
// accepts every user. A call without a user name is always accepted.
//
// The filter does not change Faults of the connection.
func (s *Server) SetUserFilter(ownerName string, filter func(user string) bool) {
	s.mu.Lock()
	of := s.ownerOrNew(ownerName)
	s.mu.Unlock()
	of.mu.Lock()
	defer of.mu.Unlock()
	of.userFilter = filter
}

// excludes reports whether the user filter excludes a call.
func (o *owner) excludes(call *framework.Call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.userFilter == nil {
		return false
	}
	user, _ := call.Request()["userInfo"].(map[string]any)
	name, _ := user["username"].(string)
	return name != "" && !o.userFilter(name)
}

// userOf returns the owner to which a call of a Shared Hook belongs.
func (s *Server) userOf(shared *registration, call *framework.Call) *owner {
	request := call.Request()
	texts := []string{asText(request["namespace"]), asText(request["name"])}
	for _, field := range []string{"object", "oldObject", "userInfo"} {
		object, _ := request[field].(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		texts = append(texts, asText(metadata["name"]), asText(metadata["generateName"]), asText(object["username"]))
	}
	for _, text := range texts {
		if id, ok := runid.ScenarioIn(text); ok {
			if of := s.owner(id); of != nil {
				return of
			}
		}
	}
	return shared.owner
}

func asText(value any) string { text, _ := value.(string); return text }

// record records a call in the Recordings.
func (o *owner) record(call *framework.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call.Started = time.Now()
	for _, recording := range o.recordings {
		recording.calls = append(recording.calls, call)
	}
}

// nextReply returns the reply of the Script for a call.
func (r *registration) nextReply() Reply {
	r.owner.mu.Lock()
	defer r.owner.mu.Unlock()
	if len(r.script.Replies) == 0 {
		return Reply{}
	}
	reply := r.script.Replies[min(r.next, len(r.script.Replies)-1)]
	r.next++
	return reply
}

// fail adds an error to the Recordings.
func (o *owner) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, recording := range o.recordings {
		if recording.err == nil {
			recording.err = err
		}
	}
}

// setAnswer describes the answer of a call that is not finished.
func (o *owner) setAnswer(call *framework.Call, answer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call.Answer = answer
}

// setResponse notes the response of a call.
func (o *owner) setResponse(call *framework.Call, a answer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call.Code, call.Response, call.ResponseBytes = a.code, a.response, len(a.body)
}

// finish sets the end of the call. Only the first finish of a call counts.
func (v *visit) finish(answer string) {
	v.owner.mu.Lock()
	defer v.owner.mu.Unlock()
	if v.call.Finished.IsZero() {
		v.call.Answer, v.call.Finished, v.call.GivenUp = answer, time.Now(), v.ctx.Err() != nil
	}
}

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
