package rules

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// finalizer holds objects in deletion.
const finalizer = "contract.admissiontest.dev/held"

// Controllers are the users of Kubernetes that delete what a namespace or an owner has. In a cluster with separate
// accounts these are ServiceAccounts, and one user otherwise.
func Controllers() []framework.User {
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}
	return []framework.User{
		{Name: "system:serviceaccount:kube-system:namespace-controller", Groups: groups},
		{Name: "system:serviceaccount:kube-system:generic-garbage-collector", Groups: groups},
		{Name: "system:kube-controller-manager", Groups: []string{"system:authenticated"}},
	}
}

// sample is an object of the Subject.
type sample struct {
	good, bad int
	object    map[string]any
	fix       map[string]any // of a bad one
	defect    []cel.Path     // of a bad one with a fix, without what the policies do not read
	name      string         // "good[0]"
}

func (b *bench) samples() []sample {
	var all []sample
	for i, manifest := range b.subject.Good {
		all = append(all, sample{good: i, bad: -1, object: manifest, name: fmt.Sprintf("good[%d]", i)})
	}
	for i, bad := range b.subject.Bad {
		all = append(all, sample{good: -1, bad: i, object: bad.Object, fix: bad.Fix, name: fmt.Sprintf("bad[%d]", i)})
	}
	return all
}

func (b *bench) withDefect(s sample) sample {
	if s.fix != nil {
		s.defect = b.subject.deciding(b.subject.Bad[s.bad].Defect())
	}
	return s
}

// before sends all requests before the policies are installed.
func (b *bench) before(ctx context.Context) error {
	var first []*Case
	var served []sample
	for _, s := range b.samples() {
		kind, err := object.Kind(s.object)
		if err == nil {
			_, err = b.server.Namespaced(kind)
		}
		if errors.Is(err, framework.ErrNotServed) {
			b.observed.NotServed = append(b.observed.NotServed, s.name+": "+err.Error())
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSubject, s.name, err)
		}
		served = append(served, b.withDefect(s))
		first = append(first, b.create(Samples, s, s.object, ""))
		if s.fix != nil {
			first = append(first, b.create(Fixes, s, s.fix, "with its fix"))
		}
	}
	if err := b.readSchemas(ctx, served); err != nil {
		return err
	}
	if err := b.grant(ctx, slices.Concat(first, b.subresources(served))); err != nil {
		return err
	}
	if err := b.send(ctx, first, before); err != nil {
		return err
	}
	if err := b.resendable(ctx, first); err != nil {
		return err
	}
	b.findMissing()
	b.observed.Cases, b.observed.OneVersion, b.observed.Keys = first, true, len(b.subject.keys())
	for _, p := range b.subject.List() {
		b.observed.OpenConstants += len(p.openConstants(b.subject.constantsOfParams(p)))
	}
	for _, s := range served {
		if kind, err := object.Kind(s.object); err == nil && s.bad >= 0 && len(b.otherVersions(kind)) > 0 {
			b.observed.OneVersion = false
		}
	}
	more := slices.Concat(b.elementControls(served), b.variants(served), b.siblings(served), b.elements(served), b.created(served), b.exempted(served), b.constants(served), b.foreign(served), b.forms(served), b.children(served), b.large(served))
	existing := b.existing(ctx)
	stored, err := b.stored(ctx, served)
	if err != nil {
		return err
	}
	more = slices.Concat(more, existing, stored)
	b.observed.Cases = append(first, more...)
	if err := b.grant(ctx, b.observed.Cases); err != nil { // a second call replaces the roles of the first
		return err
	}
	return b.send(ctx, more, before)
}

// create returns the creation of a manifest that was made from a sample.
func (b *bench) create(group Group, s sample, manifest map[string]any, change string) *Case {
	return b.newCase(group, s, framework.Create(b.addressed(manifest)), "create", change)
}

func (b *bench) newCase(group Group, s sample, request framework.Request, verb, change string) *Case {
	what := verb + " " + s.name
	if change != "" {
		what += ", " + change
	}
	if request.User == nil {
		request = request.WithUser(b.subject.Requester)
	}
	request.InProcess = framework.InProcess{} // an API server reads the old object itself
	return &Case{Group: group, What: what, Good: s.good, Bad: s.bad, Request: request.WithDryRun()}
}

