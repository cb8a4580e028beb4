package scenarios

import (
	_ "embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

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

// Area returns the area of the behaviour: PLUGIN of PLUGIN-LimitRanger-001.
func (b Behaviour) Area() string {
	first, _, _ := strings.Cut(b.ID, "-")
	return first
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

// Uncovered returns the reasons why behaviours have no scenario, by ID: the behaviours of
// uncovered.yaml.
func Uncovered() (map[string]string, error) {
	data, err := FS.ReadFile("uncovered.yaml")
	if err != nil {
		return nil, fmt.Errorf("read uncovered.yaml: %w", err)
	}
	var file struct {
		APIVersion, Kind string
		Behaviours       []struct{ ID, Reason string }
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("read uncovered.yaml: %w", err)
	}
	out := map[string]string{}
	for i, entry := range file.Behaviours {
		if entry.Reason == "" || out[entry.ID] != "" {
			return nil, fmt.Errorf("read uncovered.yaml: %s has no reason, or two entries", entry.ID)
		}
		if i > 0 && file.Behaviours[i-1].ID > entry.ID {
			return nil, fmt.Errorf("read uncovered.yaml: %s comes after %s, want the order of IDs", entry.ID, file.Behaviours[i-1].ID)
		}
		out[entry.ID] = entry.Reason
	}
	return out, nil
}
