package object_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/object"
)

func TestIsNil(t *testing.T) {
	var pod *corev1.Pod
	for _, test := range []struct {
		name   string
		object runtime.Object
		want   bool
	}{
		{"nil interface", nil, true},
		{"nil pointer", pod, true},
		{"object", &corev1.Pod{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := object.IsNil(test.object); got != test.want {
				t.Errorf("IsNil = %t, want %t", got, test.want)
			}
		})
	}
}

func TestKind(t *testing.T) {
	got, err := object.Kind(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"})
	if want := (schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}); got != want || err != nil {
		t.Errorf("Kind = %v, %v; want %v", got, err, want)
	}
	for _, manifest := range []map[string]any{nil, {"kind": "Pod"}, {"apiVersion": "v1"}, {"apiVersion": "a/b/c", "kind": "Pod"}, {"apiVersion": 1, "kind": "Pod"}} {
		t.Run(fmt.Sprint(manifest), func(t *testing.T) {
			if got, err := object.Kind(manifest); !errors.Is(err, object.ErrNoKind) {
				t.Errorf("Kind(%v) = %v, %v; want ErrNoKind", manifest, got, err)
			}
		})
	}
}
