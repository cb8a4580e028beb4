package engine

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework/scenario"
)

func TestOtherMinor(t *testing.T) {
	for _, c := range []struct {
		server, since, until string
		want                 bool
	}{
		{"v1.36.3", "1.36", "", false}, {"v1.35.4+k3s1", "1.36", "", true}, {"v2.0.0", "1.36", "", false}, {"v1.40.0-alpha.1", "1.36", "", false},
		{"v1.36.3", "", "", false}, {"unknown", "", "", false}, {"unknown", "1.36", "", true}, {"", "1.36", "", true},
		{"v1.36.3", "", "1.36", false}, {"v1.37.0-alpha.1", "", "1.36", true}, {"v1.37.2", "1.35", "1.36", true}, {"v1.35.4", "1.35", "1.36", false},
		{"v1.34.4", "1.35", "1.36", true}, {"unknown", "", "1.36", true}, {"v2.0.0", "", "1.36", true}, {"v1.36.3", "", "one", true},
	} {
		t.Run(c.since+" to "+c.until+" on "+c.server, func(t *testing.T) {
			s := scenario.Scenario{Spec: scenario.Spec{Since: c.since, Until: c.until}}
			if got := OtherMinor(s, c.server); (got != "") != c.want {
				t.Errorf("OtherMinor(since %q, until %q, server %s) = %q, want a reason: %t", c.since, c.until, c.server, got, c.want)
			}
		})
	}
}
