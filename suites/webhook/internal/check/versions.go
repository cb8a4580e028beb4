package check

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/review"
)

// Version is a sample in another version of its kind.
type Version struct {
	Request reach.Request
	// SameFields is whether the API server converts it by changing only its apiVersion.
	SameFields bool
}

// InVersions returns a case in the other versions that the sample names, and in those whose objects differ only in their
// apiVersion.
func (t *T) InVersions(c Case) []Version {
	all := append([]Version{}, c.versions...)
	for _, name := range t.Kinds.OtherVersions(c.Request.Kind) {
		u := (&unstructured.Unstructured{Object: c.Request.Object}).DeepCopy()
		u.SetAPIVersion(schema.GroupVersion{Group: c.Request.Kind.Group, Version: name}.String())
		if r, err := t.Kinds.New(u.Object, review.OpCreate, ""); err == nil {
			r.User = c.Request.User
			all = append(all, Version{r, true})
		}
	}
	return all
}

// CalledFor returns the webhook that gets a request, not converted: this one, or the only other one of its kind. Nil means that
// there is none.
func (t *T) CalledFor(r reach.Request) *Webhook {
	unconverted := cluster{reach.NewMapper(nil), t.cluster.namespaces}
	if ok, _ := t.reaches(t.Context(), t.Webhook, r, unconverted); ok {
		return t.Webhook
	}
	var found *Webhook
	for _, w := range t.Webhooks {
		if ok, _ := t.reaches(t.Context(), w, r, unconverted); !ok || w.Kind != t.Kind {
			continue
		}
		if found != nil {
			return nil
		}
		found = w
	}
	return found
}

// DecideBy is Decide for another webhook of the Subject.
func (t *T) DecideBy(w *Webhook, r reach.Request) (Decision, bool) {
	return t.decided(Describe(r), w.inPhase(r).Object, t.Send(t.Context(), w, r))
}

// patched applies a patch, and sets the defaults of a CustomResourceDefinition, as an API server does after each webhook.
func (p *Prepared) patched(fields map[string]any, patch []byte) (map[string]any, error) {
	result, err := applyPatch(fields, patch)
	if err != nil {
		return nil, err
	}
	return p.Kinds.Defaulted(result), nil
}
