package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// Limits of the requests about keys: the keys of a Subject, and the values of a key.
const (
	mostKeys   = 20
	mostValues = 6
)

// exempted gives bad objects each label and annotation that the policies name, and takes it away.
func (b *bench) exempted(all []sample) []*Case {
	var cases []*Case
	for i, k := range b.subject.keys() {
		for _, s := range all {
			path := cel.Path{"metadata", k.in, k.key}
			if s.bad < 0 || i >= mostKeys || b.inDefect(s, path) {
				continue
			}
			old, present := vary.At(s.object, path)
			if present {
				c := b.create(Exempted, s, vary.With(s.object, path, vary.Remove), "without "+path.String())
				c.Path, c.Control = path, b.sampleCase(s)
				cases = append(cases, c)
			}
			for n, value := range k.values {
				if n >= mostValues && n < len(k.values)-2 || value == old || len(value) > 63 || k.in == "labels" && !aKey.MatchString(value) {
					continue
				}
				c := b.create(Exempted, s, withEntry(s.object, path, value), fmt.Sprintf("with %s: %s", path, value))
				c.Path, c.Control = path, b.sampleCase(s)
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// withEntry returns a copy of an object with a value in a map, which need not exist.
func withEntry(object map[string]any, path cel.Path, value any) map[string]any {
	parent := path[:len(path)-1]
	return vary.With(object, parent, func(old any) (any, bool) {
		entries := map[string]any{}
		if old, ok := old.(map[string]any); ok {
			entries = maps.Clone(old)
		}
		entries[fmt.Sprint(path[len(path)-1])] = value
		return entries, true
	})
}

// inDefect reports whether a path has, is in, or is the defect of a bad sample.
func (b *bench) inDefect(s sample, path cel.Path) bool {
	return slices.ContainsFunc(b.subject.Bad[s.bad].Defect(), func(p cel.Path) bool { return p.Below(path) || path.Below(p) })
}

// constants puts more around each constant of the policies that they only compare with a part: in good objects, and
// in the name of the user who creates bad ones.
func (b *bench) constants(all []sample) []*Case {
	var cases []*Case
	for _, p := range b.subject.List() {
		for _, c := range p.openConstants(b.subject.constantsOfParams(p)) {
			before := len(cases)
			for _, s := range all {
				if s.bad >= 0 && c.user {
					name := c.text + "x"
					if c.open == "endsWith" {
						name = "x" + c.text
					}
					request := framework.Create(b.addressed(s.object)).WithUser(framework.User{Name: name})
					cases = append(cases, b.newCase(Constants, s, request, "create", fmt.Sprintf("as %s, where %s(%q) is true", name, c.open, c.text)))
				}
				if s.good >= 0 && !c.user {
					cases = append(cases, b.near(s, c)...)
				}
			}
			switch untried := len(cases) == before; {
			case untried && c.user:
				b.observed.Untried = append(b.observed.Untried, fmt.Sprintf("there is no bad object, and %s(%q) is about the user who creates one", c.open, c.text))
			case untried:
				b.observed.Untried = append(b.observed.Untried, fmt.Sprintf("no good object has a value for which %s(%q) is true", c.open, c.text))
			}
		}
	}
	return cases
}

// near returns the requests for the values of a good sample that have a constant.
func (b *bench) near(s sample, c constant) []*Case {
	var cases []*Case
	for _, path := range vary.Paths(s.object, nil) {
		value, _ := vary.At(s.object, path)
		text, _ := value.(string)
		replaced, near, ok := c.inside(text)
		if !ok || strings.Contains(text, "\n") {
			continue
		}
		set := func(value string) map[string]any {
			return vary.With(s.object, path, func(any) (any, bool) { return value, true })
		}
		control := b.create(Controls, s, set(replaced), fmt.Sprintf("with %s: %s", path, replaced))
		c := b.create(Constants, s, set(near), fmt.Sprintf("with %s: %s, where %s(%q) is true", path, near, c.open, c.text))
		c.Control, c.Path = control, path
		cases = append(cases, control, c)
	}
	return cases
}