// addressed returns an object with a namespace, if its kind has one.
func (b *bench) addressed(manifest map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
	if namespaced, err := b.server.Namespaced(u.GroupVersionKind()); err == nil && namespaced && u.GetNamespace() == "" {
		u.SetNamespace(b.namespace)
	}
	return u
}

// mostVariants limits the variants of one object.
const mostVariants = 300

// oneUnread is how many values that no expression reads there are for each one that is varied nevertheless.
const oneUnread = 10

// variants removes each value of each sample that an expression reads, and empties each such list and map. Some that no
// expression reads are varied too, because what is read may be hidden.
func (b *bench) variants(all []sample) []*Case {
	var cases []*Case
	read, unread := b.subject.readPaths(Policy.expressions), 0
	for _, s := range all {
		n := 0
		for _, path := range vary.Paths(s.object, nil) {
			if !read.have(path) {
				if unread++; unread%oneUnread != 0 {
					continue
				}
			}
			for _, less := range lessOf(s.object, path) {
				if n++; n > mostVariants {
					b.observed.NotSent++
					continue
				}
				c := b.create(Variants, s, less.object, less.change)
				c.Path = path
				cases = append(cases, c)
			}
		}
		varied := runtime.DeepCopyJSON(s.object)
		if metadata, ok := varied["metadata"].(map[string]any); ok && metadata["name"] != nil {
			metadata["generateName"] = fmt.Sprint(metadata["name"], "-")
			delete(metadata, "name")
			generated, renamed := b.create(Generated, s, varied, "with generateName"), b.addressed(s.object)
			renamed.SetName(b.storedName(s, renamed.GetName(), "-renamed"))
			cases = append(cases, generated, b.newCase(Renamed, s, framework.Create(renamed), "create", "under another name"))
		}
	}
	return cases
}

// less is an object that lacks a value.
type less struct {
	change string
	object map[string]any
}

// lessOf returns an object with the list or map at a path empty, and without the value there.
func lessOf(object map[string]any, path cel.Path) []less {
	all := []less{{"without " + path.String(), vary.With(object, path, vary.Remove)}}
	if old, _ := vary.At(object, path); isCollection(old) {
		all = append([]less{{"with empty " + path.String(), vary.With(object, path, vary.Empty)}}, all...)
	}
	return all
}

func isCollection(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) > 0
	case []any:
		return len(value) > 0
	}
	return false
}

// stored stores a copy of each sample, and returns the requests about it.
func (b *bench) stored(ctx context.Context, all []sample) ([]*Case, error) {
	var cases []*Case
	for _, s := range all {
		kept, err := b.storeShared(ctx, s, s.object, "-stored")
		if err != nil {
			return nil, err
		}
		b.copied[s.name] = kept != nil
		var defect []cel.Path
		if s.bad >= 0 {
			defect = b.subject.Bad[s.bad].Defect()
		}
		if s.fix != nil && len(defect) > 0 { // an update cannot change the name or namespace
			fixed, err := b.storeShared(ctx, s, s.fix, "-fixed")
			if err != nil {
				return nil, err
			}
			violations, err := b.violations(ctx, s, kept, fixed)
			if err != nil {
				return nil, err
			}
			cases = append(cases, violations...)
		}
		if kept == nil {
			continue // the API server refuses it: pass A has the sample itself, and says so
		}
		labelled := &unstructured.Unstructured{Object: withEntry(kept.Object, cel.Path{"metadata", "labels", "contract.admissiontest.dev/label"}, "new")}
		unrelated := b.newCase(Unrelated, s, framework.Update(kept, labelled), "update the stored", "with another label")
		patches, err := b.patched(s, unrelated, kept)
		if err != nil {
			return nil, err
		}
		cases = append(append(cases, unrelated), patches...)
		if s.fix != nil && len(defect) > 0 {
			cases = append(cases, b.newCase(Repairs, s, framework.Update(kept, edited(kept, s.fix, defect)), "update the stored", "to its fix"))
		}
		cases = append(cases, b.newCase(Deletions, s, framework.Delete(kept), "delete the stored", ""))
		for _, user := range Controllers() {
			cases = append(cases, b.newCase(Controller, s, framework.Delete(kept).WithUser(user), "delete the stored", "as "+user.Name))
			if kept.GetNamespace() != "" {
				cases = append(cases, b.newCase(Controller, s, collection(kept).WithUser(user), "delete the collection of", "as "+user.Name))
			}
		}
		ending, err := b.ending(ctx, s)
		if err != nil {
			return nil, err
		}
		cases = append(cases, ending...)
	}
	return cases, nil
}

