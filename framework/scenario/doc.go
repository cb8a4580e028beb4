// Package scenario is the scenario format: its types, its JSON Schema, and a strict loader.
//
// A [Scenario] is the test of one requirement as data: Kubernetes manifests that
// exist before the test, the replies of webhooks, and steps with their expected
// results.
//
//	apiVersion: admissiontest.dev/v1alpha1
//	kind: Scenario
//	metadata:
//	  name: respond.denied.reason-reaches-the-client
//	spec:
//	  level: MUST
//	  requirement: The client gets the status of a webhook's denial.
//	  source: ["https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#response"]
//	  given:
//	    - apiVersion: admissionregistration.k8s.io/v1
//	      kind: ValidatingWebhookConfiguration
//	      metadata: {name: a}
//	      webhooks:
//	        - name: deny.example.com
//	          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
//	  hooks:
//	    deny.example.com: {status: {code: 409, reason: Conflict, message: not today}}
//	  when:
//	    - create: {apiVersion: v1, kind: ConfigMap, metadata: {name: subject}}
//	      then:
//	        allowed: false
//	        code: 409
//	        calls: [deny.example.com]
//
// A document of kind [PolicyTest] is a table of requests. It becomes a scenario with a case for each of its
// requests: see [Cases].
//
// [Load] reads files, from the disk or an fs.FS:
//
//	scenarios, err := scenario.Load(scenario.LoadOptions{}, "testdata/scenarios")
//
// [Schema] returns the JSON Schema, which editors use for completion. A file can hold several documents,
// separated by ---.
//
// The package is public for programs that read or check scenarios without running
// them: editors, generators and reports. To run scenarios in go test, use package
// suites/conformance, which reads them itself.
//
// # Files
//
// Files are YAML or JSON in UTF-8, of at most 1 MiB. What YAML parsers read in
// different ways is an error:
//
//   - numbers other than plain decimal ones (1e3, 0x1F, 0644, 1_000, .5), and the
//     words yes, no, on and off as values, unless they are in quotes;
//   - anchors and aliases, merge keys, tags, and keys that are no texts;
//   - a field that occurs twice.
//
// In manifests an integer is an int64 and another number is a float64. A field
// whose Go type has no omitempty is required. There are short forms: a list for
// [Calls] in order, a string for a [Call] of that webhook, and one value for a list
// of type [OneOrMore].
//
// A document of kind Uncovered, which lists behaviours without a scenario, is skipped.
//
// # What is checked
//
// A field that the format does not have, a missing one and a value of another type are errors. So is
// what YAML parsers read in different ways.
//
// The loader also checks that names have the right form, that each step has one
// action and no field that the action would ignore, that faults, capabilities and
// operators exist, that hooks and expected calls name webhooks of some
// configuration in the scenario, that placeholders can have a value, that scenario names are unique, and
// that no expectation is empty, and where it holds without a field or a
// header, that is one of an AdmissionReview, an audit event or an API server.
//
// # Promise
//
// The errors of all files are returned together (at most 100 for each file): of a file what is wrong with its YAML,
// else of each document the fields and values that the schema refuses, else the files that it names and cannot be read,
// else what it means. Each is an [*Error] with its position, what was expected and, if possible, a
// suggestion. Loading is deterministic: scenarios are sorted by name, errors of a file by
// line. With an error, no scenario is returned. No file makes the loader panic,
// read more than 1 MiB of it (8 MiB of a file of manifests), or run for more than some seconds. The
// loader refuses everything that the schema refuses. The functions are safe for concurrent use.
//
// A scenario can refer to files with manifests in its tree: the fs.FS, or on the disk the Git repository
// or Go module that contains the scenario, else the folder above the one that was given. A path that leads out of
// the tree is an error, and on the disk a symbolic link too. No error shows a value of these files.
//
// # Not promised
//
// The schema accepts some files that the loader refuses. Manifests are checked only for apiVersion and kind;
// the API server reports other errors, which can be what a scenario tests. Fields of objects are checked when
// the scenario runs. The texts of errors can change; compare positions instead.
package scenario
