package harness_test

import (
	"context"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// working does what plugins do: a read of the cache and one of the API.
func working() harness.Source {
	return reading(func(ctx context.Context, r *reader, a admission.Attributes) error {
		if _, err := r.lister.Get(a.GetNamespace()); err != nil {
			return err
		}
		_, err := r.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
		return err
	})
}

// BenchmarkDo measures Do beside a call by hand with attributes made before, and says
// how many times as long it takes. It is to be at most twice as long for a plugin that
// works; one that does nothing shows what is spent in all.
func BenchmarkDo(b *testing.B) {
	nothing := func(context.Context, admission.Attributes, admission.ObjectInterfaces) error { return nil }
	subject := pod("p", func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}, {Name: "b", Image: "b"}}
	})
	for _, plugins := range []struct {
		name   string
		source harness.Source
	}{{"working", working()}, {"idle", plugin(nothing, nothing)}} {
		b.Run(plugins.name, func(b *testing.B) {
			request := framework.Create(subject)
			world := func() harness.Option {
				return harness.WithWorld(fakes.NewWorld(b, fakes.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}})))
			}
			var byHand, byDo float64
			b.Run("by hand", func(b *testing.B) {
				h := harness.New(b, plugins.source, world())
				a, err := h.Attributes(request, framework.Mutating)
				if err != nil {
					b.Fatal(err)
				}
				o := h.ObjectInterfaces(subject)
				b.ReportAllocs()
				for b.Loop() {
					if err := h.Plugin().(admission.MutationInterface).Admit(b.Context(), a, o); err != nil {
						b.Fatal(err)
					}
					if err := h.Plugin().(admission.ValidationInterface).Validate(b.Context(), a, o); err != nil {
						b.Fatal(err)
					}
				}
				byHand = float64(b.Elapsed()) / float64(b.N)
			})
			b.Run("by Do", func(b *testing.B) {
				h := harness.New(b, plugins.source, world())
				b.ReportAllocs()
				for b.Loop() {
					h.Do(request).MustAllow(b)
				}
				byDo = float64(b.Elapsed()) / float64(b.N)
				b.ReportMetric(byDo/byHand, "×by-hand")
			})
		})
	}
}
