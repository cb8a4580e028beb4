package check

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Snapshot has copies of the objects of a request, to find out which of them change.
type Snapshot struct{ given, copies Attributes }

// TakeSnapshot copies the objects of a request.
func TakeSnapshot(given Attributes) Snapshot {
	return Snapshot{given, Attributes{Object: Copy(given.Object), OldObject: Copy(given.OldObject), Options: Copy(given.Options)}}
}

// Changes returns what has changed since the snapshot; empty means nothing.
func (s Snapshot) Changes() string {
	var changed []string
	for _, each := range []struct {
		name    string
		was, is runtime.Object
	}{
		{"object", s.copies.Object, s.given.Object},
		{"old object", s.copies.OldObject, s.given.OldObject},
		{"operation options", s.copies.Options, s.given.Options},
	} {
		if !Equal(each.was, each.is) {
			changed = append(changed, fmt.Sprintf("it changed the %s (- was, + is):\n%s", each.name, Diff(each.was, each.is)))
		}
	}
	return strings.Join(changed, "\n")
}
