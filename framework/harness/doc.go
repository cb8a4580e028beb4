// Package harness runs one compiled-in admission plugin as an API server would.
//
//	h := harness.New(t, harness.FromRegister(PluginName, Register), harness.WithWorld(w))
//	h.Do(framework.Create(pod)).MustReject(t, metav1.StatusReasonForbidden, "no such namespace")
//
// New builds the plugin from its configuration, gives it all it wants, and has it
// validate its initialization. [Harness.Do] carries out a [framework.Request]: Admit,
// again if a reinvocation was asked for, then Validate on a copy with a record of its
// own. [Harness.Admit] and [Harness.Validate] are one phase alone.
//
// # Promise
//
// Attributes are those that an API server would send; a Request of another shape is
// refused. The Request's own objects are never written to. The [Result] has the
// Status that a client would see, by the API server's own conversion, and all that
// went other ways: warnings, audit annotations, calls, changes to cached objects.
//
// A panic of the plugin is an error that names the place. When the test ends, the
// plugin is told by the drained notification, and goroutines of its own that go on
// fail the test. A goroutine is its own if the factory, the initialization or a call of
// the plugin began it, or one of its own did: a profiler label, inherited, tells it from
// those of tests that run beside.
//
// # Not promised
//
// Nothing is decoded, defaulted, validated by the API or stored: that is what the
// scenarios and a real API server are for. Of what the API server does between the
// phases, only the name that a generateName becomes is there (always the same one),
// and no UID or creation time. A goroutine that gives itself other profiler labels is
// not found. Plugins that are not given the context cannot be stopped.
package harness
