package rules

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// boundariesRules returns the rule for values that the plugin compares.
func boundariesRules() []check.Rule {
	return []check.Rule{{
		ID: "S9", Name: "values-are-compared-to-their-end", Level: framework.Should,
		Title:  "If the plugin refuses a request for one letter of a name, an image, a user or a namespace, it also refuses it for more letters before or behind: registry.example.comevil/app is not registry.example.com/app.",
		Why:    "Users choose these values. A plugin that compares a prefix without its end, or searches a value for a substring, admits what it was made to refuse.",
		Fix:    "Compare whole values. If a prefix is meant, let it end with a separator: strings.HasPrefix(image, \"registry.example.com/\").",
		Source: []string{"https://github.com/open-policy-agent/gatekeeper-library/pull/538", "https://github.com/containers/image/pull/534"},
		Check:  checkBoundaries,
	}}
}

// compared is a value of a request that the plugin may compare.
type compared struct {
	what, value string
	// with returns the request with another value.
	with func(string) framework.Request
}

func checkBoundaries(t *check.T) {
	late := t.HalfBudget()
	p := t.Probe(func() *harness.Harness { return inSimilarNamespaces(t) })
	for _, request := range t.Subject.Allow {
		if !p.Admits(request) {
			continue
		}
		for _, each := range comparedIn(request) {
			for _, near := range nearOf(each.value) {
				if late() {
					t.LogOnce("stopped before the last value: half of the budget is used")
					return
				}
				if !p.Refuses(each.with(near.other)) {
					continue // the plugin does not compare it
				}
				t.Reached()
				found := p.Confirmed(func(p *check.Probe) string {
					if p.Refuses(each.with(near.other)) && p.Admits(each.with(near.longer)) {
						return near.longer
					}
					return ""
				})
				if found != "" {
					t.Errorf("%s: the plugin refuses %q as %s, but admits %q. want: it compares %q to its end", request, near.other, each.what, found, each.value)
					break
				}
			}
		}
	}
}

// inSimilarNamespaces returns a plugin in a World that has the namespaces of the requests also by similar names.
func inSimilarNamespaces(t *check.T) *harness.Harness {
	w := t.World()
	for _, object := range w.Objects() {
		if namespace, ok := object.(*corev1.Namespace); ok && slices.ContainsFunc(t.Subject.Allow, func(r framework.Request) bool { return r.Namespace == namespace.Name }) {
			for _, near := range nearOf(namespace.Name) {
				w.Put(withName(namespace, near.other, ""), withName(namespace, near.longer, ""))
			}
		}
	}
	return t.PluginIn(w)
}

// comparedIn returns the strings of a request: its user, its namespace, and the strings of its object.
func comparedIn(request framework.Request) []compared {
	var all []compared
	if request.User != nil {
		all = append(all, compared{"the user", request.User.Name, func(name string) framework.Request {
			other := *request.User
			other.Name = name
			return request.WithUser(other)
		}})
	}
	if request.Verb != framework.VerbCreate || request.Subresource != "" {
		return all
	}
	all = append(all, compared{"the namespace", request.Namespace, func(name string) framework.Request {
		other := request.InNamespace(name)
		other.Object = address{namespace: name}.moved(request.Object)
		return other
	}})
	check.Locations(request.Object, func(at check.Location, value reflect.Value) {
		if value.Kind() == reflect.String {
			all = append(all, compared{at.Path, value.String(), func(other string) framework.Request {
				changed := request
				changed.Object = at.With(request.Object, reflect.ValueOf(other).Convert(value.Type()))
				return changed
			}})
		}
	})
	return all
}

// near are two values that are similar to one: other differs in a letter at the begin or the end of a word, and longer
// has more letters there.
type near struct{ other, longer string }

// nearOf returns the similar values of one. Only words with a letter count, because numbers are compared by size. Words
// behind which more letters can belong to the same name, such as that before the hyphen of team-a, are only changed
// at the other side.
func nearOf(value string) []near {
	var all []near
	for _, at := range regexp.MustCompile(`[0-9]*[A-Za-z][A-Za-z0-9]*`).FindAllStringIndex(value, -1) {
		first, last := at[0], at[1]-1
		if last+1 == len(value) || strings.ContainsRune("/:.@", rune(value[last+1])) {
			all = append(all, near{value[:last] + otherLetter(value[last]) + value[last+1:], value[:last+1] + "evil" + value[last+1:]})
		}
		if first == 0 || strings.ContainsRune("/:.@", rune(value[first-1])) {
			all = append(all, near{value[:first] + otherLetter(value[first]) + value[first+1:], value[:first] + "evil" + value[first:]})
		}
	}
	return all
}

// otherLetter returns another letter, or another digit for a digit.
func otherLetter(is byte) string {
	if strings.ContainsRune("zZ9", rune(is)) {
		return string(is - 1)
	}
	return string(is + 1)
}
