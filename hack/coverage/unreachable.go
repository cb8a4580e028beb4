package main

import (
	_ "embed"
	"strings"
)

//go:embed unreachable.txt
var unreachableText string

// unreachable returns the functions of unreachable.txt: for each file, their names without
// parentheses and asterisks.
func unreachable() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for line := range strings.Lines(unreachableText) {
		file, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if all[file] == nil {
			all[file] = map[string]bool{}
		}
		all[file][name] = true
	}
	return all
}

// plainName returns the name of a function as unreachable.txt has it: "Type.Name" for
// "(*Type).Name".
func plainName(name string) string { return strings.NewReplacer("(*", "", ")", "").Replace(name) }
