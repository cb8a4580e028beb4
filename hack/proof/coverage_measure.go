package main

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
)

// share is a number of statements, how many of them ran, and how many of the others have a reason.
type share struct{ covered, statements, explained int }

func (s *share) add(other share) {
	s.covered += other.covered
	s.statements += other.statements
	s.explained += other.explained
}

// open is the number of statements that did not run, without a reason.
func (s share) open() int { return s.uncovered() - s.explained }

// possible is the share of the statements that ran or have no reason.
func (s share) possible() share {
	return share{covered: s.covered, statements: s.statements - s.explained}
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

// covered is a group, package, file or function with its share.
type covered struct {
	pkg, file, name string // file and name are empty for packages and groups
	line            int    // of a function
	share
}

// measurement has the shares of all groups, packages and functions.
type measurement struct {
	groups    []covered            // in the order of groups
	packages  map[string][]covered // by the name of the group, sorted by path
	functions []covered            // the largest number of open statements first
	reasons   []reason
	explained []share // in the order of reasons
	entries   []entry // entries of unrunnable.yaml; their reasons are the last elements of reasons
}

// measure counts the statements of a profile. Sources returns a file of it.
func measure(p profile, all []group, sources func(file string) (source, error)) (*measurement, error) {
	entries, err := unrunnable()
	if err != nil {
		return nil, err
	}
	c := counter{sources: sources, files: map[string]source{}, functions: map[functionKey]*counted{}, reasons: reasons(entries)}
	for b, ran := range p {
		if leftOut(b.File) || !slices.ContainsFunc(all, func(g group) bool { return g.has(b.File) }) {
			continue
		}
		if err := c.count(b, ran); err != nil {
			return nil, fmt.Errorf("source of %s: %w", b.File, err)
		}
	}
	m := &measurement{reasons: c.reasons, explained: make([]share, len(c.reasons)), entries: entries}
	for _, f := range c.functions {
		m.functions = append(m.functions, f.covered)
		for because, s := range f.because {
			m.explained[because].add(s)
		}
	}
	slices.SortFunc(m.functions, func(a, b covered) int {
		return cmp.Or(cmp.Compare(b.open(), a.open()), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.name, b.name))
	})
	m.sum(all)
	return m, nil
}

// counter counts the statements of functions.
type counter struct {
	sources   func(file string) (source, error)
	files     map[string]source
	functions map[functionKey]*counted
	reasons   []reason
}

// functionKey identifies a function of a file.
type functionKey struct {
	file string
	function
}

// counted is a function with its share. because has the share of the blocks with a reason, by the index of the reason.
type counted struct {
	covered
	because map[int]share
}

// count counts a block.
func (c *counter) count(b block, ran bool) error {
	file, known := c.files[b.File]
	if !known {
		var err error
		if file, err = c.sources(b.File); err != nil {
			return err
		}
		c.files[b.File] = file
	}
	if file.generated {
		return nil
	}
	f, found := file.at(b.Start)
	if !found {
		return fmt.Errorf("no function at line %d: the profile is of another version", b.Start.Line)
	}
	at := c.functions[functionKey{b.File, f}]
	if at == nil {
		at = &counted{covered: covered{pkg: path.Dir(b.File), file: path.Base(b.File), name: f.name, line: f.start.Line}, because: map[int]share{}}
		c.functions[functionKey{b.File, f}] = at
	}
	s := share{statements: b.Statements}
	if ran {
		s.covered = b.Statements
	} else if because := reasonOf(c.reasons, b, f, file); because >= 0 {
		s.explained = b.Statements
		sum := at.because[because]
		sum.add(s)
		at.because[because] = sum
	}
	at.add(s)
	return nil
}

// sum adds up the functions of packages and groups.
func (m *measurement) sum(all []group) {
	m.packages = map[string][]covered{}
	for _, g := range all {
		whole := covered{name: g.name}
		packages := map[string]*covered{}
		for _, f := range m.functions {
			if !g.has(path.Join(f.pkg, f.file)) {
				continue
			}
			if packages[f.pkg] == nil {
				packages[f.pkg] = &covered{pkg: f.pkg}
			}
			packages[f.pkg].add(f.share)
			whole.add(f.share)
		}
		m.groups = append(m.groups, whole)
		for _, pkg := range slices.Sorted(maps.Keys(packages)) {
			m.packages[g.name] = append(m.packages[g.name], *packages[pkg])
		}
	}
}

// total returns the share of all groups. A function in several groups counts once.
func (m *measurement) total() share {
	var all share
	for _, f := range m.functions {
		all.add(f.share)
	}
	return all
}
