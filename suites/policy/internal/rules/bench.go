package rules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Limits of the requests about a Subject.
const (
	inParallel   = 8   // requests at the same time
	mostKeys     = 20  // labels and annotations that a bad object gets
	mostValues   = 6   // values of one of them
	mostLacking  = 40  // stored copies of a sample that lack something
	mostParts    = 10  // parts of a defect
	mostShapes   = 40  // variants of a param: their warnings must fit into a response
	mostNear     = 12  // quantities near constants
	mostExisting = 100 // objects of a kind that the API server has
	times        = 10  // how many times larger a list or map is made that an expression loops over
)

// bench is an API server on which a Subject is observed.
type bench struct {
	subject Subject
	on      *Server
	server  target.Target
	sandbox target.Sandbox
	// probes has the probes, so that the types of their expressions are not checked.
	probes    target.Sandbox
	namespace string // of objects without one
	observed  *Observations
	// samples are the objects of the Subject whose kinds are served.
	samples []sample
	// copied has the names of the samples of which a copy is stored. See storeShared.
	copied map[string]bool
	// openAPI has the OpenAPI v3 documents of the API server, by group and version.
	openAPI map[schema.GroupVersion]map[string]any
	// deciders are the names of the policies and webhooks, if the requests are for two deciders: see Compare.
	deciders []string
	// err is the first error of do. After it, do sends nothing.
	err error
}

// observe sends all requests.
func (b *bench) observe(ctx context.Context) (*Observations, error) {
	if err := b.given(ctx); err != nil {
		return nil, err
	}
	if err := b.before(ctx); err != nil {
		return nil, err
	}
	if err := b.install(ctx, b.subject.Policies, b.subject.Probes()); err != nil {
		return b.observed, b.unsent(err, Every)
	}
	if err := b.after(ctx); err != nil {
		return nil, err
	}
	return b.observed, nil
}

// unsent notes why requests of groups are not sent, if the cause is an answer of the API server: it does not see a policy
// or a param in time, or refuses what a run needs to see that. Other errors are returned.
func (b *bench) unsent(err error, groups ...Group) error {
	if errors.Is(err, ErrSubject) || !errors.Is(err, framework.ErrTimeout) && !errors.As(err, new(apierrors.APIStatus)) {
		return err
	}
	for _, group := range groups {
		b.observed.Unsent[group] = err.Error()
	}
	return nil
}

// given installs what the Subject is given, and the namespaces that only samples name.
func (b *bench) given(ctx context.Context) error {
	if err := b.installAll(ctx, b.subject.Given); err != nil {
		return err
	}
	known := []string{"", b.namespace, metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
	for _, m := range b.subject.Given {
		if u := (unstructured.Unstructured{Object: m.Object}); u.GetKind() == "Namespace" {
			known = append(known, u.GetName())
		}
	}
	for _, s := range b.subject.samples() {
		u := b.addressed(s.Object)
		if name := u.GetNamespace(); !slices.Contains(known, name) {
			known = append(known, name)
			namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
			if err := b.on.shared.Install(ctx, namespace, nil); err != nil {
				return fmt.Errorf("%w: %s: create the namespace %s: %w", ErrSubject, s.Name, name, err)
			}
		}
		if s.kind.Kind == "ServiceAccount" && u.GetName() == "default" {
			b.do(ctx, framework.Delete(u)) // each namespace has it
		}
	}
	return b.err
}

// installAll installs manifests, first the kinds and namespaces that others need. The error has the position of what
// the API server refuses.
func (b *bench) installAll(ctx context.Context, manifests []shipped.Manifest) error {
	rank := func(m shipped.Manifest) int {
		return slices.Index([]string{"Namespace", "CustomResourceDefinition"}, (&unstructured.Unstructured{Object: m.Object}).GetKind())
	}
	all := slices.Clone(manifests)
	slices.SortStableFunc(all, func(x, y shipped.Manifest) int { return rank(y) - rank(x) })
	for _, m := range all {
		sandbox := b.sandbox
		if rank(m) >= 0 {
			sandbox = b.on.shared
		}
		if err := sandbox.Install(ctx, m.Object, nil); err != nil {
			field := ""
			if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
				field = status.Status().Details.Causes[0].Field
			}
			line, column := m.Position(field)
			return fmt.Errorf("%w: %s:%d:%d: install %s: %w", ErrSubject, m.File, line, column, m, err)
		}
		if object.IsPolicy(m.Object) {
			b.on.removed = append(b.on.removed, m.Object)
		}
	}
	return nil
}

