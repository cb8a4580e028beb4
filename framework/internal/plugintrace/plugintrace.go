// Package plugintrace turns the records of the calls of admission plugins, which
// internal/kubeapiserver/observe writes, into a Trace.
package plugintrace

import (
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
)

// Trace returns the calls of plugins of one request, with those that did not take place
// because a plugin does not handle the operation, at their positions.
func Trace(records []kubeapiserver.Record) framework.Trace {
	var calls framework.Trace
	var waiting []kubeapiserver.Unhandled // of the current pass
	var last kubeapiserver.Record
	skip := func(before int, at kubeapiserver.Record) {
		for len(waiting) > 0 && waiting[0].Position < before {
			calls = append(calls, unhandled(waiting[0].Plugin, at))
			waiting = waiting[1:]
		}
	}
	for i, r := range records {
		if i > 0 && (r.Phase != last.Phase || r.Round != last.Round || r.Position <= last.Position) { // the next pass
			endPass(&waiting, last, skip)
			waiting = nil
		}
		waiting = append(waiting, r.Unhandled...)
		skip(r.Position, r)
		calls = append(calls, pluginCall(r))
		last = r
	}
	if len(records) > 0 {
		endPass(&waiting, last, skip)
	}
	return calls
}

// endPass adds the plugins after the last call of a pass. A refusal or a panic ends a pass: the
// plugins after it were not reached.
func endPass(waiting *[]kubeapiserver.Unhandled, last kubeapiserver.Record, skip func(int, kubeapiserver.Record)) {
	if len(*waiting) == 0 || last.Panicked != "" || last.Refused != nil {
		return
	}
	last.Started += int64(last.Duration)
	skip((*waiting)[len(*waiting)-1].Position+1, last)
}

func pluginCall(r kubeapiserver.Record) framework.Call {
	started := time.Unix(0, r.Started)
	call := framework.Call{
		Phase: framework.Phase(r.Phase), Observed: true, Started: started, Finished: started.Add(r.Duration),
		Plugin: &framework.PluginCall{
			Name: r.Plugin, Round: r.Round, Handled: true,
			Operation: r.Operation, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Object: r.Name,
			Changed: r.Changed, MoreChanged: r.More, NotComparable: r.NotComparable, Panicked: r.Panicked,
		},
	}
	if r.Refused != nil {
		refusal := framework.PluginRefusal(*r.Refused)
		call.Plugin.Refused = &refusal
	}
	return call
}

// unhandled returns the call of a plugin that was not called, at the time of another call.
func unhandled(name string, at kubeapiserver.Record) framework.Call {
	at.Duration, at.Changed, at.More, at.NotComparable, at.Refused, at.Panicked = 0, nil, 0, "", nil, ""
	call := pluginCall(at)
	call.Plugin.Name, call.Plugin.Handled = name, false
	return call
}
