package check

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// Draft are first cases of a PolicyTest. It is documented in suites/policy.
type Draft struct {
	Namespaces map[string]map[string]string
	Cases      []scenario.PolicyCase
	Missing    []string
}

// The limits of a Draft: kinds, requests for each kind and operation, and objects stored of a kind.
const (
	mostKinds  = 8
	mostTries  = 500
	mostStored = 16
)

// drafter finds cases for the policies of a Subject.
type drafter struct {
	*bench
	draft    Draft
	spaces   []space
	users    []*framework.User
	readings []reading
	targets  []*drafted
}

// space is a namespace. A case names it, unless it is the namespace of the test.
type space struct {
	name, real string
	labels     map[string]string
}

// drafted is a resource for which cases are found.
type drafted struct {
	maker
	served metav1.APIResource
	base   map[string]any
	stored []*try // creations that were carried out
	first  []*try // creations before the policies are installed
}

// Draft finds objects that the policies of a Subject allow and refuse: from the smallest object of each kind, it changes
// what the expressions read until the API server answers as wanted.
func (s *Server) Draft(ctx context.Context, subject Subject) (draft Draft, err error) {
	subject = subject.separated()
	err = s.with(ctx, subject, func(b *bench) error {
		d := &drafter{bench: b, readings: subject.readings(), users: subject.users()}
		err := d.run(ctx)
		draft = d.draft
		return err
	})
	return draft, err
}

func (d *drafter) run(ctx context.Context) error {
	for _, m := range d.subject.Given { // a PolicyTest creates the namespaces too
		u := unstructured.Unstructured{Object: m.Object}
		if u.GetNamespace() == "" {
			continue
		}
		if err := d.openNamespace(ctx, u.GetNamespace(), nil); err != nil {
			return err
		}
	}
	if err := d.given(ctx); err != nil {
		return err
	}
	if err := d.openSpaces(ctx); err != nil {
		return err
	}
	if err := d.readSchemas(ctx, nil); err != nil {
		return err
	}
	d.choose()
	for _, t := range d.targets {
		if err := d.prepare(ctx, t); err != nil {
			return err
		}
	}
	if err := d.rights(ctx); err != nil {
		return err
	}
	if err := d.install(ctx); err != nil {
		return err
	}
	for _, t := range d.targets {
		if t.base == nil {
			continue
		}
		if err := d.mutated(ctx, t); err != nil {
			return err
		}
		created, err := d.find(ctx, t, admission.Create, nil)
		if err != nil {
			return err
		}
		for _, operation := range []admission.Operation{admission.Update, admission.Delete} {
			if _, err := d.find(ctx, t, operation, created); err != nil {
				return err
			}
		}
	}
	return nil
}

// openNamespace creates a namespace that the policies name, unless it exists.
func (d *drafter) openNamespace(ctx context.Context, name string, labels map[string]string) error {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(name)
	namespace.SetLabels(labels)
	result, err := d.sandbox.Send(ctx, framework.Create(namespace))
	if err == nil && !result.Allowed() && result.Status.Reason != metav1.StatusReasonAlreadyExists {
		err = fmt.Errorf("%w: create the namespace %s, which the policies name: %s", ErrSubject, name, result.Status.Message)
	}
	return err
}

// openSpaces creates the namespaces.
func (d *drafter) openSpaces(ctx context.Context) error {
	d.draft.Namespaces = map[string]map[string]string{}
	for i, labels := range d.subject.namespaces() {
		p := space{real: d.namespace, labels: labels}
		if i > 0 {
			p.name = fmt.Sprintf("selected-%d", i)
			p.real = fmt.Sprintf("%s-%d", d.namespace, i) // another Draft of the Server has its own
			if named := labels[corev1.LabelMetadataName]; named != "" {
				p.name, p.real = named, named
				delete(labels, corev1.LabelMetadataName)
			}
			if err := d.openNamespace(ctx, p.real, labels); err != nil {
				return err
			}
		}
		namespaced := &unstructured.Unstructured{}
		namespaced.SetNamespace(p.real)
		if err := d.account(ctx, namespaced); err != nil {
			return err
		}
		d.spaces = append(d.spaces, p)
	}
	return nil
}

