package harness_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// working does what plugins do: it reads from the cache and from the API.
func working() harness.Source {
	return reading(func(ctx context.Context, r *reader, a admission.Attributes) error {
		if _, err := r.lister.Get(a.GetNamespace()); err != nil {
			return err
		}
		_, err := r.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
		return err
	})
}

// BenchmarkDo compares Do with a direct call of the plugin that uses prepared attributes. It
// measures both alternately, so that other load on the machine slows both, and reports the ratio of
// the medians. The ratio should be at most 2 for a plugin that does some work. A plugin that does
// nothing shows the overhead of Do.
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
			h := harness.New(b, plugins.source, harness.WithWorld(fakes.NewWorld(b, fakes.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}}))))
			request := framework.Create(subject)
			a, err := h.Attributes(request, framework.Mutating)
			if err != nil {
				b.Fatal(err)
			}
			objects, ctx := h.ObjectInterfaces(subject), b.Context()
			mutator, validator := h.Plugin().(admission.MutationInterface), h.Plugin().(admission.ValidationInterface)
			var byHand, byDo []time.Duration
			for b.Loop() {
				start := time.Now()
				if err := mutator.Admit(ctx, a, objects); err != nil {
					b.Fatal(err)
				}
				if err := validator.Validate(ctx, a, objects); err != nil {
					b.Fatal(err)
				}
				between := time.Now()
				h.Do(request).MustAllow(b)
				byHand, byDo = append(byHand, between.Sub(start)), append(byDo, time.Since(between))
			}
			hand, do := median(byHand), median(byDo)
			b.ReportMetric(float64(hand), "by-hand-ns")
			b.ReportMetric(float64(do), "by-Do-ns")
			b.ReportMetric(float64(do)/float64(hand), "times")
		})
	}
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
