package policycoverage

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework"
)

// TestCut: of a response whose warnings an API server can have cut, and of one with an error about costs, it is not known which
// parts have which values.
func TestCut(t *testing.T) {
	const about = "Validation failed for ValidatingAdmissionPolicy 'p0-0' with binding 'b1-0': "
	for name, each := range map[string]struct {
		warnings []string
		want     bool
	}{
		"short":           {[]string{about + "0t"}, false},
		"many characters": {[]string{about + "0t", strings.Repeat("x", mostWarnings)}, true},
		"costs":           {[]string{about + "expression '…' resulted in error: operation cancelled: actual cost limit exceeded", "validation failed due to running out of cost budget"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &policy{}
			p.parts = []part{{}}
			of := &test{policies: []*policy{p}, seen: map[string]*observed{}}
			m := &measurement{copies: map[string]origin{"copy": {of, "case", []*probe{{of: p}}}}}
			m.note("copy", framework.Result{Warnings: each.warnings})
			if got := of.met(0).cut; got != each.want {
				t.Errorf("cut: %t, want %t", got, each.want)
			}
		})
	}
}
