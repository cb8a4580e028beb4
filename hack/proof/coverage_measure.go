package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
)

// share is a number of statements, and how many of them ran.
type share struct{ covered, statements int }

func (s *share) add(other share) {
	s.covered += other.covered
	s.statements += other.statements
}

// uncovered is the number of statements that did not run.
func (s share) uncovered() int { return s.statements - s.covered }

// String returns a percentage, rounded down: it is 100.0 % only if all statements ran.
func (s share) String() string {
	if s.statements == 0 {
		return "-"
	}
	permille := s.covered * 1000 / s.statements
	return fmt.Sprintf("%d.%d %%", permille/10, permille%10)
}

// covered is a group or a package with its share.
type covered struct {
	name string // an import path for a package
	share
}

// measurement has the shares of all groups and packages.
type measurement struct {
	groups   []covered            // in the order of groups
	packages map[string][]covered // by the name of the group, sorted by path
	total    share                // a package in several groups counts once
}

// measure counts the statements of a profile.
func measure(p profile, all []group) *measurement {
	files := map[string]share{}
	for b, ran := range p {
		s := files[b.File]
		s.statements += b.Statements
		if ran {
			s.covered += b.Statements
		}
		files[b.File] = s
	}
	m, counted := &measurement{packages: map[string][]covered{}}, map[string]bool{}
	for _, g := range all {
		whole, packages := covered{name: g.name}, map[string]*covered{}
		for file, s := range files {
			if leftOut(file) || !g.has(file) {
				continue
			}
			pkg := path.Dir(file)
			if packages[pkg] == nil {
				packages[pkg] = &covered{name: pkg}
			}
			packages[pkg].add(s)
			whole.add(s)
			if !counted[file] {
				counted[file] = true
				m.total.add(s)
			}
		}
		m.groups = append(m.groups, whole)
		for _, pkg := range slices.Sorted(maps.Keys(packages)) {
			m.packages[g.name] = append(m.packages[g.name], *packages[pkg])
		}
	}
	return m
}
