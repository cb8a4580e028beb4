package rules

import (
	"fmt"
	"maps"
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

// exempted gives a bad object each label and annotation that the policies name, and takes it away.
func (b *bench) exempted(s sample) {
	add := func(object map[string]any, change string) {
		b.derive(Exempted, s, object, change).Control = b.sampleCase(s)
	}
	keys := b.subject.keys()
	for _, k := range keys[:min(len(keys), mostKeys)] {
		path := cel.Path{"metadata", k.in, k.key}
		if s.bad < 0 || s.inDefect(path) {
			continue
		}
		old, present := vary.At(s.Object, path)
		if present {
			add(vary.With(s.Object, path, vary.Remove), "without "+path.String())
		}
		for _, value := range k.values[:min(len(k.values), mostValues)] {
			if value != old && len(value) <= 63 && (k.in != "labels" || aKey.MatchString(value)) {
				add(withEntry(s.Object, path, value), fmt.Sprintf("with %s: %s", path, value))
			}
		}
	}
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

// constants puts more around each constant of the policies that they only compare with a part: in a good object, and
// in the name of the user who creates a bad one.
func (b *bench) constants(s sample) {
	for _, c := range b.subject.openConstants() {
		switch {
		case s.bad >= 0 && c.user:
			name := c.text + "x"
			if c.open == "endsWith" {
				name = "x" + c.text
			}
			as := b.derive(Constants, s, s.Object, fmt.Sprintf("as %s, where %s(%q) is true", name, c.open, c.text))
			as.Request = as.Request.WithUser(framework.User{Name: name})
		case s.good >= 0 && !c.user:
			b.near(s, c)
		}
	}
}

// near adds the requests for the values of a good sample that have a constant. Without the constant a value must be refused: otherwise the
// constant does not decide.
func (b *bench) near(s sample, c constant) {
	for _, path := range vary.Paths(s.Object, nil) {
		value, _ := vary.At(s.Object, path)
		text, _ := value.(string)
		replaced, more, ok := c.inside(text)
		if !ok || strings.Contains(text, "\n") {
			continue
		}
		set := func(value string) map[string]any {
			return vary.With(s.Object, path, func(any) (any, bool) { return value, true })
		}
		control := b.derive(Controls, s, set(replaced), fmt.Sprintf("with %s: %s", path, replaced))
		near := b.derive(Constants, s, set(more), fmt.Sprintf("with %s: %s, where %s(%q) is true", path, more, c.open, c.text))
		near.needs = []need{accepted(control), func() string {
			if control.Denied() && len(control.Errors()) == 0 {
				return ""
			}
			return control.What + ": " + outcome(control) + ", so the constant does not decide"
		}}
	}
}
