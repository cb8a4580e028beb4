package rules

import (
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/vary"
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
				add(vary.Put(s.Object, path, value), fmt.Sprintf("with %s: %s", path, value))
			}
		}
	}
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
		text, _ := valueAt[string](s.Object, path)
		replaced, more, ok := c.inside(text)
		if !ok || strings.Contains(text, "\n") {
			continue
		}
		control := b.derive(Controls, s, vary.Put(s.Object, path, replaced), fmt.Sprintf("with %s: %s", path, replaced))
		near := b.derive(Constants, s, vary.Put(s.Object, path, more), fmt.Sprintf("with %s: %s, where %s(%q) is true", path, more, c.open, c.text))
		near.needs = []need{accepted(control), func() string {
			if control.Denied() && len(control.Errors()) == 0 {
				return ""
			}
			return control.What + ": " + outcome(control) + ", so the constant does not decide"
		}}
	}
}
