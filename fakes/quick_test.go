package fakes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestQuickMapper: the short way to a mapping ends where the long one does.
func TestQuickMapper(t *testing.T) {
	w := NewWorld(t)
	whole := newMapper(w.kinds)
	asked := 0
	for _, gv := range w.kinds.versions() {
		for _, k := range w.kinds.served(gv) {
			asked++
			quick, err := w.RESTMapper().RESTMapping(k.gvk.GroupKind(), k.gvk.Version)
			if err != nil {
				t.Errorf("%s: %v", k.gvk, err)
				continue
			}
			slow, err := whole.RESTMapping(k.gvk.GroupKind(), k.gvk.Version)
			if err != nil {
				t.Errorf("%s, the long way: %v", k.gvk, err)
				continue
			}
			if quick.Resource != slow.Resource || quick.GroupVersionKind != slow.GroupVersionKind || quick.Scope.Name() != slow.Scope.Name() {
				t.Errorf("%s (- the long way, + the short one):\n%s", k.gvk, cmp.Diff(slow, quick))
			}
		}
	}
	if asked < 100 {
		t.Errorf("%d kinds were looked at, want all of Kubernetes", asked)
	}
}
