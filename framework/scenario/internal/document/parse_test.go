package document

import (
	"testing"

	yaml "go.yaml.in/yaml/v4"
)

func TestNumbers(t *testing.T) {
	const refused Kind = "refused"
	for want, all := range map[Kind][]string{
		KindInteger: {"0", "-0", "12", "-7"},
		KindNumber:  {"1.0", "-0.5", "10.25"},
		KindText: {
			"v1", "1.2.3", "10m", "1Gi", "2024-01-01", "12:30", "-", "a", "1.16.0-alpha", "0x", "127.0.0.1", "inf", "-1-2",
			"00000000-0000-0000-0000-000000000000",
		},
		refused: { // odd: a number in some version of YAML, but not in JSON
			"1e3", "1.5E-3", "0x1F", "0b1", "0o7", "0644", "0899", "1_000", "+1", ".5", "5.", ".inf", "-.Inf", ".NaN",
		},
	} {
		for _, raw := range all {
			b := &builder{source: &source{}}
			got := b.scalar(&yaml.Node{Value: raw}).Kind
			if len(b.problems) > 0 {
				got = refused
			}
			if got != want {
				t.Errorf("%s is %s, want %s", raw, got, want)
			}
		}
	}
}
