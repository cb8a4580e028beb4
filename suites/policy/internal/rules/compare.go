package rules

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// Side is one of two deciders that are compared: policies or webhooks, on an API server of their own.
type Side struct {
	Provider  target.Provider
	Endpoints map[string]framework.Endpoint
	Manifests []shipped.Manifest
}

// Comparison has what differs between two deciders.
type Comparison struct {
	// Targets are the API servers of the two.
	Targets [2]framework.TargetInfo `json:"-"`
	// Compared counts the requests to which both give a steady response, by their kind, and Dropped those that an API server does not accept without
	// the deciders. Unsteady are the requests to which one of them gives different responses.
	Compared map[Group]int `json:"compared"`
	Dropped  int           `json:"dropped"`
	Unsteady []string      `json:"unsteady"`
	// Differences are one of each kind, the worst ones first: what A refuses and B allows.
	Differences []Difference `json:"differences"`
}

// Difference is a request on which two deciders differ.
type Difference struct {
	// What names the request, and Like is how many other requests differ in the same way.
	What string `json:"what"`
	Like int    `json:"like"`
	// Fields are what differs: some of ComparedFields.
	Fields []string `json:"fields"`
	// Responses are what A and B respond.
	Responses [2]Decision `json:"responses"`
	// Case is the request as a case of a PolicyTest that A passes, as small as it could be made. Nil means that a PolicyTest cannot send it.
	Case map[string]any `json:"case,omitempty"`
}

