package rules

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// patched sends what an update does as a patch of each type, and as an apply. The update is the Control.
func (b *bench) patched(s sample, update *Case, old *unstructured.Unstructured) ([]*Case, error) {
	changed, ok := update.Request.Object.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(changed)
	if err != nil {
		return nil, err
	}
	merge, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, err
	}
	operations, err := json.Marshal(replacing(old.Object, changed.Object))
	if err != nil {
		return nil, err
	}
	request := framework.Request{Verb: framework.VerbPatch, Kind: old.GroupVersionKind(), Namespace: old.GetNamespace(), Name: old.GetName()}
	var cases []*Case
	for _, patch := range []struct {
		typ  types.PatchType
		body []byte
	}{{types.JSONPatchType, operations}, {types.MergePatchType, merge}, {types.StrategicMergePatchType, merge}} {
		request.HTTP = framework.HTTP{Patch: patch.body, PatchType: patch.typ}
		cases = append(cases, b.newCase(Verbs, s, request, update.What, "as a patch of type "+string(patch.typ)))
	}
	applied := &unstructured.Unstructured{Object: vary.OfClient(changed.Object)}
	cases = append(cases, b.newCase(Verbs, s, applying(applied), update.What, "as an apply"))
	for _, c := range cases {
		c.What, c.Control = update.What+c.What[len(update.What+" "+s.name):], update
	}
	return cases, nil
}

// applying is a server-side apply of an object.
func applying(u *unstructured.Unstructured) framework.Request {
	return framework.Request{
		Verb: framework.VerbApply, Kind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Object: u,
		HTTP: framework.HTTP{Query: url.Values{"fieldManager": {"contract"}, "force": {"true"}}},
	}
}

// replacing returns a JSON patch that replaces the fields in which an object differs from another one.
func replacing(old, changed map[string]any) []map[string]any {
	operations := []map[string]any{}
	var done []any
	for _, path := range vary.Difference(old, changed, nil) {
		field, _ := path[0].(string)
		if slices.Contains(done, path[0]) {
			continue
		}
		done = append(done, path[0])
		if value, found := changed[field]; found {
			operations = append(operations, map[string]any{"op": "add", "path": "/" + field, "value": value})
		} else {
			operations = append(operations, map[string]any{"op": "remove", "path": "/" + field})
		}
	}
	return operations
}

// created sends what creates a sample as an apply.
func (b *bench) created(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		u := b.addressed(s.object)
		if u.GetName() == "" {
			continue
		}
		c := b.newCase(Verbs, s, applying(u), "create", "as an apply")
		c.Control = b.sampleCase(s)
		cases = append(cases, c)
	}
	return cases
}

// sampleCase returns the creation of a sample, or nil.
func (b *bench) sampleCase(s sample) *Case {
	for _, c := range b.observed.Cases {
		if c.Group == Samples && c.Good == s.good && c.Bad == s.bad {
			return c
		}
	}
	return nil
}

// real creates the samples, which is no dry run, under other names. It is for after all other requests.
func (b *bench) real(ctx context.Context) error {
	var cases []*Case
	for _, s := range b.samples() {
		control := b.sampleCase(s)
		if control == nil || !control.Accepted() || !b.copied[s.name] {
			continue
		}
		u := b.addressed(s.object)
		if u.GetName() == "" {
			continue
		}
		u.SetName(b.storedName(s, u.GetName(), "-real"))
		c := b.newCase(Verbs, s, framework.Create(u), "create", "which is no dry run")
		c.Request.DryRun, c.Control, c.Before = false, control, control.Before
		cases = append(cases, c)
	}
	b.observed.Cases = append(b.observed.Cases, cases...)
	return b.send(ctx, cases, after)
}
