package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed unrunnable.yaml
var unrunnableText []byte

// entry is an entry of unrunnable.yaml.
type entry struct {
	Reason    string   `json:"reason"`
	File      string   `json:"file"`
	Functions []string `json:"functions"`
	Lines     []string `json:"lines"`
}

// unrunnable returns the entries of unrunnable.yaml.
func unrunnable() ([]entry, error) {
	var all []entry
	if err := yaml.UnmarshalStrict(unrunnableText, &all); err != nil {
		return nil, fmt.Errorf("read unrunnable.yaml: %w", err)
	}
	for i, one := range all {
		if one.Reason == "" || one.File == "" || len(one.Functions) == 0 {
			return nil, fmt.Errorf("unrunnable.yaml, entry %d: want a reason, a file and functions", i+1)
		}
	}
	return all, nil
}

// has reports whether a block that did not run belongs to the entry.
func (e entry) has(b block, f function, s source) bool {
	if b.File != e.File || !slices.Contains(e.Functions, plainName(f.name)) {
		return false
	}
	if len(e.Lines) == 0 {
		return true
	}
	if b.Start.Line > len(s.lines) {
		return false
	}
	line := strings.TrimSpace(s.lines[b.Start.Line-1])
	return slices.ContainsFunc(e.Lines, func(wanted string) bool {
		begin, more := strings.CutSuffix(wanted, "*")
		return line == begin || more && strings.HasPrefix(line, begin)
	})
}

// plainName returns the name of a function as unrunnable.yaml has it: "Type.Name" for
// "(*Type).Name".
func plainName(name string) string { return strings.NewReplacer("(*", "", ")", "").Replace(name) }
