package harness_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// relabels is knownTeam, and labels the cached team of a pod.
type relabels struct{ *knownTeam }

func (p relabels) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.knownTeam.Validate(ctx, a, o); err != nil {
		return err
	}
	team, err := p.teams.Get("blue")
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	labelled, ok := team.(*unstructured.Unstructured)
	if !ok {
		return admission.NewForbidden(a, fmt.Errorf("got %T, want an unstructured object", team))
	}
	labelled.SetLabels(map[string]string{"seen": "true"})
	return nil
}

// TestInformersOfPlugins: when a plugin has been built, alone or in a chain, the informers that it made have their
// objects, and a change to one of them is found.
func TestInformersOfPlugins(t *testing.T) {
	group := schema.GroupVersion{Group: "example.com", Version: "v1"}
	blue := &unstructured.Unstructured{}
	blue.SetGroupVersionKind(group.WithKind("Team"))
	blue.SetName("blue")
	for name, build := range map[string]func(*testing.T, harness.Source, *fakes.World) *harness.Harness{
		"alone": func(t *testing.T, source harness.Source, w *fakes.World) *harness.Harness {
			return harness.New(t, source, harness.WithWorld(w))
		},
		"in a chain": func(t *testing.T, source harness.Source, w *fakes.World) *harness.Harness {
			return harness.NewChain(t, harness.Chain{Plugins: []harness.Source{source.Named("Relabels")}}, harness.WithWorld(w))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakes.NewWorld(t, fakes.WithObjects(blue), fakes.WithMappings(meta.RESTMapping{
				Resource: group.WithResource("teams"), GroupVersionKind: group.WithKind("Team"), Scope: meta.RESTScopeRoot,
			}))
			var plugin *knownTeam
			h := build(t, harness.FromFactory(func(io.Reader) (admission.Interface, error) {
				plugin = &knownTeam{Handler: admission.NewHandler(admission.Create)}
				return relabels{plugin}, nil
			}), w)
			if _, err := plugin.teams.Get("blue"); err != nil {
				t.Errorf("right after the plugin was built: %v, want the team", err)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", Labels: map[string]string{"team": "blue"}}}
			result := h.Do(framework.Create(pod))
			if len(result.CacheEdits) != 1 || result.CacheEdits[0].Name != "blue" {
				t.Errorf("got the cache edits %v, want one of team blue", result.CacheEdits)
			}
		})
	}
}
