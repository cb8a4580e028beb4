// Package load reads files of scenarios, strictly.
//
//	scenarios, err := load.Paths("testdata/scenarios")
//
// [FS] reads a catalogue from an fs.FS, and [Paths] reads files and folders. Both are methods of
// [Options] too. Package scenario describes the format.
//
// The package is public for programs that read or check scenarios without running
// them: editors, generators and reports. To run scenarios in go test, use package
// suites/conformance, which reads them itself.
//
// # What is checked
//
// A field that the format does not have, a missing one and a value of another type are errors. So is
// what YAML parsers read in different ways (see package scenario).
//
// The loader also checks that names have the right form, that each step has one
// action and no field that the action would ignore, that faults, capabilities and
// operators exist, that hooks and expected calls name webhooks of some
// configuration in the scenario, that placeholders can have a value, that scenario names are unique, and
// that no expectation holds whatever the result is: it is not empty, and where it holds without a field or a
// header, that is one of an AdmissionReview, an audit event or an API server.
//
// A document of kind PolicyTest becomes a scenario with a case for each of its requests: see [scenario.Cases].
//
// # Promise
//
// All errors of all files are returned together (at most 100 for each file). Each
// is a [*scenario.Error] with its position, what was expected and, if possible, a
// suggestion. Loading is deterministic: scenarios are sorted by name, errors by
// file and line. With an error, no scenario is returned. No file makes the loader panic,
// read more than 1 MiB of it (8 MiB of a file of manifests), or run for more than some seconds. The
// functions are safe for concurrent use.
//
// A scenario can refer to files with manifests in its tree: the fs.FS, or on the disk the Git repository
// or Go module that contains the scenario, else the folder above the one that was given. A path or a
// symbolic link that leads out of the tree is an error. No error shows a value of these files.
//
// # Not promised
//
// Manifests are checked only for apiVersion and kind; the API server reports other
// errors, which can be what a scenario tests. Fields of objects are checked when the scenario runs. The texts
// of errors can change; compare positions instead.
package load
