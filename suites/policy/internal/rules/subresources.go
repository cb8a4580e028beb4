package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// subwrites makes a stored fix bad by each subresource that can carry the defect. The API server says which: what a read
// of the subresource returns for the bad object and its fix differs, and the response to the update has the difference.
func (b *bench) subwrites(ctx context.Context, s sample, kept, fixed *unstructured.Unstructured) {
	for _, name := range kinds.Subresources(b.openAPI[s.kind.GroupVersion()], s.kind) {
		bad, good := b.get(ctx, s.kind, kept, name), b.get(ctx, s.kind, fixed, name)
		if bad == nil || good == nil {
			continue
		}
		same := good.GroupVersionKind() == s.kind
		if same {
			b.addedElements(ctx, s, name, good)
		}
		defect := vary.Defect(bad.Object, good.Object)
		if same && len(defect) > 0 {
			defect = b.subject.deciding(defect)
		}
		changed := edited(good, bad.Object, defect)
		request, made := b.tried(ctx, s, name, changed.Object)
		onlyMetadata := !slices.ContainsFunc(defect, func(p cel.Path) bool { return p[0] != "metadata" })
		if len(defect) == 0 || onlyMetadata && name == "status" || !carries(made, changed.Object, defect) { // controllers may write the status
			continue
		}
		to := "to the values of the bad object"
		if onlyMetadata {
			to = "to the metadata of the bad object"
		}
		c := b.add(Subwrites, s, request, updateOf(name), to)
		if alone := b.alone(s, defect, "what "+name+" has"); alone != nil {
			c.needs = []need{refused(alone)}
		}
	}
}

func updateOf(subresource string) string {
	return fmt.Sprintf("update the subresource %s of the stored fix of", subresource)
}

// addedElements adds, by a subresource, each bad element of a list to each other list in the object that can have it: as it is or, if the
// API server does not accept that, with its texts and its defect only.
func (b *bench) addedElements(ctx context.Context, s sample, name string, good *unstructured.Unstructured) {
	for _, item := range badElements(s) {
		for _, path := range b.listsBeside(s, item) {
			items, _ := valueAt[[]any](good.Object, path)
			at := path.Then(len(items))
			var defect []cel.Path
			for _, p := range item.values {
				defect = append(defect, slices.Concat(at, p[len(item.path):]))
			}
			for _, only := range []func(any) any{func(whole any) any { return whole }, item.least} {
				changed := appended(good.Object, path, only(item.bad))
				_, fixed := b.tried(ctx, s, name, appended(good.Object, path, only(item.good)))
				request, made := b.tried(ctx, s, name, changed)
				if _, has := vary.At(made, at); has && fixed != nil && carries(made, changed, defect) {
					b.add(Subwrites, s, request, updateOf(name), fmt.Sprintf("to have the bad element in %s", path)).needs = b.elementNeeds(s, item)
					break
				}
			}
		}
	}
}

// least returns the texts of the bad or the good element, and the fields in which they differ.
func (e badElement) least(of any) any {
	fields, ok := of.(map[string]any)
	if !ok {
		return nil
	}
	kept := maps.Clone(fields)
	maps.DeleteFunc(kept, func(name string, value any) bool {
		_, isText := value.(string)
		return !isText && len(vary.Below(e.values, e.path.Then(name))) == 0
	})
	return kept
}

// tried returns the update of a subresource, and what the API server makes of it: nil if it does not accept it.
func (b *bench) tried(ctx context.Context, s sample, name string, changed map[string]any) (framework.Request, map[string]any) {
	if changed == nil {
		return framework.Request{}, nil
	}
	request := framework.Update(nil, &unstructured.Unstructured{Object: changed})
	request.Kind, request.Subresource = s.kind, name
	result := b.do(ctx, request.WithDryRun())
	if !result.Allowed() {
		return request, nil
	}
	return request, result.Fields()
}

// carries reports whether an object has the values of another one at some paths.
func carries(object, other map[string]any, paths []cel.Path) bool {
	return object != nil && !slices.ContainsFunc(paths, func(path cel.Path) bool {
		value, found := vary.At(object, path)
		wanted, want := vary.At(other, path)
		return found != want || !equality.Semantic.DeepEqual(value, wanted)
	})
}