// Decision is what a decider makes of a request, without its name and without what the API server chooses.
type Decision struct {
	Allowed  bool           `json:"allowed"`
	Code     int32          `json:"code"`
	Reason   string         `json:"reason,omitempty"`
	Message  string         `json:"message,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
	Object   map[string]any `json:"object,omitempty"`
	// AuditAnnotations are those that policies and webhooks add, by their keys without the names of these, and the messages of
	// validations with the action Audit.
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
}

// Sum is the number of requests that were compared.
func (c *Comparison) Sum() (sum int) {
	for _, n := range c.Compared {
		sum += n
	}
	return sum
}

// String describes the difference, with A for the first Subject.
func (d Difference) String() string {
	return fmt.Sprintf("%s (%s)\n  A: %s\n  B: %s", d.What, strings.Join(d.Fields, ", "), d.Responses[0], d.Responses[1])
}

// String describes the decision.
func (d Decision) String() string {
	said := fmt.Sprintf("%d, allowed", d.Code)
	if !d.Allowed {
		said = strings.TrimSpace(fmt.Sprint(d.Code, " ", d.Reason)) + ": " + d.Message
	}
	for _, each := range d.Warnings {
		said += "; warning: " + each
	}
	for _, key := range slices.Sorted(maps.Keys(d.AuditAnnotations)) {
		said += fmt.Sprintf("; audit annotation %s: %s", key, d.AuditAnnotations[key])
	}
	return said
}

// ComparedFields are the values of Difference.Fields, in their order.
func ComparedFields() []string {
	return []string{"verdict", "code", "reason", "message", "warnings", "auditAnnotations", "object"}
}

// comparing is a comparison that runs.
type comparing struct {
	sides   [2]*bench
	ignored []string
	result  *Comparison
}

// Compare sends the same requests to two deciders. The requests are made from the samples of a Subject, and from the expressions of all
// policies. Ignored are fields whose differences do not count.
func Compare(ctx context.Context, sides [2]Side, s Subject, ignored []string) (result *Comparison, err error) {
	for _, side := range sides {
		s.Policies = append(s.Policies, side.Manifests...)
	}
	if err := s.comparable(sides); err != nil {
		return nil, err
	}
	c := &comparing{ignored: ignored, result: &Comparison{Compared: map[Group]int{}}}
	group, running := errgroup.WithContext(ctx)
	defer func() {
		for _, b := range c.sides {
			if b != nil {
				err = errors.Join(err, b.on.Close(ctx))
			}
		}
	}()
	for i, side := range sides {
		group.Go(func() error {
			on, err := start(running, side.Provider, target.StartOptions{Endpoints: side.Endpoints})
			if err != nil {
				return err
			}
			if c.sides[i], err = on.bench(running, s); err != nil {
				return errors.Join(err, on.Close(ctx))
			}
			c.sides[i].deciders = Subject{Policies: side.Manifests}.deciders()
			return c.sides[i].decided(running, side.Manifests)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return c.result, c.compare(ctx)
}

// decided sends all requests without a decider, and what was accepted with it.
func (b *bench) decided(ctx context.Context, manifests []shipped.Manifest) error {
	if err := b.given(ctx); err != nil {
		return err
	}
	if err := b.before(ctx); err != nil {
		return err
	}
	if err := b.install(ctx, manifests, nil); err != nil {
		return err
	}
	accepted := slices.DeleteFunc(slices.Clone(b.observed.Cases), func(c *Case) bool { return !c.Accepted() })
	if err := b.send(ctx, accepted, after); err != nil {
		return err
	}
	return b.real(ctx)
}

// pair is the same request on both API servers.
type pair [2]*Case

// pairs returns the requests that both API servers accept.
func (c *comparing) pairs() []pair {
	key := func(each *Case) string { return string(each.Group) + " " + each.What }
	others := map[string][]*Case{}
	for _, each := range c.sides[1].observed.Cases {
		others[key(each)] = append(others[key(each)], each)
	}
	var all []pair
	for _, each := range c.sides[0].observed.Cases {
		same := others[key(each)]
		if len(same) == 0 {
			c.result.Dropped++
			continue
		}
		others[key(each)] = same[1:]
		if !each.Accepted() || !same[0].Accepted() {
			c.result.Dropped++
			continue
		}
		all = append(all, pair{each, same[0]})
	}
	return all
}

// compare compares the responses. What differs is sent again: a response that changes says nothing.
func (c *comparing) compare(ctx context.Context) error {
	for i, b := range c.sides {
		c.result.Targets[i] = b.server.Info()
	}
	like := map[string]int{} // the index of a difference, by what differs
	for _, p := range c.pairs() {
		found, steady, err := c.differ(ctx, p)
		if err != nil {
			return err
		}
		if steady {
			c.result.Compared[p[0].Group]++
		}
		kind := p[0].Request.Subresource + " " + found.kind() // a subresource is another door
		switch at, known := like[kind]; {
		case !steady:
			c.result.Unsteady = append(c.result.Unsteady, p[0].What)
		case len(found.Fields) == 0:
		case known:
			c.result.Differences[at].Like++
		default:
			request, err := c.smaller(ctx, p, found)
			if err != nil {
				return err
			}
			found.Case = c.pasted(ctx, request, found)
			like[kind] = len(c.result.Differences)
			c.result.Differences = append(c.result.Differences, found)
		}
	}
	slices.SortStableFunc(c.result.Differences, func(x, y Difference) int { return cmp.Compare(x.rank(), y.rank()) })
	return nil
}

// rank is 0 for what A refuses and B allows, and 1 for the reverse.
func (d Difference) rank() int {
	switch a, b := d.Responses[0], d.Responses[1]; {
	case !a.Allowed && b.Allowed:
		return 0
	case a.Allowed && !b.Allowed:
		return 1
	}
	return 2
}

// kind is the same for requests that differ in the same way.
func (d Difference) kind() string {
	a, b := d.Responses[0], d.Responses[1]
	said := fmt.Sprint(d.Fields, a.Allowed, b.Allowed, a.Message, "\x00", b.Message)
	if slices.Contains(d.Fields, "warnings") {
		said += fmt.Sprint(a.Warnings, b.Warnings)
	}
	if slices.Contains(d.Fields, "auditAnnotations") {
		said += fmt.Sprint(a.AuditAnnotations, b.AuditAnnotations) // in the order of their keys
	}
	return said
}

// differ returns how two deciders differ about a request, and whether each of them responds the same again.
func (c *comparing) differ(ctx context.Context, p pair) (found Difference, steady bool, err error) {
	found = Difference{What: p[0].What}
	steady = true
	for i := range c.sides {
		var known bool
		found.Responses[i], known = c.decision(ctx, p, i, p[i].After)
		steady = steady && known && p[i].After.Status.Code < http.StatusInternalServerError // nothing was decided
	}
	if found.Fields = c.fields(found.Responses); len(found.Fields) == 0 {
		return found, steady, nil
	}
	for i, b := range c.sides {
		if !p[i].Request.DryRun && p[i].After.Allowed() {
			continue // a second creation is another request
		}
		again, err := b.sandbox.Send(ctx, p[i].Request)
		if err != nil {
			return found, false, err
		}
		same, known := c.decision(ctx, p, i, again)
		steady = steady && known && len(c.fields([2]Decision{found.Responses[i], same})) == 0
	}
	return found, steady, nil
}

// fields returns in what two responses differ.
func (c *comparing) fields(of [2]Decision) []string {
	a, b := of[0], of[1]
	differs := map[string]bool{
		"verdict": a.Allowed != b.Allowed, "code": a.Code != b.Code, "reason": a.Reason != b.Reason, "message": a.Message != b.Message,
		"warnings": !slices.Equal(a.Warnings, b.Warnings), "auditAnnotations": !maps.Equal(a.AuditAnnotations, b.AuditAnnotations),
		"object": a.Allowed && b.Allowed && len(vary.Difference(a.Object, b.Object, nil)) > 0,
	}
	found := slices.DeleteFunc(ComparedFields(), func(field string) bool { return !differs[field] || slices.Contains(c.ignored, field) })
	if slices.Contains(found, "verdict") {
		return found[:1] // the others follow from it
	}
	return found
}

// deciderName matches what a response says about the name of the decider.
var deciderName = regexp.MustCompile(`(?s)^.*?(?:(?:Validating|Mutating)AdmissionPolicy '[^']*' with binding '[^']*'(?: denied request)?|policy "[^"]*" denied request|admission webhook "[^"]*" denied the request): `)

// decision returns what a response says. The namespace for what has none is another one on each API server.
func (b *bench) decision(c *Case, r framework.Result) Decision {
	settled := func(text string) string {
		return strings.ReplaceAll(deciderName.ReplaceAllString(text, ""), b.namespace, metav1.NamespaceDefault)
	}
	d := Decision{Allowed: r.Allowed(), Code: r.Status.Code, Reason: string(r.Status.Reason), Message: settled(r.Status.Message)}
	for _, text := range r.Warnings {
		d.Warnings = append(d.Warnings, settled(text))
	}
	slices.Sort(d.Warnings)
	if d.Allowed && c.Request.Verb != framework.VerbDelete && c.Request.Verb != framework.VerbDeleteCollection {
		text, _ := json.Marshal(c.settled(r)) // it comes from JSON
		text = bytes.ReplaceAll(text, []byte(b.namespace), []byte(metav1.NamespaceDefault))
		_ = utiljson.Unmarshal(vary.WithoutTokens(text), &d.Object)
		u := unstructured.Unstructured{Object: d.Object}
		for _, set := range []string{"deletionTimestamp", "deletionGracePeriodSeconds"} {
			unstructured.RemoveNestedField(d.Object, "metadata", set)
		}
		if prefix := u.GetGenerateName(); prefix != "" {
			u.SetName(prefix)
		}
	}
	return d
}

// decision returns what a decider makes of a request, without the values that the API servers choose. Known is false if the audit log does
// not have it.
func (c *comparing) decision(ctx context.Context, p pair, i int, r framework.Result) (d Decision, known bool) {
	d = c.sides[i].decision(p[i], r)
	for _, path := range c.chosen(p) {
		if without := vary.With(d.Object, path, vary.Remove); without != nil {
			d.Object = without
		}
	}
	var err error
	if !slices.Contains(c.ignored, "auditAnnotations") {
		d.AuditAnnotations, err = c.sides[i].annotations(ctx, p[i].Request.Kind.Group, r.AuditID)
	}
	return d, err == nil
}

// lateEvent is how long an audit event can take.
const lateEvent = 10 * time.Second

// annotations returns the audit annotations of a request that policies and webhooks of the bench add. Local API servers do not log these
// groups: see framework/envtest.
func (b *bench) annotations(ctx context.Context, group, auditID string) (map[string]string, error) {
	if slices.Contains([]string{"admissionregistration.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io"}, group) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lateEvent)
	defer cancel()
	event, err := b.server.Optional().Audit(ctx, auditID)
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for key, value := range event.Annotations {
		decider, own, _ := strings.Cut(key, "/")
		var audited []struct{ Message string }
		switch {
		case slices.Contains(b.deciders, decider):
			found[own] = append(found[own], value)
		case key == "validation.policy.admission.k8s.io/validation_failure" && json.Unmarshal([]byte(value), &audited) == nil:
			for _, each := range audited {
				found[own] = append(found[own], each.Message)
			}
		}
	}
	all := map[string]string{}
	for key, values := range found {
		slices.Sort(values)
		all[key] = strings.ReplaceAll(strings.Join(values, ", "), b.namespace, metav1.NamespaceDefault)
	}
	return all, nil
}

// chosen returns, last ones first, where the objects of a request differ without the deciders, such as at the address of a Service, and
// where a request that is no dry run differs on both sides from the dry run.
func (c *comparing) chosen(p pair) []cel.Path {
	object := func(i int, of *Case, r framework.Result) map[string]any { return c.sides[i].decision(of, r).Object }
	paths := vary.Difference(object(0, p[0], p[0].Before), object(1, p[1], p[1].Before), nil)
	if !p[0].Request.DryRun && p[0].Control != nil && p[1].Control != nil {
		real := func(i int) []cel.Path {
			return vary.Difference(object(i, p[i], p[i].After), object(i, p[i].Control, p[i].Control.After), nil)
		}
		others := real(1)
		for _, path := range real(0) {
			if slices.ContainsFunc(others, func(other cel.Path) bool { return slices.Equal(path, other) }) {
				paths = append(paths, path)
			}
		}
	}
	paths = slices.DeleteFunc(paths, func(path cel.Path) bool { return len(path) == 0 })
	slices.Reverse(paths)
	return paths
}

// smaller returns the request of a difference without what does not matter for it. Only a creation is made smaller.
func (c *comparing) smaller(ctx context.Context, p pair, d Difference) (framework.Request, error) {
	requests, tried := [2]framework.Request{p[0].Request, p[1].Request}, 0 // each is in a namespace of its API server
	sent, ok := requests[0].Object.(*unstructured.Unstructured)
	if !ok || requests[0].Verb != framework.VerbCreate || requests[0].Subresource != "" {
		return requests[0], nil
	}
	for _, path := range vary.Paths(sent.Object, nil) {
		less, same := requests, d
		if !lack(&less[0], path) || !lack(&less[1], path) || tried == mostTried {
			continue
		}
		tried++
		for i, b := range c.sides {
			result, err := b.sandbox.Send(ctx, less[i])
			if err != nil {
				return requests[0], err
			}
			same.Responses[i], _ = c.decision(ctx, p, i, result)
		}
		if same.Fields = c.fields(same.Responses); same.kind() == d.kind() {
			requests = less
		}
	}
	return requests[0], nil
}

// lack removes the value at a path from the object of a request, or reports that it cannot.
func lack(request *framework.Request, path cel.Path) bool {
	u, _ := request.Object.(*unstructured.Unstructured)
	_, there := vary.At(u.UnstructuredContent(), path)
	without := vary.With(u.UnstructuredContent(), path, vary.Remove)
	request.Object = &unstructured.Unstructured{Object: without}
	return there && without != nil && without["metadata"] != nil
}

// pasted returns a request as a case of a PolicyTest, or nil.
func (c *comparing) pasted(ctx context.Context, request framework.Request, d Difference) map[string]any {
	b, one := c.sides[0], map[string]any{"name": d.What}
	manifest := func(u *unstructured.Unstructured) map[string]any {
		fields := vary.OfClient(u.UnstructuredContent())
		if u.GetNamespace() == b.namespace {
			unstructured.RemoveNestedField(fields, "metadata", "namespace")
		}
		return fields
	}
	object, _ := request.Object.(*unstructured.Unstructured)
	switch stored := b.stands(ctx, request); {
	case request.Verb == framework.VerbCreate && object != nil && request.Subresource == "":
		one["object"] = manifest(object)
	case request.Verb == framework.VerbUpdate && object != nil && stored != nil && object.GroupVersionKind() == stored.GroupVersionKind():
		one["object"], one["old"] = manifest(object), manifest(stored)
		if request.Subresource != "" {
			one["subresource"] = request.Subresource
		}
	case request.Verb == framework.VerbDelete && stored != nil:
		one["operation"], one["object"] = "DELETE", manifest(stored)
	default:
		return nil
	}
	if user := request.User; user != nil && user.Name != b.subject.Requester.Name {
		as := map[string]any{"name": user.Name}
		if len(user.Groups) > 0 {
			as["groups"] = user.Groups
		}
		one["as"] = as
	}
	if d.Responses[0].Allowed {
		one["allowed"] = true
	} else {
		one["denied"] = d.Responses[0].Message
	}
	return one
}

// stands returns what is stored under the name of a request, or nil.
func (b *bench) stands(ctx context.Context, request framework.Request) *unstructured.Unstructured {
	if request.Verb == framework.VerbCreate || request.Name == "" {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace(request.Namespace)
	u.SetName(request.Name)
	return b.get(ctx, request.Kind, u, "")
}

// mostTried limits the requests by which one is made smaller.
const mostTried = 60

// comparable returns why two sides cannot be compared, or nil.
func (s Subject) comparable(sides [2]Side) error {
	if len(s.Good)+len(s.Bad) == 0 {
		return fmt.Errorf("%w: there is no sample: give objects that A allows or refuses", ErrSubject)
	}
	var of [2][]string
	for i, side := range sides {
		one := Subject{Policies: side.Manifests}
		if len(one.List())+len(one.webhooks()) == 0 {
			return fmt.Errorf("%w: %c has no policy and no webhook", ErrSubject, 'A'+i)
		}
		of[i] = one.resources()
	}
	if !slices.ContainsFunc(of[0], func(name string) bool { return slices.Contains(of[1], name) }) && !slices.Contains(slices.Concat(of[0], of[1]), "*") {
		return fmt.Errorf("%w: A decides about %s, and B about %s: no request concerns both", ErrSubject, strings.Join(of[0], ", "), strings.Join(of[1], ", "))
	}
	return nil
}
