package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// variants removes each value that an expression reads, and empties each such list and map. If it is not known what an expression reads,
// each value is varied. If one reads the namespace, a good sample is created in another one.
func (b *bench) variants(s sample) {
	for _, less := range b.lessRead(s.Object) {
		c := b.derive(Variants, s, less.object, less.change)
		c.needs = []need{func() string {
			if s.bad >= 0 && (s.fix == nil || s.inDefect(less.path)) {
				return "what is varied belongs to the defect"
			}
			return ""
		}}
	}
	varied := b.addressed(s.Object)
	if name := varied.GetName(); name != "" && s.stored == nil {
		varied.SetName("")
		varied.SetGenerateName(name + "-")
		b.derive(Generated, s, varied.Object, "with generateName")
		varied.SetGenerateName("")
		varied.SetName(b.storedName(s, name, "-renamed"))
		b.derive(Renamed, s, varied.Object, "under another name")
	}
	varied = b.addressed(s.Object)
	reads := slices.ContainsFunc(b.subject.List(), func(p Policy) bool {
		return slices.ContainsFunc(p.expressions(), func(text string) bool { return cel.Names(text, "namespaceObject") })
	})
	here := slices.ContainsFunc(b.subject.Bindings(), func(b binding) bool { return b.spec.ParamRef != nil && b.spec.ParamRef.Namespace == "" }) // params
	if reads && !here && s.good >= 0 && s.stored == nil && !slices.Contains([]string{"", metav1.NamespaceDefault}, varied.GetNamespace()) {
		varied.SetNamespace(metav1.NamespaceDefault)
		b.derive(Variants, s, varied.Object, "in the namespace default, which has no labels")
	}
}

// less is an object that lacks a value.
type less struct {
	change string
	path   cel.Path
	object map[string]any
}

// lessRead returns an object without each value that an expression reads, and with each such list and map empty. A Pod without volumes is
// also without the token that an admission plugin would mount.
func (b *bench) lessRead(object map[string]any) []less {
	read := b.subject.readPaths(Policy.expressions)
	var all []less
	for _, path := range vary.Paths(object, nil) {
		if !read.lost && !read.have(path) {
			continue
		}
		all = append(all, lessOf(object, path)...)
		if last := path[len(path)-1]; object["kind"] == "Pod" && (last == "volumes" || last == "volumeMounts") {
			token := vary.Put(vary.With(object, path, vary.Remove), cel.Path{"spec", "automountServiceAccountToken"}, false)
			all = append(all, less{fmt.Sprintf("without %s, with automountServiceAccountToken: false", path), path, token})
		}
	}
	return all
}

// lessOf returns an object with the list or map at a path empty, and without the value there.
func lessOf(object map[string]any, path cel.Path) []less {
	all := []less{{"without " + path.String(), path, vary.With(object, path, vary.Remove)}}
	if old, _ := vary.At(object, path); isCollection(old) {
		all = append([]less{{"with empty " + path.String(), path, vary.With(object, path, vary.Empty)}}, all...)
	}
	return all
}

func isCollection(value any) bool {
	fields, _ := value.(map[string]any)
	list, _ := value.([]any)
	return len(fields)+len(list) > 0
}

// forms creates a sample with each quantity, which the schema finds, in other forms of the same value: of its own, and of those near the
// constants of policies that read it.
func (b *bench) forms(s sample) {
	read := b.subject.readPaths(Policy.expressions)
	for _, path := range vary.Paths(s.Object, nil) {
		if kinds.TypeAt(b.openAPI[s.kind.GroupVersion()], s.kind, path) != "io.k8s.apimachinery.pkg.api.resource.Quantity" {
			continue
		}
		own, _ := vary.At(s.Object, path)
		b.equalForms(s, path, fmt.Sprint(own), b.sampleCase(s))
		for _, near := range b.subject.quantitiesNear(fmt.Sprint(own)) {
			if read.lost || read.have(path) {
				b.equalForms(s, path, near, b.derive(Controls, s, vary.Put(s.Object, path, near), fmt.Sprintf("with %s: %s", path, near)))
			}
		}
	}
}