// violations makes a stored fix bad, by each verb and, unless kept is nil, by each subresource, and creates the bad object in other
// versions.
func (b *bench) violations(ctx context.Context, s sample, kept, fixed *unstructured.Unstructured) ([]*Case, error) {
	if fixed == nil {
		return nil, nil
	}
	whole := b.subject.Bad[s.bad].Defect()
	update := b.newCase(Violations, s, framework.Update(fixed, edited(fixed, s.object, whole)), "update the stored fix of", "to the bad object")
	patches, err := b.patched(s, update, fixed)
	if err != nil {
		return nil, err
	}
	patches = append(patches, b.partly(s, whole, fixed)...)
	if kept == nil {
		return append(patches, update), nil
	}
	versions, err := b.versions(ctx, s, kept, fixed)
	if err != nil {
		return nil, err
	}
	subwrites, err := b.subwrites(ctx, s, kept, fixed)
	return slices.Concat([]*Case{update}, patches, versions, subwrites), err
}

// collection deletes the collection that has an object.
func collection(kept *unstructured.Unstructured) framework.Request {
	return framework.Request{Verb: framework.VerbDeleteCollection, Kind: kept.GroupVersionKind(), Namespace: kept.GetNamespace()}
}

// partly makes a stored fix bad only where the policies read it, and at each of these paths alone: what else differs, or another
// part of the defect, may be what the API server does not let change.
func (b *bench) partly(s sample, whole []cel.Path, fixed *unstructured.Unstructured) []*Case {
	var cases []*Case
	add := func(values []cel.Path, where string) {
		alone := b.alone(s, values, where)
		if alone == nil {
			return // it is the whole difference
		}
		c := b.newCase(Violations, s, framework.Update(fixed, edited(fixed, s.object, values)), "update the stored fix of", "to the bad object, only at "+where)
		c.Alone = alone
		cases = append(cases, c, alone)
	}
	if len(s.defect) < len(whole) {
		add(s.defect, "what the policies read")
	}
	for _, path := range s.defect[:min(len(s.defect), mostParts)] {
		if len(s.defect) > 1 {
			add([]cel.Path{path}, path.String())
		}
	}
	return cases
}

// mostParts limits the parts of one defect.
const mostParts = 10

// store stores a copy of an object under another name. It returns nil if the API server refuses it.
func (b *bench) store(ctx context.Context, s sample, manifest map[string]any, suffix string, finalizers []string) (*unstructured.Unstructured, error) {
	copied := b.addressed(manifest)
	copied.SetName(b.storedName(s, copied.GetName(), suffix))
	if finalizers != nil {
		copied.SetFinalizers(finalizers)
	}
	result, err := b.sandbox.Send(ctx, framework.Create(copied))
	if err != nil || !result.Allowed() {
		return nil, err
	}
	kept, _ := result.Object.(*unstructured.Unstructured)
	return kept, nil
}

