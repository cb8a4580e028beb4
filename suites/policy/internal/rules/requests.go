package rules

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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

// sample is a Sample of the Subject.
type sample struct {
	Sample
	good, bad int
	kind      schema.GroupVersionKind
	// stored is the object that the request finds, or nil: it creates one. Own is true for requests about it under its own name.
	stored *unstructured.Unstructured
	own    bool
	// otherName is true if stored has another name than the object.
	otherName bool
	// fix is that of a bad one, and whole where they differ. Defect is that without what the policies do not read.
	fix           map[string]any
	whole, defect []cel.Path
}

func (s Subject) samples() []sample {
	var all []sample
	for i, good := range s.Good {
		all = append(all, sample{Sample: good, good: i, bad: -1})
	}
	for i, bad := range s.Bad {
		whole := bad.Defect()
		one := sample{Sample: bad.Sample, good: -1, bad: i, fix: bad.Fix, whole: whole}
		if bad.Fix != nil {
			one.defect = s.deciding(whole)
		}
		all = append(all, one)
	}
	for i := range all {
		all[i].kind = (&unstructured.Unstructured{Object: all[i].Object}).GroupVersionKind()
	}
	return all
}

// inDefect reports whether a path has, is in, or is the defect of a bad sample.
func (s sample) inDefect(path cel.Path) bool {
	return slices.ContainsFunc(s.whole, func(p cel.Path) bool { return p.Below(path) || path.Below(p) })
}

// derive adds the request of a sample with another object that was made from it: its creation, or the update of what is stored to
// it. Without an object, it returns nil. A deletion has no other object.
func (b *bench) derive(group Group, s sample, manifest map[string]any, change string) *Case {
	switch {
	case manifest == nil:
		return nil
	case s.stored == nil:
		return b.add(group, s, framework.Create(b.addressed(manifest)), "create", change)
	case s.Deleted:
		return b.add(group, s, framework.Delete(s.stored), "delete", change)
	}
	changed := vary.Patched(s.stored.Object, object.MergePatch(s.Old, manifest)) // what is stored has more than its manifest
	request := framework.Update(s.stored, &unstructured.Unstructured{Object: changed})
	request.Subresource = s.Subresource
	return b.add(group, s, request, "update", change)
}

// add adds a request.
func (b *bench) add(group Group, s sample, request framework.Request, verb, change string) *Case {
	c := b.newCase(group, s, request, verb, change)
	b.observed.Cases = append(b.observed.Cases, c)
	return c
}

func (b *bench) newCase(group Group, s sample, request framework.Request, verb, change string) *Case {
	what := verb + " " + s.Name
	if change != "" {
		what += ", " + change
	}
	if request.User == nil {
		request = request.WithUser(b.subject.Requester)
	}
	request.InProcess = framework.InProcess{} // an API server reads the old object itself
	return &Case{Group: group, What: what, Good: s.good, Bad: s.bad, own: s.own, otherName: s.otherName, Request: request.WithDryRun()}
}

// addressed returns an object with a namespace, if its kind has one.
func (b *bench) addressed(manifest map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
	if namespaced, err := b.server.Namespaced(u.GroupVersionKind()); err == nil && namespaced && u.GetNamespace() == "" {
		u.SetNamespace(b.namespace)
	}
	return u
}

// stored stores a copy of a sample that is created, and adds the requests about what is stored.
func (b *bench) stored(ctx context.Context, s sample) {
	kept := s.stored
	if kept == nil {
		kept = b.storeShared(ctx, s, s.Object, "-stored")
		b.copied[s.Name] = kept != nil
	}
	if len(s.whole) > 0 && s.stored == nil { // an update cannot change the name or namespace
		if fixed := b.storeShared(ctx, s, s.fix, "-fixed"); fixed != nil {
			b.violations(ctx, s, kept, fixed)
		}
	}
	if kept == nil {
		return // the API server refuses it: pass A has the sample itself, and says so
	}
	if len(s.whole) > 0 && s.stored == nil {
		b.byOperator(b.add(Repairs, s, framework.Update(kept, edited(kept, s.fix, s.whole)), "update the stored", "to its fix"))
	}
	b.about(s, kept)
	b.lacking(ctx, s)
	if b.deciders != nil {
		b.between(ctx, s, kept)
	}
	if held := b.store(ctx, s, s.persisted(), "-ending", finalizer); held != nil {
		b.end(ctx, s, held)
	}
}

// labelled is the update of a stored object with another label.
func labelled(kept *unstructured.Unstructured) framework.Request {
	return framework.Update(kept, &unstructured.Unstructured{Object: vary.Put(kept.Object, cel.Path{"metadata", "labels", "contract.admissiontest.dev/label"}, "new")})
}

// about adds the requests about a stored sample: an update that changes something else, and deletions.
func (b *bench) about(s sample, kept *unstructured.Unstructured) {
	update := b.add(Unrelated, s, labelled(kept), "update the stored", "with another label")
	b.byOperator(update)
	b.patched(s, update, kept)
	b.add(Deletions, s, framework.Delete(kept), "delete the stored", "")
	collection := framework.DeleteCollection(kept)
	for _, user := range Controllers() {
		b.add(Controller, s, framework.Delete(kept).WithUser(user), "delete the stored", "as "+user.Name)
		if kept.GetNamespace() != "" {
			b.add(Controller, s, collection.WithUser(user), "delete the collection of", "as "+user.Name)
		}
	}
}

