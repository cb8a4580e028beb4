// Package scenario defines the scenario format: its types and its JSON Schema.
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
// A document of kind [PolicyTest] is a table of requests. It becomes a scenario for each request.
//
// Package load, below this one, reads files. [Schema] returns the JSON Schema, which editors use for
// completion. A file can hold several documents, separated by ---.
//
// The package is public for programs that read or check scenarios without running
// them: editors, generators and reports. To run scenarios in go test, use package
// suites/conformance.
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
// [Calls] in order, a text for a [Call] of that webhook, and one value for a list
// of type [OneOrMore].
//
// A document of kind Uncovered, which lists behaviours without a scenario, is skipped.
//
// # Promise
//
// Package load refuses everything that the schema refuses. The functions are safe for concurrent use.
//
// # Not promised
//
// The schema accepts some files that package load refuses. The texts of errors can change; compare
// positions instead.
package scenario