// storeShared stores a copy of a sample or fix, or nothing if the API server then refuses the sample itself: it gives some values, such as
// the port of a node, to one object only. Requests about a stored copy are not sent then.
func (b *bench) storeShared(ctx context.Context, s sample, manifest map[string]any, suffix string) (*unstructured.Unstructured, error) {
	kept, err := b.store(ctx, s, manifest, suffix, nil)
	if err != nil || kept == nil {
		return nil, err
	}
	result, err := b.sandbox.Send(ctx, framework.Create(b.addressed(manifest)).WithDryRun())
	if err != nil || result.Allowed() || result.Status.Reason == metav1.StatusReasonAlreadyExists {
		return kept, err
	}
	request := framework.Delete(kept)
	request.InProcess = framework.InProcess{} // an API server reads the old object itself
	_, err = b.sandbox.Send(ctx, request)
	b.observed.NotStored = append(b.observed.NotStored, fmt.Sprintf("%s: no copy is stored, because beside it the API server refuses the sample: %s", s.name, result.Status.Message))
	return nil, err
}

// storedCopy matches the names of storedName.
var storedCopy = regexp.MustCompile(`-(good|bad)[0-9]+-[a-z]+(-[0-9]+)?$`)

// storedName is the name of a copy of a sample. Copies for other Subjects may exist.
func (b *bench) storedName(s sample, name, suffix string) string {
	number := fmt.Sprintf("good%d", s.good)
	if s.bad >= 0 {
		number = fmt.Sprintf("bad%d", s.bad)
	}
	if b.on.sandboxes > firstSandbox {
		suffix = fmt.Sprintf("%s-%d", suffix, b.on.sandboxes)
	}
	return name + "-" + number + suffix
}

// withValues returns a copy of an object with the values of another one at some paths, or nil if it cannot have them.
func withValues(object, other map[string]any, paths []cel.Path) map[string]any {
	for _, path := range paths {
		value, found := vary.At(other, path)
		if object != nil {
			object = vary.With(object, path, func(any) (any, bool) { return value, found })
		}
	}
	return object
}

// edited returns a stored object with the values of another manifest at some paths. If it cannot have them, it gets the
// whole content of the manifest.
func edited(kept *unstructured.Unstructured, manifest map[string]any, paths []cel.Path) *unstructured.Unstructured {
	if changed := withValues(kept.Object, manifest, paths); changed != nil {
		return &unstructured.Unstructured{Object: changed}
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
	u.SetName(kept.GetName())
	u.SetNamespace(kept.GetNamespace())
	u.SetResourceVersion(kept.GetResourceVersion())
	return u
}

// ending stores an object that is in deletion, and removes its finalizer as the requester and as the garbage collector.
func (b *bench) ending(ctx context.Context, s sample) ([]*Case, error) {
	kept, err := b.store(ctx, s, s.object, "-ending", []string{finalizer})
	if err != nil || kept == nil {
		return nil, err
	}
	if _, err := b.sandbox.Send(ctx, framework.Request{Verb: framework.VerbDelete, Kind: kept.GroupVersionKind(), Namespace: kept.GetNamespace(), Name: kept.GetName()}); err != nil {
		return nil, err
	}
	result, err := b.sandbox.Send(ctx, framework.Request{Verb: framework.VerbGet, Kind: kept.GroupVersionKind(), Namespace: kept.GetNamespace(), Name: kept.GetName()})
	deleted, _ := result.Object.(*unstructured.Unstructured)
	if err != nil || deleted == nil || deleted.GetDeletionTimestamp() == nil {
		return nil, err
	}
	free := deleted.DeepCopy()
	free.SetFinalizers(nil)
	request := framework.Update(deleted, free)
	return []*Case{
		b.newCase(Finalizers, s, request, "update the stored", "which is in deletion, without its finalizer"),
		b.newCase(Finalizers, s, request.WithUser(Controllers()[1]), "update the stored", "which is in deletion, without its finalizer, as "+Controllers()[1].Name),
	}, nil
}

// reapplied creates what MutatingAdmissionPolicies made of good objects.
func (b *bench) reapplied() []*Case {
	var cases []*Case
	if !b.subject.mutating() {
		return nil
	}
	for _, c := range b.observed.Of(Samples) {
		if c.Good < 0 || !c.After.Allowed() {
			continue
		}
		s := sample{good: c.Good, bad: -1, name: fmt.Sprintf("good[%d]", c.Good)}
		again := b.create(Reapplied, s, c.made(c.After), "as the policies made it")
		again.Control = c
		cases = append(cases, again)
	}
	return cases
}
