package plugincalls_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/internal/apiserver/record"
	"github.com/admissiontest/admissiontest/internal/plugincalls"
)

// Plugins that were not called are at their places; those after a refusal or a panic are not known.
func TestTrace(t *testing.T) {
	idle := func(places ...int) []record.Unhandled {
		var all []record.Unhandled
		for _, place := range places {
			all = append(all, record.Unhandled{Plugin: fmt.Sprintf("idle%d", place), Place: place})
		}
		return all
	}
	call := func(phase string, round, place int) record.Record {
		return record.Record{Plugin: fmt.Sprintf("p%d", place), Phase: phase, Round: round, Place: place, Started: int64(place), Duration: time.Microsecond}
	}
	first := func(r record.Record, places ...int) record.Record { r.Unhandled = idle(places...); return r }
	refused := func(r record.Record) record.Record { r.Refused = &record.Refusal{Code: 403, Message: "no"}; return r }
	panicked := func(r record.Record) record.Record { r.Panicked = "broken"; return r }
	tests := map[string]struct {
		records []record.Record
		want    string
	}{
		"nothing": {nil, ""},
		"two passes and a phase": {[]record.Record{
			first(call("mutating", 0, 1), 0, 2, 4), call("mutating", 0, 3),
			first(call("mutating", 1, 1), 0, 2, 4), call("mutating", 1, 3),
			first(call("validating", 0, 0), 5),
		}, "idle0- p1 idle2- p3 idle4- idle0- p1 idle2- p3 idle4- p0 idle5-"},
		"refused":        {[]record.Record{refused(first(call("validating", 0, 1), 0, 2))}, "idle0- p1!"},
		"panicked":       {[]record.Record{panicked(first(call("mutating", 0, 1), 2))}, "p1"},
		"repeated write": {[]record.Record{first(call("mutating", 0, 1), 2), first(call("mutating", 0, 1), 2)}, "p1 idle2- p1 idle2-"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range plugincalls.Trace(test.records) {
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
