package hook

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
)

// owner is all that belongs to one owner of Hooks. Its lock is its own, so that
// owners never wait for one another.
type owner struct {
	gone chan struct{} // closed by Forget

	mu       sync.Mutex
	heeds    func(user string) bool // nil heeds everybody
	hooks    []*registration
	calls    []*framework.Call // guarded one by one by mu as well
	meetings map[string]*meeting
	err      error
}

func newOwner() *owner {
	return &owner{gone: make(chan struct{}), meetings: map[string]*meeting{}}
}

func (s *Server) owner(name string) *owner {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.owners[name]
}

// Calls returns what the owner's Hooks were asked since Mark, or since the first
// was registered, in the order of arrival. They are the caller's to keep and write
// to. A call that has not been answered yet has a zero Finished. Finished is taken
// right before the answer is sent, so that no caller has an answer before its call
// has a Finished, and it is not after the moment in which the caller has it.
func (s *Server) Calls(ownerName string) []framework.Call {
	of := s.owner(ownerName)
	if of == nil {
		return nil
	}
	of.mu.Lock()
	calls := make([]framework.Call, 0, len(of.calls))
	for _, call := range of.calls {
		calls = append(calls, *call)
	}
	of.mu.Unlock()
	// What the copies share is never written to after the call has arrived.
	for i := range calls {
		calls[i].Header = calls[i].Header.Clone()
		calls[i].Protocols = slices.Clone(calls[i].Protocols)
		calls[i].Query = maps.Clone(calls[i].Query)
		for name, values := range calls[i].Query {
			calls[i].Query[name] = slices.Clone(values)
		}
		calls[i].Review = runtime.DeepCopyJSON(calls[i].Review)
	}
	return calls
}

// Mark forgets the owner's recorded calls, those not yet answered included. Scripts
// go on with the reply they are at.
func (s *Server) Mark(ownerName string) {
	if of := s.owner(ownerName); of != nil {
		of.mu.Lock()
		of.calls = nil
		of.mu.Unlock()
	}
}

// Forget drops all that the owner has: its Hooks, its recorded calls and its error.
// Calls that wait at a barrier or are delayed are answered at once, and those that
// hang are cut off. What comes for its Hooks afterwards is a stray.
func (s *Server) Forget(ownerName string) {
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
	maps.DeleteFunc(s.also, func(_ Address, registered *registration) bool { return registered.owner == of })
	close(of.gone)
}

// Err returns the first error of the owner: one that a Meanwhile function returned,
// or an answer that could not be made. Nil means that there was none, or that there
// is no such owner.
func (s *Server) Err(ownerName string) error {
	of := s.owner(ownerName)
	if of == nil {
		return nil
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.err
}

func (o *owner) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// Heed says whose requests the owner's Hooks are for, by the user's name. Calls
// made for others' are allowed, and are neither recorded nor given a reply of the
// script: on a cluster with controllers these write to every namespace too. Nil
// heeds everybody, as do calls that name no user.
//
// What is wrong with a connection stays so for everybody.
func (s *Server) Heed(ownerName string, ours func(user string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.owners[ownerName]
	if of == nil {
		of = newOwner()
		s.owners[ownerName] = of
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	of.heeds = ours
}

// foreign reports whether a call was made for the request of somebody whom the
// owner does not heed.
func (o *owner) foreign(call *framework.Call) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.heeds == nil {
		return false
	}
	user, _ := call.Request()["userInfo"].(map[string]any)
	name, _ := user["username"].(string)
	return name != "" && !o.heeds(name)
}

// arrive records a call and, where it carries a review, takes its reply.
func (r *registration) arrive(call *framework.Call, reviewed bool) Reply {
	o := r.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	call.Started = time.Now()
	o.calls = append(o.calls, call)
	if !reviewed || len(r.script.Replies) == 0 {
		return Reply{}
	}
	reply := r.script.Replies[min(r.next, len(r.script.Replies)-1)]
	r.next++
	return reply
}

// say notes what is being answered, finish that it is. Only the first finish counts.
func (o *owner) say(call *framework.Call, answer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	call.Answer = answer
}

func (o *owner) finish(call *framework.Call, answer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if call.Finished.IsZero() {
		call.Answer, call.Finished = answer, time.Now()
	}
}
