package contract

import "github.com/admissiontest/admissiontest/suites/contract/internal/check"

// AnySubresource in Subject.Subresources means that the plugin acts on every subresource.
const AnySubresource = "*"

// Subject describes the plugin to check, and how to test it. The fields are:
//
//	Name              the name of the plugin in messages; empty means the name of the test
//	Source            a harness.Source that builds the plugin; each check builds new plugins; required
//	World             the fakes.Options of the fake cluster of each plugin; nil means an empty World
//	Inject            returns Injectors for values that only your API server injects; nil means none
//	Scheme            the types of the objects in requests; nil means that the World's schemes have them
//	Config            the configuration of the plugin; empty means none
//	Configs           more configurations, for the rules about the factory
//	Allow, Reject     requests that the plugin must admit, and those that it must refuse; choose requests that
//	                  reach every branch: each operation that the plugin handles, and objects that it
//	                  changes; without requests, most rules are inconclusive
//	RejectWith        more requests that the plugin refuses, each with the Refusal that it must get
//	AnnotationPrefix  the prefix of the keys of the plugin's audit annotations, such as
//	                  "podsecurity.example.com/"; empty means not checked
//	Subresources      the subresources on which the plugin acts besides the subresources of the requests;
//	                  AnySubresource means all
//	Enforced          the JSON paths of fields in which the plugin intentionally overwrites the user's value,
//	                  such as "metadata.labels[team]" and "spec.containers[].imagePullPolicy" ([] means every
//	                  element of the list); fields below them are included; a path that no object of the
//	                  requests can have is misuse: see Report.Misuse
type Subject = check.Subject

// Refusal is a request that the plugin must refuse, and how. The fields are:
//
//	Request  the request
//	Reason   the reason of the Status, such as Forbidden
//	Field    the field of one of the causes of the Status, such as "spec.replicas"
//	Text     a part of the message of the Status
//
// An empty Reason, Field or Text is not checked.
type Refusal = check.Refusal

// Configs has configurations of a plugin. The fields are:
//
//	Valid     configurations that the factory must accept, besides Subject.Config
//	Invalid   configurations that the factory must refuse
//	Required  true if the factory must refuse to build a plugin without a configuration
type Configs = check.Configs