// install installs policies and probes of them, and waits until the API server acts on them.
func (b *bench) install(ctx context.Context, policies []shipped.Manifest, probes []map[string]any) error {
	if err := b.installAll(ctx, policies); err != nil {
		return err
	}
	for _, probe := range probes {
		if err := b.probes.Install(ctx, probe, nil); err != nil {
			return fmt.Errorf("install %s, a copy of a policy: %w", object.Describe(probe), err)
		}
	}
	all := slices.Clone(probes)
	for _, m := range policies {
		all = append(all, m.Object)
	}
	if err := b.server.WaitUntilEffective(ctx, all); err != nil {
		return err
	}
	return b.sandbox.WaitForParams(ctx)
}

// before sends all requests before the policies are installed.
func (b *bench) before(ctx context.Context) error {
	for _, s := range b.subject.samples() {
		if _, err := b.server.Namespaced(s.kind); errors.Is(err, framework.ErrNotServed) {
			b.observed.NotServed = append(b.observed.NotServed, s.Name+": "+err.Error())
			continue
		} else if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSubject, s.Name, err)
		}
		if err := b.storeOld(ctx, &s); err != nil {
			return err
		}
		b.samples = append(b.samples, s)
		b.derive(Samples, s, s.Object, "")
		if s.fix != nil {
			b.derive(Fixes, s, s.fix, "with its fix")
		}
	}
	if err := b.readSchemas(ctx); err != nil {
		return err
	}
	first := slices.Clone(b.observed.Cases)
	if err := b.grant(ctx); err != nil {
		return err
	}
	if err := b.send(ctx, first, before); err != nil {
		return err
	}
	if err := b.resendable(ctx, first); err != nil {
		return err
	}
	b.findMissing()
	b.existing(ctx)
	for _, s := range b.samples {
		for _, derive := range []func(*bench, sample){
			(*bench).variants, (*bench).moved, (*bench).verbs, (*bench).exempted, (*bench).constants, (*bench).foreign, (*bench).forms, (*bench).children, (*bench).large,
		} {
			if !s.Deleted {
				derive(b, s)
			}
		}
		if b.deciders != nil {
			b.called(s)
			b.placed(ctx, s)
			b.varied(s)
		}
		b.stored(ctx, s)
	}
	if b.err != nil {
		return b.err
	}
	b.lacks()
	if err := b.grant(ctx); err != nil { // a second call replaces the roles of the first
		return err
	}
	return b.send(ctx, b.observed.Cases[len(first):], before)
}

// storeOld stores the object that the request of a sample finds: under its own name, or under another one if another sample needs
// something else there.
func (b *bench) storeOld(ctx context.Context, s *sample) error {
	manifest := s.Old
	if manifest == nil {
		return nil
	}
	u := b.addressed(manifest)
	same := func(other map[string]any) bool {
		o := b.addressed(other)
		return o.GroupVersionKind() == u.GroupVersionKind() && o.GetNamespace() == u.GetNamespace() && o.GetName() == u.GetName()
	}
	if slices.ContainsFunc(b.subject.samples(), func(o sample) bool { return same(o.Object) && !reflect.DeepEqual(o.Old, manifest) }) {
		s.otherName = true
		u.SetName(b.storedName(*s, u.GetName(), "-old"))
	}
	if err := b.sandbox.Install(ctx, u.Object, nil); err != nil {
		return fmt.Errorf("%w: %s: store what its request finds: %w", ErrSubject, s.Name, err)
	}
	if s.stored = b.get(ctx, s.kind, u, ""); s.stored == nil {
		return errors.Join(b.err, fmt.Errorf("%w: %s: the API server does not have what its request finds", ErrSubject, s.Name))
	}
	return nil
}

