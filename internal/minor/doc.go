// Package minor knows what differs between the minor versions of Kubernetes that this
// module compiles against, 0.34 to 0.37, for whoever initializes plugins.
//
// An interface that one minor has and another has not cannot be named in source that
// compiles against both. So the table of what API servers inject ([Table]) is data:
// names of interfaces, methods and parameter types. A plugin is asked by reflection
// whether it has such a method ([Wants.Setter]), which is the question that upstream's
// type assertion asks.
//
// # Promise
//
// The table has every Wants interface that k8s.io/apiserver declares in any of these
// minors, in the order in which an API server's initializers go about them; a test
// compares it with the source of the minor compiled against.
//
// # Not promised
//
// Injections of API servers other than Kubernetes' own: those are for their authors
// to add.
package minor
