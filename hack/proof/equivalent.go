package main

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed equivalent.yaml
var equivalentText []byte

// equivalent returns the mutants of equivalent.yaml that cannot be distinguished from outside: the reasons, by
// mutant.id.
func equivalent() (map[string]string, error) {
	var all []struct{ Mutant, Reason string }
	if err := yaml.UnmarshalStrict(equivalentText, &all); err != nil {
		return nil, fmt.Errorf("read equivalent.yaml: %w", err)
	}
	reasons := map[string]string{}
	for i, one := range all {
		if one.Mutant == "" || one.Reason == "" {
			return nil, fmt.Errorf("equivalent.yaml, entry %d: want a mutant and a reason", i+1)
		}
		reasons[one.Mutant] = one.Reason
	}
	return reasons, nil
}
