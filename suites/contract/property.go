package contract

import (
	"slices"

	"github.com/admissiontest/admissiontest/framework"
)

// ID names a Property: a letter for its subject and a number. IDs are never reused.
type ID string

// Property is one law for plugins.
type Property struct {
	// ID is stable, and the name of the subtest.
	ID ID
	// Level is how binding it is: MUST and SHOULD are checked unless waived, MAY only
	// when asked for by With.
	Level framework.Level
	// Title is the law, in one sentence.
	Title string
	// Why says what has gone wrong where it was broken, Source where to read of it.
	Why    string
	Source []string
	// Check puts the property to a Subject.
	Check func(*Trial)
	// alone is true of one that changes what belongs to the process: no other property
	// runs meanwhile.
	alone bool
}

// Properties returns every Property, in the order in which they run.
func Properties() []Property {
	return slices.Concat(
		handlesProperties(), validateProperties(), admitProperties(), aliasProperties(),
		panicProperties(), errorProperties(), dryRunProperties(), scopeProperties(),
		readyProperties(), initializationProperties(), configProperties(), lifecycleProperties(),
	)
}
