package policycoverage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// findParts finds the variables that are never evaluated, and the parts that never have one of their values. Missing says why
// the policy was not observed, or is "".
func (f *finder) findParts(missing string) {
	if f.cut {
		missing = cmp.Or(missing, "the API server cut the warnings")
	}
	for i, variable := range f.policy.list("variables") {
		name := fmt.Sprint(variable["name"])
		at := fmt.Sprintf("spec.variables[%d].expression", i)
		if !f.count(at, [2]int{1, 1}, f.variables[name], missing) {
			f.never(at, [2]int{1, 1}, "the variable "+name+" is never evaluated", "")
		}
	}
	for i, p := range f.policy.parts {
		if p.owner != "" && !f.variables[p.owner] {
			continue // the variable says it
		}
		v := f.parts[i]
		unknown := cmp.Or(p.unknown, f.test.missed[missed{f.number, i}], missing)
		if f.implied(p, v) || p.parent >= 0 && f.parts[p.parent] == (values{}) {
			continue // it says no more than the part that it is in
		}
		if f.count(p.field, p.at, v.yes && v.no, unknown) {
			continue
		}
		f.never(p.field, p.at, neverOf(p, v), f.hint(p, v))
	}
}

// implied reports whether a part lacks only a value that the part that it is in would need for a value that that lacks: if a && b
// is never false, neither is a, and if it is never true, neither is b.
func (f *finder) implied(p part, v values) bool {
	if p.chain == "" || v.yes == v.no {
		return false
	}
	outer := f.parts[p.parent]
	lacks := func(yes bool) bool { return yes && !outer.yes || !yes && !outer.no }
	decides := p.chain == "||" // the value of an operand that decides the chain
	missing := !v.yes
	return lacks(missing) && (missing == decides || p.last)
}

func neverOf(p part, v values) string {
	switch {
	case v.yes:
		return "is never false: " + p.text
	case v.no:
		return "is never true: " + p.text
	}
	return "is never true, and never false: " + p.text
}

// hint says which request would decide a part.
func (f *finder) hint(p part, v values) string {
	var needs []string
	for _, s := range p.context {
		switch text := oneLine(s.text); {
		case s.variables != "":
			needs = append(needs, "an element of "+text)
		case s.want:
			needs = append(needs, text+" true")
		default:
			needs = append(needs, text+" false")
		}
	}
	if v.yes {
		needs = append(needs, "this false")
	} else if v.no {
		needs = append(needs, "this true")
	}
	request := "add a case with " + strings.Join(slices.Compact(needs), ", ")
	condition := strings.HasPrefix(p.field, "spec.matchConditions")
	switch {
	case p.whole && condition && v.yes:
		return "add a case whose request it excludes"
	case p.whole && condition:
		return "add a case whose request it does not exclude"
	case p.whole && v.yes:
		return "add a case that it denies"
	case p.whole:
		return "add a case that it allows"
	case len(needs) == 0:
		return ""
	}
	return request
}
