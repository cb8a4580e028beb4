// Package scenario is the scenario format: its types, a strict loader and its
// JSON Schema.
//
// A [Scenario] is one requirement's test as data: Kubernetes manifests that are
// given, scripts of the webhooks among them, and steps with what is expected of
// each.
//
//	apiVersion: admissiontest.dev/v1alpha1
//	kind: Scenario
//	metadata:
//	  name: respond.denied.reason-reaches-the-client
//	spec:
//	  level: MUST
//	  requirement: The status of a webhook's denial reaches the client.
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
// [Load] reads a catalogue from an fs.FS, [LoadPaths] a user's files and folders,
// and [Schema] returns the JSON Schema that editors complete by. A file may hold
// several documents, with a line of --- between them. A document of kind
// [KindUncovered] is passed over.
//
// # Files
//
// Files are YAML, or the JSON within it, in UTF-8 and of at most 1 MiB. What
// readers of YAML do not agree on is refused with an error, never guessed:
//
//   - numbers other than plain decimal ones (1e3, 0x1F, 0644, 1_000, .5), and the
//     words yes, no, on and off as values, unless in quotes;
//   - anchors and aliases, merge keys, tags, and keys that are no texts;
//   - a field that is there twice.
//
// In manifests an integer becomes an int64, another number a float64. A field
// without omitempty in its Go type is required. Short forms: a list stands for
// [Calls] in order, a text for a [Call] of that webhook, and one value for a list
// where the type is [OneOrMore].
//
// Beyond types the loader checks that names have their form, that each step has
// one action and no field that its action would ignore, that faults, abilities and
// the operators of expectations exist, that hooks and expected calls name webhooks
// which some configuration of the scenario has, and that no two scenarios share a
// name. Placeholders, "$(namespace)", are plain text here.
//
// # Promise
//
// Every error in every file is reported at once (of one file the first 100), each an [*Error] with its place,
// what was expected and, where one can be guessed, what was meant. Loading is
// deterministic: scenarios are sorted by name, errors by the order of the files and
// by line. No file, however made, makes Load panic, read more than 1 MiB of it or
// take more than some seconds. With an error no scenario is returned. It is safe to
// load from several goroutines at once.
//
// # Not promised
//
// Manifests are checked for apiVersion and kind only: what else is wrong in them is
// for the API server to say, and may be what a scenario is about. A placeholder
// that stands for nothing is found when the scenario runs. The texts of errors may
// become better; compare places, not texts. The schema is looser than the loader.
package scenario
