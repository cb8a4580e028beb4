package plugintrace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/framework/internal/plugintrace"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
)

// Plugins that were not called are at their positions; those after a refusal or a panic are not known.
func TestTrace(t *testing.T) {
	idle := func(positions ...int) []kubeapiserver.Unhandled {
		var all []kubeapiserver.Unhandled
		for _, position := range positions {
			all = append(all, kubeapiserver.Unhandled{Plugin: fmt.Sprintf("idle%d", position), Position: position})
		}
		return all
	}
	call := func(phase string, round, position int) kubeapiserver.Record {
		return kubeapiserver.Record{Plugin: fmt.Sprintf("p%d", position), Phase: phase, Round: round, Position: position, Started: int64(position), Duration: time.Microsecond}
	}
	first := func(r kubeapiserver.Record, positions ...int) kubeapiserver.Record {
		r.Unhandled = idle(positions...)
		return r
	}
	refused := func(r kubeapiserver.Record) kubeapiserver.Record {
		r.Refused = &kubeapiserver.Refusal{Code: 403, Message: "no"}
		return r
	}
	panicked := func(r kubeapiserver.Record) kubeapiserver.Record { r.Panicked = "broken"; return r }
	tests := map[string]struct {
		records []kubeapiserver.Record
		want    string
	}{
		"nothing": {nil, ""},
		"two passes and a phase": {[]kubeapiserver.Record{
			first(call("mutating", 0, 1), 0, 2, 4), call("mutating", 0, 3),
			first(call("mutating", 1, 1), 0, 2, 4), call("mutating", 1, 3),
			first(call("validating", 0, 0), 5),
		}, "idle0- p1 idle2- p3 idle4- idle0- p1 idle2- p3 idle4- p0 idle5-"},
		"refused":        {[]kubeapiserver.Record{refused(first(call("validating", 0, 1), 0, 2))}, "idle0- p1!"},
		"panicked":       {[]kubeapiserver.Record{panicked(first(call("mutating", 0, 1), 2))}, "p1"},
		"repeated write": {[]kubeapiserver.Record{first(call("mutating", 0, 1), 2), first(call("mutating", 0, 1), 2)}, "p1 idle2- p1 idle2-"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range plugintrace.Trace(test.records) {
				text := one.Plugin.Name
				if !one.Plugin.Handled {
					text += "-"
				}
				if one.Plugin.Refused != nil {
					text += "!"
				}
				if !one.Observed || one.Started.IsZero() || one.Finished.Before(one.Started) {
					t.Errorf("call without times: %+v", one)
				}
				got = append(got, text)
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}
