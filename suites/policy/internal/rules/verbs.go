package rules

import (
	"context"
	"encoding/json"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// patched adds what an update does as a patch of each type, and as an apply. The update is the Control.
func (b *bench) patched(s sample, update *Case, old *unstructured.Unstructured) {
	changed, ok := update.Request.Object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	add := func(request framework.Request, how string) {
		c := b.add(Verbs, s, request, "", "")
		c.What, c.Control = update.What+", as "+how, update
	}
	request := framework.Request{Verb: framework.VerbPatch, Kind: old.GroupVersionKind(), Namespace: old.GetNamespace(), Name: old.GetName()}
	merge := object.MergePatch(old.Object, changed.Object)
	for _, patch := range []struct {
		of   types.PatchType
		body any
	}{
		{types.JSONPatchType, []any{map[string]any{"op": "replace", "path": "", "value": changed.Object}}},
		{types.MergePatchType, merge},
		{types.StrategicMergePatchType, merge},
	} {
		body, _ := json.Marshal(patch.body) // it comes from JSON
		request.HTTP = framework.HTTP{Patch: body, PatchType: patch.of}
		add(request, "a patch of type "+string(patch.of))
	}
	add(applying(&unstructured.Unstructured{Object: vary.OfClient(changed.Object)}), "an apply")
}

// applying is a server-side apply of an object.
func applying(u *unstructured.Unstructured) framework.Request {
	return framework.Request{
		Verb: framework.VerbApply, Kind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Object: u,
		HTTP: framework.HTTP{Query: url.Values{"fieldManager": {"contract"}, "force": {"true"}}},
	}
}

// verbs creates a sample by an apply, or updates it by each other verb.
func (b *bench) verbs(s sample) {
	if s.stored != nil {
		b.patched(s, b.sampleCase(s), s.stored)
	} else if u := b.addressed(s.Object); u.GetName() != "" {
		b.add(Verbs, s, applying(u), "create", "as an apply").Control = b.sampleCase(s)
	}
}

// sampleCase returns the creation of a sample, or nil.
func (b *bench) sampleCase(s sample) *Case { return b.observed.first(Samples, s.good, s.bad) }

// again returns a copy of a sample for a request that is no dry run, under another name, with its creation. The copy is nil if there
// can be none.
func (b *bench) again(s sample, suffix string) (copied *unstructured.Unstructured, creation *Case) {
	u, c := b.addressed(s.Object), b.sampleCase(s)
	if s.stored != nil || !c.Accepted() || !b.copied[s.Name] || u.GetName() == "" {
		return nil, nil
	}
	u.SetName(b.storedName(s, u.GetName(), suffix))
	return u, c
}

// real creates the samples, which is no dry run, under other names. It is for after all other requests.
func (b *bench) real(ctx context.Context) error {
	n := len(b.observed.Cases)
	for _, s := range b.samples {
		if u, control := b.again(s, "-real"); u != nil {
			c := b.add(Verbs, s, framework.Create(u), "create", "which is no dry run")
			c.Request.DryRun, c.Control, c.Before = false, control, control.Before
		}
	}
	return b.send(ctx, b.observed.Cases[n:], after)
}

// otherVersions returns the other served versions of a kind.
func (b *bench) otherVersions(kind schema.GroupVersionKind) []schema.GroupVersionKind {
	return b.served(func(each metav1.APIResource) bool {
		return isObject(each) && each.Group == kind.Group && each.Kind == kind.Kind && each.Version != kind.Version
	})
}

// versions creates a stored bad object in each other version, as the API server converts it. A version in which it
// is the same as its fix does not have the defect.
func (b *bench) versions(ctx context.Context, s sample, bad, fixed *unstructured.Unstructured) {
	for _, kind := range b.otherVersions(s.kind) {
		converted, other := b.get(ctx, kind, bad, ""), b.get(ctx, kind, fixed, "")
		if converted == nil || other == nil || len(vary.Defect(converted.Object, other.Object)) == 0 {
			continue
		}
		converted.Object = vary.OfClient(converted.Object)
		converted.SetName(bad.GetName() + "-converted")
		b.derive(Versions, s, converted.Object, "in version "+kind.GroupVersion().String())
	}
}
