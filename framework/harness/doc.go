// Package harness runs one compiled-in admission plugin, or a chain of them, as an API server does.
//
//	h := harness.New(t, harness.FromRegister(PluginName, Register), harness.WithWorld(w))
//	h.Do(framework.Create(pod)).MustReject(t, metav1.StatusReasonForbidden, "no such namespace")
//
// [New] builds the plugin from its configuration, injects what it wants, and calls its
// ValidateInitialization. [Harness.Do] carries out a [framework.Request]: it calls Admit, calls
// it again if the plugin asked for reinvocation, and calls Validate with new attributes on a
// copy of the object. [Harness.Admit] and [Harness.Validate] run only one phase.
//
// [NewChain] does the same with several plugins. They are built, initialized, decorated and called
// by the code of an API server. The Trace of a Result has the call of each plugin.
//
// The package is public for unit tests in the repositories of plugins.
//
// # Promise
//
// The attributes are those of an API server. A Request that no API server sends is refused.
// The objects of the Request are never changed. The [Result] has the Status that a client sees,
// converted by the API server's own code. It also has the warnings, the audit annotations, the
// calls of clients and the changes to cached objects.
//
// A panic of the plugin is an error with the place of the panic. When the test ends, New closes
// the channel of the drained notification, and a goroutine of the plugin that still runs
// afterwards fails the test. A goroutine belongs to the plugin if it was started by the factory,
// the initialization, a call of the plugin, or another goroutine of the plugin. An inherited
// profiler label distinguishes it from the goroutines of other tests.
//
// # Not promised
//
// The Harness does not decode, default, validate or store objects: use scenarios with a real
// API server for these. Between the phases it only generates a name from generateName, which is
// always the same name. It sets no UID and no creation time. It does not find a goroutine that
// sets other profiler labels. It cannot stop a plugin that ignores its context.
package harness