// equalForms adds the requests with other forms of a quantity. The control has the quantity.
func (b *bench) equalForms(s sample, path cel.Path, quantity string, control *Case) {
	for _, form := range equalQuantities(quantity) {
		c := b.derive(Forms, s, vary.Put(s.Object, path, form), fmt.Sprintf("with %s: %s, which is %s", path, form, quantity))
		c.Control, c.needs = control, []need{accepted(control)}
	}
}

// quantitiesNear returns what the policies may compare a quantity with, and what is one more of it. An integer has the suffix of the
// quantity.
func (s Subject) quantitiesNear(own string) []string {
	var found []string
	for _, p := range s.List() {
		texts := s.operands(p)
		for _, each := range cel.Constants(p.expressions()...) {
			texts = append(texts, fmt.Sprint(each))
		}
		for _, text := range texts {
			digits := strings.TrimRight(text, "KMGTPEikmnu")
			if number, err := strconv.Atoi(digits); err == nil {
				suffix := cmp.Or(text[len(digits):], strings.TrimLeft(own, "0123456789."))
				found = append(found, fmt.Sprint(number, suffix), fmt.Sprint(number+1, suffix))
			}
		}
	}
	return found[:min(len(found), mostNear)]
}

// equalQuantities returns other forms of a quantity: as a number, in thousandths, with an exponent, and in Ki.
func equalQuantities(text string) []string {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return nil
	}
	var all []string
	for _, form := range []string{
		strconv.FormatInt(q.Value(), 10), strconv.FormatInt(q.MilliValue(), 10) + "m", strconv.FormatInt(q.Value(), 10) + "e0",
		strconv.FormatInt(q.Value()/1024, 10) + "Ki", strconv.FormatFloat(q.AsApproximateFloat64(), 'f', -1, 64),
	} {
		if other, err := resource.ParseQuantity(form); err == nil && other.Cmp(q) == 0 && form != text && !slices.Contains(all, form) {
			all = append(all, form)
		}
	}
	return all
}

// large creates a sample in which a list or map that an expression loops over has ten times as many elements.
func (b *bench) large(s sample) {
	read := b.subject.readPaths(Policy.expressions)
	for _, path := range vary.Paths(s.Object, nil) {
		if value, _ := vary.At(s.Object, path); isCollection(value) && read.loopsOver(path) {
			more := vary.With(s.Object, path, func(old any) (any, bool) { return multiplied(old, b.schema(s.kind, path)), true })
			b.derive(Large, s, more, fmt.Sprintf("with up to %d times as many elements in %s", times, path))
		}
	}
}

// loopsOver reports whether an expression reads each element of a list or map.
func (r readPaths) loopsOver(path cel.Path) bool {
	return slices.ContainsFunc(r.reads, func(one cel.Read) bool {
		return slices.ContainsFunc(one.Paths, func(p cel.Path) bool {
			return len(p) > len(path) && p[len(path)] == any(cel.Each{}) && p.Matches(path)
		})
	})
}

// multiplied returns a list or map with copies of its elements under other names. The schema of a list says which fields must differ.
func multiplied(value any, schema map[string]any) any {
	keys, _ := schema["x-kubernetes-list-map-keys"].([]any)
	switch value := value.(type) {
	case []any:
		all := slices.Clone(value)
		for n := 2; n <= times; n++ {
			for i, element := range value {
				if text, ok := element.(string); ok {
					all = append(all, fmt.Sprintf("%s-%d", text, n))
					continue
				}
				all = append(all, withKeys(withName(element, fmt.Sprintf("contract-%d-%d", n, i)), keys, n))
			}
		}
		if most, bounded := schema["maxItems"].(float64); bounded {
			all = all[:min(len(all), int(most))]
		}
		return all
	case map[string]any:
		all := maps.Clone(value)
		for n := 2; n <= times; n++ {
			for key, element := range value {
				all[fmt.Sprintf("%s-%d", key, n)] = element
			}
		}
		return all
	}
	return value
}

// withKeys changes the first key of an element of a list, unless it is the name.
func withKeys(element any, keys []any, n int) any {
	fields, _ := element.(map[string]any) // a copy
	if len(keys) == 0 || keys[0] == "name" {
		return element
	}
	name := fmt.Sprint(keys[0])
	switch value := fields[name].(type) {
	case int64:
		fields[name] = value + int64(n)
	case string:
		fields[name] = fmt.Sprintf("%s-%d", value, n)
	}
	return element
}
