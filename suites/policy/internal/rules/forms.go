package rules

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/vary"
)

const quantityType = "io.k8s.apimachinery.pkg.api.resource.Quantity"

// forms creates a sample with each quantity in another form of the same value, which the schema finds.
func (b *bench) forms(s sample) {
	for _, path := range vary.Paths(s.Object, nil) {
		if kinds.TypeAt(b.openAPI[s.kind.GroupVersion()], s.kind, path) != quantityType {
			continue
		}
		value, _ := vary.At(s.Object, path)
		for _, form := range equalQuantities(fmt.Sprint(value)) {
			other := vary.With(s.Object, path, func(any) (any, bool) { return form, true })
			b.derive(Forms, s, other, fmt.Sprintf("with %s: %s, which is %v", path, form, value)).Control = b.sampleCase(s)
		}
	}
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