// missing notes what was not found.
func (d *drafter) missing(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(d.draft.Missing, line) {
		d.draft.Missing = append(d.draft.Missing, line)
	}
}

// handle reports whether a policy matches an operation on a resource.
func handle(p Policy, operation admission.Operation, served metav1.APIResource) bool {
	return slices.ContainsFunc(p.rules(), func(rule any) bool { return ruleMatches(rule, served, operation) })
}

// choose finds the resources that the rules match.
func (d *drafter) choose() {
	seen := map[string]bool{}
	var left []string
	resources := d.server.Optional().Resources()
	slices.SortStableFunc(resources, func(a, b metav1.APIResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	for _, p := range d.subject.List() {
		before := len(d.targets) + len(left)
		for _, served := range resources {
			matches := func(operations ...admission.Operation) bool {
				return slices.ContainsFunc(operations, func(o admission.Operation) bool { return handle(p, o, served) })
			}
			switch id := served.Group + "/" + served.Name; {
			case served.Version == "*" || !matches(admission.Create, admission.Update, admission.Delete, admission.Connect):
			case strings.Contains(served.Name, "/"):
				d.missing("%s of %s: a PolicyTest has only requests for the object itself; write a Scenario", describe(p), served.Name)
			case seen[id]:
				before-- // it is known
			case len(d.targets) == mostKinds:
				seen[id] = true
				left = append(left, served.Name)
			default:
				seen[id] = true
				kind := metav1.GroupVersionKind{Group: served.Group, Version: served.Version, Kind: served.Kind}
				t := &drafted{served: served, maker: maker{kind: schemaKind(kind), schemas: map[string]map[string]any{}}}
				t.document = d.openAPI[t.kind.GroupVersion()]
				d.targets = append(d.targets, t)
			}
		}
		if before == len(d.targets)+len(left) {
			d.missing("%s: its rules match nothing that this API server serves", describe(p))
		}
	}
	if len(left) > 0 {
		d.missing("the rules also match %s: cases are only written for %d kinds", strings.Join(left, ", "), mostKinds)
	}
}

func describe(p Policy) string { return p.GetKind() + " " + p.GetName() }

// prepare makes the smallest object of a kind, stores what updates and deletions are about, and sends what a
// MutatingAdmissionPolicy may change, before the policies are installed.
func (d *drafter) prepare(ctx context.Context, t *drafted) error {
	base := &try{operation: admission.Create, space: d.spaces[0], manifest: t.object()}
	const rounds = 12
	for range rounds {
		if err := d.send(ctx, t, base); err != nil {
			return err
		}
		completed := t.completed(base.manifest, base.result.Status)
		if base.result.Allowed() || completed == nil {
			break
		}
		base = &try{operation: admission.Create, space: d.spaces[0], manifest: completed}
	}
	if !base.result.Allowed() {
		d.missing("%s: no object found that the API server accepts: %s", t.kind.Kind, base.result.Status.Message)
		return nil
	}
	t.base = base.manifest
	matching := func(mutating bool, operations ...admission.Operation) bool {
		return slices.ContainsFunc(d.subject.List(), func(p Policy) bool {
			return p.Mutating() == mutating && slices.ContainsFunc(operations, func(o admission.Operation) bool { return handle(p, o, t.served) })
		})
	}
	var all []*try
	objects := append(d.subject.labelled(t.base), t.edits(t.base, d.readings)...)
	for _, p := range d.spaces {
		for _, o := range objects[:min(len(objects), mostTries/len(d.spaces))] {
			all = append(all, &try{operation: admission.Create, space: p, manifest: o})
		}
	}
	if matching(true, admission.Create) {
		if err := d.send(ctx, t, all...); err != nil {
			return err
		}
		t.first = slices.DeleteFunc(slices.Clone(all), func(one *try) bool { return !one.result.Allowed() })
	}
	if matching(false, admission.Update, admission.Delete) {
		old := slices.DeleteFunc(slices.Clone(d.readings), func(r reading) bool { return !r.old })
		objects := append(d.subject.labelled(t.base), t.edits(t.base, old)...)
		for i, p := range d.spaces {
			for n, o := range objects[:min(len(objects), mostStored)] {
				if err := d.store(ctx, t, &try{space: p, manifest: renamed(o, fmt.Sprintf("%s-%d", anExample, i*mostStored+n))}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// rights gives the users the rights for all requests: roles are written before the policies are effective, and at once,
// because another call replaces them.
func (d *drafter) rights(ctx context.Context) error {
	var all []framework.Request
	for _, t := range d.targets {
		for _, p := range d.spaces {
			for _, user := range d.users {
				for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete} {
					if t.base == nil || user == nil {
						continue
					}
					request, err := d.request(t, &try{operation: operation, space: p, user: user, old: t.base, manifest: t.base})
					if err != nil {
						return err
					}
					all = append(all, request)
				}
			}
		}
	}
	return d.sandbox.Grant(ctx, all)
}

func renamed(manifest map[string]any, name string) map[string]any {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
	u.SetName(name)
	return u.Object
}

// store stores an object, if the API server accepts it.
func (d *drafter) store(ctx context.Context, t *drafted, one *try) error {
	one.real = true
	one.operation = admission.Create
	if name, _ := at(one.manifest, Path{"metadata", "name"}); !t.served.Namespaced && d.on.sandboxes > firstSandbox { // an earlier Draft has the name
		one.manifest = renamed(one.manifest, fmt.Sprintf("%s-%d", name, d.on.sandboxes))
	}
	err := d.send(ctx, t, one)
	if one.result.Allowed() && err == nil {
		t.stored = append(t.stored, one)
	}
	return err
}

// try is a request, and what the policies say.
type try struct {
	operation     admission.Operation
	space         space
	user          *framework.User
	old, manifest map[string]any
	real          bool // it is no dry run
	depth         int

	result framework.Result
	// evaluated are the ValidatingAdmissionPolicies that were evaluated, and failing their validations that are false, by
	// "NAME validations[0]". Errors counts evaluation errors.
	evaluated map[string]bool
	failing   []string
	errors    int
}

// request returns the request of a try.
func (d *drafter) request(t *drafted, one *try) (framework.Request, error) {
	in := func(manifest map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
		if t.served.Namespaced {
			u.SetNamespace(one.space.real)
		}
		return u
	}
	request := framework.Create(in(one.manifest))
	switch one.operation {
	case admission.Update:
		before, err := json.Marshal(one.old)
		after, wrong := json.Marshal(one.manifest)
		if err = cmp.Or(err, wrong); err != nil {
			return request, err
		}
		patch, err := jsonpatch.CreateMergePatch(before, after)
		if err != nil {
			return request, err
		}
		u := in(one.old)
		request = framework.Request{Verb: framework.VerbPatch, Kind: t.kind, Namespace: u.GetNamespace(), Name: u.GetName(), HTTP: framework.HTTP{Patch: patch, PatchType: types.MergePatchType}}
	case admission.Delete:
		request = framework.Delete(in(one.manifest))
	}
	request.InProcess = framework.InProcess{}
	if one.user != nil {
		request = request.WithUser(*one.user)
	}
	if !one.real {
		request = request.WithDryRun()
	}
	return request, nil
}

// saidByProbe matches the warning of a probe.
var saidByProbe = regexp.MustCompile(`(?s)^Validation failed for ValidatingAdmissionPolicy '` + probePrefix + `([^']+)' with binding '[^']*': (.*)$`)

// send sends tries, several at the same time.
func (d *drafter) send(ctx context.Context, t *drafted, all ...*try) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inParallel)
	for _, one := range all {
		group.Go(func() error {
			request, err := d.request(t, one)
			if err != nil {
				return err
			}
			one.result, err = d.granted(ctx, request)
			one.evaluated = map[string]bool{}
			for _, text := range one.result.Warnings {
				found := saidByProbe.FindStringSubmatch(text)
				if found == nil {
					continue
				}
				one.evaluated[found[1]] = true
				switch {
				case strings.Contains(found[2], "resulted in error"):
					one.errors++
				case found[2] != evaluatedMark:
					one.failing = append(one.failing, found[1]+" "+found[2])
				}
			}
			slices.Sort(one.failing)
			return err
		})
	}
	return group.Wait()
}
