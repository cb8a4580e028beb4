// Package minor has the differences between the minor versions of Kubernetes that this module
// compiles with, 0.34 to 0.37.
//
// Code that compiles with two minors cannot name a type that only one of them has. Build tags do
// not help, because users would have to set them. Instead:
//
//   - The interfaces by which plugins ask for values ([Table]) are data: names of interfaces,
//     methods and parameter types. [Wants.Setter] finds the method of a plugin by reflection, with
//     the same result as Kubernetes' type assertion.
//   - [Informer], [Registration], [Controller] and [Factory] add methods with result types that
//     client-go has since 0.36.
//
// # Promise
//
// [Table] and [NeverInjected] together have every Wants interface that k8s.io/apiserver declares in
// one of these minors. Table has the order of an API server's initializers. A test compares them
// with the source of the minor that it is compiled with.
//
// # Not promised
//
// The table has only the injections of Kubernetes' own API servers. It does not depend on the
// minor that this package is compiled with: [Wants.Since] has the first minor of each interface.
package minor
