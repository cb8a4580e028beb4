// Package contract checks the laws that every compiled-in admission plugin must
// obey and that its interface does not tell: Validate changes nothing, Admit run
// twice is Admit run once, a dry run writes nothing, what a cache holds belongs to
// everybody, and some forty more.
//
// A plugin is brought as a [Subject]: where it comes from, the World it lives in, and
// requests that it admits and refuses. One line runs all of it, a subtest for each
// [Property]:
//
//	func TestContract(t *testing.T) {
//		contract.Run(t, contract.Subject{
//			Source: harness.FromRegister(PluginName, Register),
//			Allow:  []framework.Request{framework.Create(pod)},
//			Reject: []framework.Request{framework.Create(badPod)},
//		})
//	}
//
// One property runs by go test -run 'TestContract/A1'. A property that a plugin breaks
// on purpose is waived, with the reason: Waive("H3", "validates in Admit, for
// history"). A waiver whose property holds fails the run, so that waivers do not rot.
//
// # Promise
//
// A property passes only if requests of the Subject reached what it is about: else it
// is skipped, as inconclusive. One that does not concern the plugin (reinvocation,
// of a plugin that only validates) is skipped as unsupported. One that hangs fails
// after its budget, and the others still run. Each property fails a small broken
// plugin in this package's tests, and that plugin fails no other property.
//
// # Not promised
//
// A pass is no proof: properties see what the Subject's requests make the plugin do.
// Races are found when go test runs with -race.
package contract
