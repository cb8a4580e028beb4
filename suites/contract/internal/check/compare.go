package check

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/internal/object"
)

// lineWidth is the length at which lines of a diff are cut: go-cmp prints unchanged values
// beside a change in full, however long they are.
const lineWidth = 160

// Copy returns a deep copy of an object; nil for nil.
func Copy(of runtime.Object) runtime.Object {
	if object.IsNil(of) {
		return nil
	}
	return of.DeepCopyObject()
}

// Equal reports whether two objects are semantically equal, as defined by
// k8s.io/apimachinery/pkg/api/equality.
func Equal(a, b runtime.Object) (equal bool) {
	if object.IsNil(a) || object.IsNil(b) {
		return object.IsNil(a) == object.IsNil(b)
	}
	defer func() {
		if recover() != nil { // equality panics at unexported fields
			equal = reflect.DeepEqual(a, b)
		}
	}()
	return equality.Semantic.DeepEqual(a, b)
}

// Diff returns the difference between two objects as go-cmp prints it. Long lines are cut.
func Diff(was, is runtime.Object) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("- %T\n+ %T, with other content", was, is)
		}
	}()
	every := cmp.Exporter(func(reflect.Type) bool { return true })
	return cutLines(cmp.Diff(was, is, every))
}

// cutLines cuts each line after lineWidth characters.
func cutLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if runes := []rune(line); len(runes) > lineWidth {
			lines[i] = string(runes[:lineWidth]) + " …"
		}
	}
	return strings.Join(lines, "\n")
}
