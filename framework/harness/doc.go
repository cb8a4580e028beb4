// Package harness runs one compiled-in admission plugin, or a chain of them, as an API server does.
//
//	h := harness.New(t, harness.FromRegister(PluginName, Register), harness.WithWorld(w))
//	h.Do(framework.Create(pod)).MustReject(t, metav1.StatusReasonForbidden, "no such namespace")
//
// [New] builds the plugin from its configuration, injects the values that it wants, and calls its
// ValidateInitialization. [Harness.Do] carries out a [framework.Request]: it calls Admit, calls
// Admit again if the plugin asked for a reinvocation, and then calls Validate with new attributes
// and a copy of the object. [Harness.Admit] and [Harness.Validate] run only one phase.
//
// [NewChain] does the same with several plugins. The code of an API server builds, initializes,
// decorates and calls them. The Trace of a Result has the calls of all plugins.
//
// The package is public for unit tests in the repositories of plugins.
//
// # Promise
//
// The plugin gets the same attributes as in an API server. A Request that no API server sends is an
// error. The objects of the Request never change. The [Result] has the Status that a client sees,
// from the API server's own code, and the warnings, the audit annotations, the calls of clients and
// the changes to cached objects.
//
// A panic of the plugin ends the test, with the place of the panic; functions that return an error
// return it as a [PanicError]. When the test ends, New closes the channel of the drained
// notification. A goroutine of the plugin that still runs 2 seconds later fails the test. A
// goroutine belongs to the plugin if the factory, the initialization, a call of the plugin, or
// another goroutine of the plugin started it. An inherited profiler label distinguishes it from the
// goroutines of other tests.
//
// # Not promised
//
// The Harness does not decode, default, validate or store objects: use scenarios with a real API
// server for these. Between the phases it only generates a name from generateName, always with the
// same suffix. It sets no UID and no creation time. It does not find a goroutine that sets other
// profiler labels. It cannot stop a plugin that ignores its context.
package harness
