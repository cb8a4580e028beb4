package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// subwrites makes a stored fix bad by each subresource that can carry the defect. The API server says which: what a read
// of the subresource returns for the bad object and its fix differs, and the response to the update has the difference.
func (b *bench) subwrites(ctx context.Context, s sample, kept, fixed *unstructured.Unstructured) ([]*Case, error) {
	kind := fixed.GroupVersionKind()
	var cases []*Case
	for _, name := range kinds.Subresources(b.openAPI[kind.GroupVersion()], kind) {
		bad, err := b.view(ctx, kept, name)
		if err != nil {
			return nil, err
		}
		good, err := b.view(ctx, fixed, name)
		if err != nil {
			return nil, err
		}
		if bad == nil || good == nil {
			continue
		}
		var writes []subwrite
		if defect := vary.Defect(bad.Object, good.Object); len(defect) > 0 {
			if good.GroupVersionKind() == kind {
				defect = b.subject.deciding(defect)
			}
			writes = append(writes, subwrite{object: edited(good, bad.Object, defect), defect: defect, alone: b.alone(s, defect, "what "+name+" has")})
		}
		if good.GroupVersionKind() == kind {
			writes = append(writes, b.addedElements(s, good)...)
		}
		for _, write := range writes {
			c, err := b.subwrite(ctx, s, fixed, name, write)
			if err != nil {
				return nil, err
			}
			if c == nil {
				continue
			}
			if write.alone != nil {
				c.Alone = write.alone
				cases = append(cases, write.alone)
			}
			cases = append(cases, c)
		}
	}
	return cases, nil
}

// subresources returns a request for each subresource of the samples that are bad and have a fix, only for rights.
func (b *bench) subresources(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		if s.fix == nil {
			continue
		}
		kept := b.addressed(s.fix)
		kind := kept.GroupVersionKind()
		for _, name := range kinds.Subresources(b.openAPI[kind.GroupVersion()], kind) {
			request := framework.Update(kept, kept)
			request.Subresource = name
			cases = append(cases, b.newCase(Subwrites, s, request, "", ""))
		}
	}
	return cases
}

// view returns what a subresource of a stored object is, or nil if it cannot be read.
func (b *bench) view(ctx context.Context, stored *unstructured.Unstructured, subresource string) (*unstructured.Unstructured, error) {
	result, err := b.sandbox.Send(ctx, framework.Request{
		Verb: framework.VerbGet, Kind: stored.GroupVersionKind(), Namespace: stored.GetNamespace(), Name: stored.GetName(), Subresource: subresource,
	})
	got, _ := result.Object.(*unstructured.Unstructured)
	switch {
	case errors.Is(err, framework.ErrNotServed) || err == nil && !result.Allowed():
		return nil, nil
	default:
		return got, err
	}
}

// subwrite is a write of a subresource.
type subwrite struct {
	object *unstructured.Unstructured
	defect []cel.Path
	// element is where a bad element of a list was added, or nil. Control is the same write with the good element.
	element cel.Path
	control *unstructured.Unstructured
	// moved is where the bad element is in the bad object, or nil.
	moved cel.Path
	// alone is the request for Case.Alone, if no element was added.
	alone *Case
}

// addedElements adds each bad element of a list to each other list in the object that can have it.
func (b *bench) addedElements(s sample, good *unstructured.Unstructured) []subwrite {
	var writes []subwrite
	for _, item := range b.badElements(s) {
		for _, path := range b.listsBeside(s, item) {
			value, _ := vary.At(good.Object, path)
			items, _ := value.([]any)
			added := func(element any) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: appended(good.Object, path, element)}
			}
			write := subwrite{object: added(item.bad), control: added(item.good), element: append(slices.Clone(path), len(items)), moved: item.path}
			for _, p := range item.values {
				write.defect = append(write.defect, slices.Concat(write.element, p[len(item.path):]))
			}
			if write.object.Object != nil {
				writes = append(writes, write)
			}
		}
	}
	return writes
}

// mostRefusals limits how often an element is sent again without the fields that the API server refuses in it.
const mostRefusals = 12

// subwrite returns the update of a subresource, or nil if the API server does not accept it or ignores the defect.
func (b *bench) subwrite(ctx context.Context, s sample, fixed *unstructured.Unstructured, name string, write subwrite) (*Case, error) {
	request := framework.Request{Verb: framework.VerbUpdate, Kind: fixed.GroupVersionKind(), Namespace: fixed.GetNamespace(), Name: fixed.GetName(), Subresource: name}
	change := "to the values of the bad object"
	if !slices.ContainsFunc(write.defect, func(p cel.Path) bool { return p[0] != "metadata" }) {
		change = "to the metadata of the bad object"
		if name == "status" {
			change += " (metadata through status, which usually only controllers may write)"
		}
	}
	if write.element != nil {
		change = fmt.Sprintf("to have the bad element in %s", write.element[:len(write.element)-1])
	}
	what := fmt.Sprintf("update the subresource %s of the stored fix of", name)
	for range mostRefusals {
		request.Object = write.object
		c := b.newCase(Subwrites, s, request, what, change)
		c.controls = b.controlsOf(s, write.moved)
		sent := []*Case{c}
		if write.control != nil {
			request.Object = write.control
			c.Control = b.newCase(Controls, s, request, what, "to have the good element")
			sent = append(sent, c.Control)
		}
		if err := b.send(ctx, sent, before); err != nil {
			return nil, err
		}
		refused := slices.DeleteFunc(sent, (*Case).Accepted)
		if len(refused) == 0 {
			if _, kept := vary.At(c.Before.Fields(), write.element); kept && carries(c.Before.Fields(), write.object.Object, write.defect) {
				return c, nil
			}
			return nil, nil
		}
		if write.element == nil || !write.withoutRefused(refused[0].Before) {
			return nil, nil
		}
	}
	return nil, nil
}

// carries reports whether an object has the values of another one at some paths.
func carries(object, other map[string]any, paths []cel.Path) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(path cel.Path) bool {
		value, found := vary.At(object, path)
		wanted, want := vary.At(other, path)
		return found != want || !equality.Semantic.DeepEqual(value, wanted)
	})
}

// withoutRefused removes the fields of the added element that a refusal names, unless they are the defect. It reports
// whether there was one.
func (w *subwrite) withoutRefused(refusal framework.Result) bool {
	if refusal.Status.Details == nil {
		return false
	}
	removed := false
	for _, cause := range refusal.Status.Details.Causes {
		rest, found := strings.CutPrefix(cause.Field, w.element.String()+".")
		field, _, _ := strings.Cut(strings.ReplaceAll(rest, "[", "."), ".")
		path := w.element.Then(field)
		if _, has := vary.At(w.object.Object, path); !found || !has || slices.ContainsFunc(w.defect, func(p cel.Path) bool { return p.Below(path) }) {
			continue
		}
		removed = true
		for _, u := range []*unstructured.Unstructured{w.object, w.control} {
			if changed := vary.With(u.Object, path, vary.Remove); changed != nil {
				u.Object = changed
			}
		}
	}
	return removed
}
