package scenarios

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
)

// Behaviour is one entry of the behaviour catalogue, which scenarios refer to.
type Behaviour struct {
	// ID is stable: "REINV-001".
	ID string
	// Level is MUST, SHOULD or MAY.
	Level framework.Level
	// Tier is the lowest tier of tests that can test it: T0, T0h, T0k, T1 or T2.
	// behaviours.tsv explains them.
	Tier string
}

//go:embed behaviours.tsv
var behaviours string

// Behaviours returns the behaviour catalogue, in the order of behaviours.tsv.
func Behaviours() ([]Behaviour, error) {
	var out []Behaviour
	for i, line := range strings.Split(behaviours, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("read behaviours.tsv: line %d has %d fields, want 3", i+1, len(fields))
		}
		out = append(out, Behaviour{ID: fields[0], Level: framework.Level(fields[1]), Tier: fields[2]})
	}
	return out, nil
}