// byOperator adds the request of a case by a controller that is none of Kubernetes.
func (b *bench) byOperator(c *Case) {
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:contract", "system:authenticated"}
	twin := *c
	twin.Group, twin.Request = Controls, c.Request.WithUser(framework.User{Name: "system:serviceaccount:contract:operator", Groups: groups})
	twin.What += ", as " + twin.Request.User.Name
	c.ByOperator = &twin
	b.observed.Cases = append(b.observed.Cases, &twin)
}

// lacking stores copies of a good sample that lack what an expression reads, and updates something else of them: an object can have been
// stored before the policy.
func (b *bench) lacking(ctx context.Context, s sample) {
	if s.good < 0 || !b.subject.handles(admissionregistrationv1.Update) {
		return
	}
	all := b.lessRead(s.persisted())
	for i, less := range all[:min(len(all), mostLacking)] {
		if kept := b.store(ctx, s, less.object, fmt.Sprintf("-lacking-%d", i)); kept != nil {
			b.add(Lacking, s, labelled(kept), "update the stored", less.change+", with another label")
		}
	}
}

// violations makes a stored fix bad, by each verb and, unless kept is nil, by each subresource, and creates the bad object in other
// versions.
func (b *bench) violations(ctx context.Context, s sample, kept, fixed *unstructured.Unstructured) {
	b.patched(s, b.add(Violations, s, framework.Update(fixed, edited(fixed, s.Object, s.whole)), "update the stored fix of", "to the bad object"), fixed)
	b.partly(s, fixed)
	if kept != nil {
		b.versions(ctx, s, kept, fixed)
		b.subwrites(ctx, s, kept, fixed)
	}
}

// partly makes a stored fix bad only where the policies read it, and at each of these paths alone: what else differs, or another
// part of the defect, may be what the API server does not let change.
func (b *bench) partly(s sample, fixed *unstructured.Unstructured) {
	add := func(values []cel.Path, where string) {
		if alone := b.alone(s, values, where); alone != nil { // otherwise it is the whole difference
			c := b.add(Violations, s, framework.Update(fixed, edited(fixed, s.Object, values)), "update the stored fix of", "to the bad object, only at "+where)
			c.needs = []need{refused(alone)}
		}
	}
	if len(s.defect) < len(s.whole) {
		add(s.defect, "what the policies read")
	}
	for _, path := range s.defect[:min(len(s.defect), mostParts)] {
		if len(s.defect) > 1 {
			add([]cel.Path{path}, path.String())
		}
	}
}

// alone creates the fix with only the values of the bad object at some paths. It returns nil if that is the fix or the bad object.
func (b *bench) alone(s sample, values []cel.Path, where string) *Case {
	object := withValues(s.fix, s.Object, values)
	if object == nil || len(vary.Defect(object, s.fix)) == 0 || len(vary.Defect(object, s.Object)) == 0 {
		return nil
	}
	return b.derive(Controls, s, object, "with its fix, and of the bad object only "+where)
}

// store stores a copy of an object under another name. It returns nil if the API server refuses it.
func (b *bench) store(ctx context.Context, s sample, manifest map[string]any, suffix string, finalizers ...string) *unstructured.Unstructured {
	copied := b.addressed(manifest)
	copied.SetName(b.storedName(s, cmp.Or(copied.GetName(), strings.TrimSuffix(copied.GetGenerateName(), "-")), suffix))
	if finalizers != nil {
		copied.SetFinalizers(finalizers)
	}
	return b.object(ctx, framework.Create(copied))
}

// storeShared stores a copy of a sample or fix, or nothing if the API server then refuses the sample itself: it gives some values, such as
// the port of a node, to one object only. Requests about a stored copy are not sent then.
func (b *bench) storeShared(ctx context.Context, s sample, manifest map[string]any, suffix string) *unstructured.Unstructured {
	kept := b.store(ctx, s, manifest, suffix)
	if kept == nil {
		return nil
	}
	result := b.do(ctx, framework.Create(b.addressed(manifest)).WithDryRun())
	if result.Allowed() || result.Status.Reason == metav1.StatusReasonAlreadyExists {
		return kept
	}
	b.do(ctx, framework.Delete(kept))
	return nil
}

// storedCopy matches the names of storedName.
var storedCopy = regexp.MustCompile(`-(good|bad)[0-9]+-[a-z]+(-[0-9]+)*$`)

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

// end deletes a stored object that has a finalizer, and adds the removals of the finalizer by the requester and the garbage collector.
func (b *bench) end(ctx context.Context, s sample, kept *unstructured.Unstructured) {
	b.do(ctx, framework.Delete(kept))
	deleted := b.get(ctx, s.kind, kept, "")
	if deleted == nil || deleted.GetDeletionTimestamp() == nil {
		return
	}
	request := withFinalizers(deleted, "null")
	b.byOperator(b.add(Finalizers, s, request, "update the stored", "which is in deletion, without its finalizer"))
	b.add(Finalizers, s, request.WithUser(Controllers()[1]), "update the stored", "which is in deletion, without its finalizer, as "+Controllers()[1].Name)
}

// withFinalizers gives an object finalizers, as JSON: by a patch, because a controller can write the object at the same time.
func withFinalizers(u *unstructured.Unstructured, finalizers string) framework.Request {
	return framework.Request{
		Verb: framework.VerbPatch, Kind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
		HTTP: framework.HTTP{Patch: []byte(`{"metadata":{"finalizers":` + finalizers + `}}`), PatchType: types.MergePatchType},
	}
}
