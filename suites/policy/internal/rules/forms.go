package rules

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

const quantityType = "io.k8s.apimachinery.pkg.api.resource.Quantity"

// forms creates the samples with each quantity in another form of the same value, which the schema finds.
func (b *bench) forms(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		kind, err := object.Kind(s.object)
		if err != nil {
			continue
		}
		for _, path := range b.quantities(s, kind) {
			value, _ := vary.At(s.object, path)
			for _, form := range equalQuantities(fmt.Sprint(value)) {
				c := b.create(Forms, s, vary.With(s.object, path, func(any) (any, bool) { return form, true }), fmt.Sprintf("with %s: %s, which is %v", path, form, value))
				c.Path, c.Control = path, b.sampleCase(s)
				cases = append(cases, c)
			}
		}
	}
	return cases
}

// quantities returns the paths of the quantities of a sample.
func (b *bench) quantities(s sample, kind schema.GroupVersionKind) []cel.Path {
	return slices.DeleteFunc(vary.Paths(s.object, nil), func(path cel.Path) bool {
		return kinds.TypeAt(b.openAPI[kind.GroupVersion()], kind, path) != quantityType
	})
}

// equalQuantities returns other forms of a quantity: as a number, in thousandths, with an exponent, and in Ki.
func equalQuantities(text string) []string {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return nil
	}
	var all []string
	add := func(form string) {
		if other, err := resource.ParseQuantity(form); err == nil && other.Cmp(q) == 0 && form != text && !slices.Contains(all, form) {
			all = append(all, form)
		}
	}
	add(strconv.FormatInt(q.Value(), 10))
	add(strconv.FormatInt(q.MilliValue(), 10) + "m")
	add(strconv.FormatInt(q.Value(), 10) + "e0")
	add(strconv.FormatInt(q.Value()/1024, 10) + "Ki")
	add(strconv.FormatFloat(q.AsApproximateFloat64(), 'f', -1, 64))
	return all
}
