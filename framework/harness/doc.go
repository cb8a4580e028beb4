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
// Status that a client would see, by the API server's own conversion.
//
// # Not promised
//
// Nothing is decoded, defaulted, validated by the API or stored: that is what the
// scenarios and a real API server are for.
package harness
