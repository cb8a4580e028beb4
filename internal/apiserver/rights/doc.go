// Package rights finds out, before anything is created, whether the user has the
// rights that a run needs: those for the requests of its scenarios, and those for
// installing, fencing and removing (needs.go, references.go).
package rights
