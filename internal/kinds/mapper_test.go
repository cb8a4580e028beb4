package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// TestQuickMapper: the short way to a map ends where the long one does.
func TestQuickMapper(t *testing.T) {
	registry, err := New([]*runtime.Scheme{clientscheme.Scheme}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mapper, whole := registry.RESTMapper(), newMapper(registry)
	asked := 0
	for _, gv := range registry.Versions() {
		for _, k := range registry.Served(gv) {
			asked++
			quick, err := mapper.RESTMapping(k.GVK.GroupKind(), k.GVK.Version)
			if err != nil {
				t.Errorf("%s: %v", k.GVK, err)
				continue
			}
			slow, err := whole.RESTMapping(k.GVK.GroupKind(), k.GVK.Version)
			if err != nil {
				t.Errorf("%s, the long way: %v", k.GVK, err)
				continue
			}
			if quick.Resource != slow.Resource || quick.GroupVersionKind != slow.GroupVersionKind || quick.Scope.Name() != slow.Scope.Name() {
				t.Errorf("%s (- the long way, + the short one):\n%s", k.GVK, cmp.Diff(slow, quick))
			}
		}
	}
	if asked < 100 {
		t.Errorf("%d kinds were looked at, want all of Kubernetes", asked)
	}
}