// grant gives users the rights for the requests of cases. It writes roles, which a policy can refuse, so it is for before
// the policies are installed; later requests are of the same users, verbs and kinds.
func (b *bench) grant(ctx context.Context) error {
	var requests []framework.Request
	for _, c := range b.observed.Cases {
		requests = append(requests, c.Request)
	}
	return b.sandbox.Grant(ctx, requests)
}

// do sends one request that is needed to make others. After an error, it sends nothing.
func (b *bench) do(ctx context.Context, request framework.Request) framework.Result {
	if b.err != nil {
		return framework.Result{}
	}
	request.InProcess = framework.InProcess{} // an API server reads the old object itself
	result, err := b.sandbox.Send(ctx, request)
	if !errors.Is(err, framework.ErrNotServed) {
		b.err = err
	}
	return result
}

// object returns the object in the response to a request, or nil if the API server does not accept it.
func (b *bench) object(ctx context.Context, request framework.Request) *unstructured.Unstructured {
	result := b.do(ctx, request)
	got, _ := result.Object.(*unstructured.Unstructured)
	if !result.Allowed() {
		return nil
	}
	return got
}

// get returns a stored object, or a subresource of it, or nil.
func (b *bench) get(ctx context.Context, kind schema.GroupVersionKind, of *unstructured.Unstructured, subresource string) *unstructured.Unstructured {
	return b.object(ctx, framework.Request{Verb: framework.VerbGet, Kind: kind, Namespace: of.GetNamespace(), Name: of.GetName(), Subresource: subresource})
}

// send sends the requests of cases, several at the same time.
func (b *bench) send(ctx context.Context, cases []*Case, into func(*Case) *framework.Result) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inParallel)
	for _, c := range cases {
		group.Go(func() error {
			result, err := b.granted(ctx, c.Request)
			if errors.Is(err, framework.ErrNotServed) { // such as a subresource: the API server cannot accept it
				result.Status.Code, result.Status.Message, err = http.StatusNotFound, err.Error(), nil
			}
			if *into(c) = result; err != nil {
				return fmt.Errorf("%s: %w", c.What, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// grantLimit is how long an API server may take to know a new role, or the kind of a new CustomResourceDefinition.
const grantLimit = 5 * time.Second

// granted sends a request, again while the API server does not know the right to send it, or does not know the kind for a mutation
// (k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go).
func (b *bench) granted(ctx context.Context, request framework.Request) (result framework.Result, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, grantLimit, true, func(context.Context) (bool, error) {
		result, err = b.sandbox.Send(ctx, request)
		forbidden := request.User != nil && result.Status.Code == http.StatusForbidden && strings.Contains(result.Status.Message, fmt.Sprintf("User %q cannot ", request.User.Name))
		return !forbidden && result.Status.Code != http.StatusServiceUnavailable, err
	})
	return result, errors.Join(err, ctx.Err()) // a right that is missing after the limit is the response
}

func before(c *Case) *framework.Result { return &c.Before }

func after(c *Case) *framework.Result { return &c.After }

// after sends every request that was accepted, and then what the policies made of good objects.
func (b *bench) after(ctx context.Context) error {
	accepted := slices.DeleteFunc(slices.Clone(b.observed.Cases), func(c *Case) bool { return !c.Accepted() })
	b.observed.Dropped = len(b.observed.Cases) - len(accepted)
	if err := b.send(ctx, accepted, after); err != nil {
		return err
	}
	if err := errors.Join(b.mutatedAgain(ctx), b.entries(ctx)); err != nil {
		return err
	}
	if err := b.forced(ctx); err != nil {
		return b.unsent(err, append(mutable(), Shapes, Reordered, Paramless, Observed, Orders, Reapplied)...) // the policies can have either failurePolicy
	}
	if err := b.real(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		send func(context.Context) error
		all  []Group
	}{
		{b.withoutParams, []Group{Shapes, Reordered, Paramless}}, {b.onlyObserving, []Group{Observed}}, {b.inOrders, []Group{Orders}},
		{b.withoutPolicies, []Group{Reapplied, Foreign, Inert}}, {b.underOwnNames, []Group{Unrelated, Deletions, Controller, Finalizers, Violations}},
	} {
		if err := b.unsent(step.send(ctx), step.all...); err != nil {
			return err
		}
	}
	return nil
}
