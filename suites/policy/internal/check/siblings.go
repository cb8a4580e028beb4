package check

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/internal/fields"
	"github.com/admissiontest/admissiontest/internal/object"
)

// openAPILimit is how long an API server may take to publish the schemas of a new CustomResourceDefinition.
const openAPILimit = 10 * time.Second

// readSchemas reads the OpenAPI documents for the samples and for what the policies match.
func (b *bench) readSchemas(ctx context.Context, all []sample) error {
	b.openAPI = map[schema.GroupVersion]map[string]any{}
	read := b.server.Optional().OpenAPI
	if read == nil {
		return nil
	}
	var err error
	versions := b.matched()
	for _, s := range all {
		kind, err := object.Kind(s.object)
		if err != nil {
			return err
		}
		versions = append(versions, kind.GroupVersion())
	}
	for _, version := range versions {
		if _, known := b.openAPI[version]; known {
			continue
		}
		var document map[string]any
		_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, openAPILimit, true, func(ctx context.Context) (bool, error) {
			document, err = read(ctx, version)
			return !apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return err
		}
		b.openAPI[version] = document
	}
	return nil
}

// matched returns the served groups and versions of what the policies match.
func (b *bench) matched() []schema.GroupVersion {
	var all []schema.GroupVersion
	for _, p := range b.subject.List() {
		for _, kind := range b.kindsOf(p) {
			if version := kind.GroupVersion(); version.Version != "*" && !slices.Contains(all, version) {
				all = append(all, version)
			}
		}
	}
	return all
}

// siblings puts each bad element of a list into each other list of the same object whose elements have its fields.
func (b *bench) siblings(all []sample) []*Case {
	var cases []*Case
	for _, s := range all {
		if s.fix == nil {
			continue
		}
		for _, list := range listsOf(b.subject.Bad[s.bad].Defect()) {
			for _, item := range b.badElements(s, list) {
				for _, path := range b.listsBeside(s, list, item) {
					appended := func(element any) map[string]any {
						return with(s.fix, path, func(old any) (any, bool) {
							items, _ := old.([]any)
							return append(slices.Clone(items), withName(element, movedName)), true
						})
					}
					varied, control := appended(item.bad), appended(item.good)
					if varied == nil || item.good == nil {
						continue
					}
					c := b.create(Siblings, s, varied, "with its fix, and the bad element in "+path.String())
					c.Path = path
					b.setControls(c, s, list)
					c.Control = b.create(Controls, s, control, "with its fix, and the good element in "+path.String())
					cases = append(cases, c.Control)
					cases = append(cases, c)
				}
			}
		}
	}
	return cases
}

// listsBeside returns the other lists in the object that has a list, whose elements can have all fields of an element, and
// of what the fix has instead.
func (b *bench) listsBeside(s sample, list Path, item badElement) []Path {
	kind, err := object.Kind(s.object)
	if err != nil {
		return nil
	}
	both := maps.Clone(item.bad)
	if good, ok := item.good.(map[string]any); ok {
		maps.Copy(both, good)
	}
	var found []Path
	for _, name := range fields.ListsBeside(b.openAPI[kind.GroupVersion()], kind, list, both) {
		found = append(found, append(slices.Clone(list[:len(list)-1]), any(name)))
	}
	return found
}

// listsOf returns the lists that have a defect in an element, each once.
func listsOf(defect []Path) []Path {
	var lists []Path
	for _, path := range defect {
		for i, step := range path {
			if _, isIndex := step.(int); !isIndex || i == 0 {
				continue
			}
			if list := path[:i]; !slices.ContainsFunc(lists, func(p Path) bool { return slices.Equal(p, list) }) {
				if _, named := list[i-1].(string); named {
					lists = append(lists, list)
				}
			}
		}
	}
	return lists
}

// badElement is an element of a list that has the whole defect of a bad sample.
type badElement struct {
	index int // in the list
	bad   map[string]any
	good  any // what the fix has instead, or nil
	// defect are the paths of the defect in the element. One without a step means the whole element.
	defect []Path
}

// badElements returns copies of the element of a list that has the whole defect of a bad sample: moved without the rest of
// a defect, it can be good.
func (b *bench) badElements(s sample, list Path) []badElement {
	value, _ := at(s.object, list)
	items, _ := value.([]any)
	defect := b.subject.Bad[s.bad].Defect()
	for i, item := range items {
		path := append(slices.Clone(list), any(i))
		fields, ok := item.(map[string]any)
		if ok && !slices.ContainsFunc(defect, func(p Path) bool { return !p.below(path) }) {
			good, _ := at(s.fix, path)
			found := badElement{index: i, bad: runtime.DeepCopyJSON(fields), good: runtime.DeepCopyJSONValue(good)}
			for _, p := range defect {
				found.defect = append(found.defect, p[len(path):])
			}
			return []badElement{found}
		}
	}
	return nil
}

// withName returns a copy of an element with a name, if it has one.
func withName(element any, name string) any {
	copied := runtime.DeepCopyJSONValue(element)
	if fields, ok := copied.(map[string]any); ok && named(fields) {
		fields["name"] = name
	}
	return copied
}
