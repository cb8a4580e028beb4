package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/cel"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
)

// Case is a request with its responses before and after the policies were installed.
type Case struct {
	// Group says why the request is sent.
	Group Group
	// What names the request: "create Pod good[0], without spec.containers[0].resources".
	What string
	// Good and Bad are the indexes of the sample that it was made from; the other one is -1.
	Good, Bad int
	// Path is where the object was varied.
	Path    cel.Path
	Request framework.Request
	// Control is another request that says what this one must get, or whether it says anything. Nil means none.
	Control *Case
	controls
	// Whole is true if the API server accepts its response to the creation of a sample as a new object. Chosen are the paths of
	// values that it chooses, which differ in each response.
	Whole  bool
	chosen []cel.Path
	// Templates are the parts of an Owned object that its owner wrote.
	Templates []cel.Path
	// Before and After are the responses without and with the policies.
	Before, After framework.Result
}

// controls are other requests, which say whether a Case that moves a bad element says anything. Each can be nil.
type controls struct {
	// Absent is the creation of the fix without the element that the bad element of this request is instead of. If
	// the policies refuse it, they ask for an element, and do not forbid one.
	Absent *Case
	// Same is the creation of the bad object in which the bad element has the name that it has in this request. If
	// the policies allow it, they decide by the name.
	Same *Case
	// Alone is the creation of the fix with only those values of the bad object that this request carries, or nil if it carries
	// all. Unless the policies refuse it, these values are no defect.
	Alone *Case
}

// Group is a kind of Case.
type Group string

// The values of Group.
const (
	Samples    Group = "samples"     // the creation of each object of the Subject
	Fixes      Group = "fixes"       // the creation of each fix
	Variants   Group = "variants"    // a field removed, a list or map emptied
	Generated  Group = "generated"   // the object with generateName
	Violations Group = "violations"  // the update of a stored fix to the bad object
	Unrelated  Group = "unrelated"   // the update of a label of a stored object
	Repairs    Group = "repairs"     // the update of a stored bad object to its fix
	Finalizers Group = "finalizers"  // the update of an object in deletion that removes the finalizer
	Deletions  Group = "deletions"   // the deletion of a stored object by the requester
	Controller Group = "controllers" // the deletion of a stored object by a controller of Kubernetes
	Siblings   Group = "siblings"    // the bad element in another list with such elements
	Subwrites  Group = "subwrites"   // the defect by a subresource that can carry it
	Renamed    Group = "renamed"     // the creation of a sample under another name
	Embedded   Group = "embedded"    // the creation of what the bad object embeds: the Pod of its template
	Children   Group = "children"    // the creation of what a good object embeds, by a controller
	Owned      Group = "owned"       // the creation of what the policies made of a good object, with a controller
	Applied    Group = "applied"     // the second apply of a good object; the Control is the first
	Large      Group = "large"       // a sample with ten times as many elements in a list or map that expressions loop over
	Reapplied  Group = "reapplied"   // the creation of what a policy made of a good object
	Elements   Group = "elements"    // the bad element of a list among good ones
	Verbs      Group = "verbs"       // what the Control does, by another verb or in no dry run
	Versions   Group = "versions"    // the creation of the bad object in another version
	Exempted   Group = "exempted"    // the bad object with other labels or annotations
	Constants  Group = "constants"   // a value that has more than a constant of an expression; the Control does not have the constant
	Foreign    Group = "foreign"     // the creation of a sample with metadata of other clients
	Shapes     Group = "shapes"      // the creation of samples and fixes, with bindings to variants of the params
	Paramless  Group = "paramless"   // the creation of samples and fixes after the params were deleted
	Observed   Group = "observed"    // the creation of samples and fixes, only with the bindings without the action Deny
	Forms      Group = "forms"       // the creation of a sample with another form of a quantity; the Control is the sample
	Orders     Group = "orders"      // the creation of a sample with two mutating policies, one after the other; the Control has the other order
	Existing   Group = "existing"    // the update without a change of an object that the API server has
	Controls   Group = "controls"    // a Control that means nothing without its other request

	Every Group = "" // each of them
)

// Accepted reports whether the API server accepts the request without the policies.
func (c *Case) Accepted() bool { return c.Before.Allowed() }

// Errors returns the evaluation errors of policies and of their probes, each once.
func (c *Case) Errors() []string {
	var found []string
	for _, text := range append(slices.Clone(c.After.Warnings), c.After.Status.Message) {
		text = ofValidation.ReplaceAllString(text, "validations[$1] resulted in error: ")
		if strings.Contains(text, "resulted in error") && !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}

// ofValidation matches what an API server says about an error of a validation of a probe. See quotable.
var ofValidation = regexp.MustCompile(`expression 'variables\.` + validationVariable + `(\d+)[^']*' resulted in error: composited variable "` + validationVariable + `\d+" fails to evaluate: `)

// ErrorOf reports whether an evaluation error is that of one of the expressions. An API server quotes the expression.
func ErrorOf(text string, expressions []string) bool {
	return slices.ContainsFunc(expressions, func(each string) bool {
		return strings.Contains(text, "expression '"+each+"' resulted in error") || strings.Contains(text, "expression '"+lineOf(each)+"' resulted in error")
	})
}

// Evaluated reports whether a policy with a name was evaluated for the request, or any policy for "". It is only known of
// ValidatingAdmissionPolicies.
func (c *Case) Evaluated(policy string) bool {
	return slices.ContainsFunc(c.After.Warnings, func(text string) bool {
		return strings.Contains(text, "'"+probePrefix+policy) && (strings.Contains(text, evaluatedMark) || strings.Contains(text, "resulted in error")) &&
			(policy == "" || strings.Contains(text, "'"+probePrefix+policy+"'"))
	})
}

// Cut reports whether the API server may have cut or dropped warnings, so that an evaluation error is not seen. If the warnings have
// more than 4096 characters in all, it cuts each of them to 256, and drops those that then go beyond 4096
// (k8s.io/apiserver/pkg/endpoints/filters/warning.go).
func (c *Case) Cut() bool {
	const most, ofOne = 4096, 256
	total := 0
	for _, text := range c.After.Warnings {
		length := utf8.RuneCountInString(text)
		if length == ofOne && strings.Contains(text, "'"+probePrefix) {
			return true
		}
		total += length
	}
	return total > most-ofOne
}

// Refusal returns the message of the refusal after the policies were installed, or "".
func (c *Case) Refusal() string {
	if c.After.Allowed() {
		return ""
	}
	return c.After.Status.Message
}

// Denied reports whether a policy refused the request. Something else can, which accepted the same request before.
func (c *Case) Denied() bool { return deniedBy.MatchString(c.Refusal()) }

// deniedBy is in each refusal by a policy; only ValidatingAdmissionPolicies have their kind in it.
var deniedBy = regexp.MustCompile(`(?i)policy ['"][^'"]*['"](?: with binding '[^']*')? denied request: `)

// Observations are the responses to all requests about a Subject.
type Observations struct {
	// Server is the API server.
	Server framework.TargetInfo
	Cases  []*Case
	// Types is what the type check of Kubernetes says about the expressions of the policies.
	Types []reach.TypeWarning
	// Missing are paths in expressions that no kind has which the policy matches.
	Missing []MissingPath
	// NotKnown has, by the kind and name of a policy, the fields with expressions that read something of which it is not
	// known whether a kind has it, and what.
	NotKnown map[string][]string
	// Fields are the names of all fields in the API groups of the samples and of the rules of the policies.
	Fields map[string]bool
	// OneVersion is true if no kind of a bad object is served in another version.
	OneVersion bool
	// Outside is what policies read of an object outside of its template, where a defect is: "bad[0]: spec.replicas".
	Outside []string
	// Keys and OpenConstants are how many labels and annotations, and how many constants, requests are about.
	Keys, OpenConstants int
	// Untried says of each constant about which there is no request what the samples lack.
	Untried []string
	// Shapes says of which variant of a param each binding of a probe is.
	Shapes map[string]string
	// NotServed has the kinds of samples that the API server does not serve.
	NotServed []string
	// NotStored says of which samples no copy is stored.
	NotStored []string
	// NotSent is how many variants were left out, because their object has too many fields.
	NotSent int
	// Unsent says of groups why their requests were not sent with the policies, and of Every why no request was.
	Unsent map[Group]string
	// Dropped is how many requests the API server does not accept without the policies.
	Dropped int
}

// Of returns the accepted requests of a group.
func (o *Observations) Of(groups ...Group) []*Case {
	var found []*Case
	for _, c := range o.Cases {
		if c.Accepted() && slices.Contains(groups, c.Group) {
			found = append(found, c)
		}
	}
	return found
}

// ErrSubject marks a Subject that cannot be observed: a policy that the API server refuses, for instance.
var ErrSubject = errors.New("the Subject cannot be used")

// inParallel is how many requests are sent at the same time.
const inParallel = 8

// observe sends all requests.
func (b *bench) observe(ctx context.Context) (*Observations, error) {
	if err := b.given(ctx); err != nil {
		return nil, err
	}
	if err := b.before(ctx); err != nil {
		return nil, err
	}
	if err := b.install(ctx); err != nil {
		return b.observed, b.unsent(err, Every)
	}
	if err := b.after(ctx); err != nil {
		return nil, err
	}
	return b.observed, b.types(ctx)
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
	// controls has the controls of each bad element, by its sample and path.
	controls map[string]controls
	// copied has the names of the samples of which a copy is stored. See storeShared.
	copied map[string]bool
	// openAPI has the OpenAPI v3 documents of the API server, by group and version.
	openAPI map[schema.GroupVersion]map[string]any
}

// given installs what the Subject is given, and the namespaces that only samples name.
func (b *bench) given(ctx context.Context) error {
	if err := b.installAll(ctx, b.subject.Given); err != nil {
		return err
	}
	known := []string{"", metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
	for _, m := range b.subject.Given {
		if u := (unstructured.Unstructured{Object: m.Object}); u.GetKind() == "Namespace" {
			known = append(known, u.GetName())
		}
	}
	for _, s := range b.samples() {
		u := b.addressed(s.object)
		if name := u.GetNamespace(); !slices.Contains(known, name) && name != b.namespace {
			known = append(known, name)
			namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
			if err := b.on.shared.Install(ctx, namespace, nil); err != nil {
				return fmt.Errorf("%w: %s: create the namespace %s: %w", ErrSubject, s.name, name, err)
			}
		}
		if err := b.account(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// account creates the ServiceAccount default in the namespace of a sample, which a controller does in a cluster: the API
// server refuses Pods without it. If a sample is this ServiceAccount, it is deleted.
func (b *bench) account(ctx context.Context, of *unstructured.Unstructured) error {
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
	account.SetName("default")
	account.SetNamespace(of.GetNamespace())
	request := framework.Create(account)
	if slices.ContainsFunc(b.samples(), func(s sample) bool { return keyOf(b.addressed(s.object)) == keyOf(account) }) {
		request = framework.Delete(account)
	}
	if of.GetNamespace() == "" {
		return nil
	}
	request.InProcess = framework.InProcess{} // an API server reads the old object itself
	_, err := b.sandbox.Send(ctx, request)    // it may exist, or not, already
	return err
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
			line, column := m.Position(fieldOf(err))
			return fmt.Errorf("%w: %s:%d:%d: install %s: %w", ErrSubject, m.File, line, column, m, err)
		}
		if object.IsPolicy(m.Object) {
			b.on.removed = append(b.on.removed, m.Object)
		}
	}
	return nil
}

// fieldOf returns the first field that the API server names in a refusal, or "".
func fieldOf(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			return cause.Field
		}
	}
	return ""
}

// install installs the policies and their probes, and waits until the API server acts on them.
func (b *bench) install(ctx context.Context) error {
	if err := b.installAll(ctx, b.subject.Policies); err != nil {
		return err
	}
	all := b.subject.Probes()
	for _, probe := range all {
		if err := b.probes.Install(ctx, probe, nil); err != nil {
			return fmt.Errorf("install %s, a copy of a policy: %w", object.Describe(probe), err)
		}
	}
	for _, m := range b.subject.Policies {
		all = append(all, m.Object)
	}
	if err := b.server.WaitUntilEffective(ctx, all); err != nil {
		return err
	}
	return b.sandbox.WaitForParams(ctx)
}

// grant gives users the rights for the requests of cases. It writes roles, which a policy can refuse, so it is for before
// the policies are installed; later requests are of the same users, verbs and kinds.
func (b *bench) grant(ctx context.Context, cases []*Case) error {
	var requests []framework.Request
	for _, c := range cases {
		requests = append(requests, c.Request)
	}
	return b.sandbox.Grant(ctx, requests)
}

// send sends the requests of cases, several at the same time. Dry runs of the same request are sent once: samples often
// differ only in what a variant of them leaves out.
func (b *bench) send(ctx context.Context, cases []*Case, into func(*Case) *framework.Result) error {
	requests, err := byRequest(cases)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inParallel)
	for _, same := range requests {
		group.Go(func() error {
			result, err := b.granted(ctx, same[0].Request)
			if errors.Is(err, framework.ErrNotServed) { // such as a subresource: the API server cannot accept it
				result.Status.Code, result.Status.Message, err = http.StatusNotFound, err.Error(), nil
			}
			for _, c := range same {
				*into(c) = result
			}
			if err != nil {
				return fmt.Errorf("%s: %w", same[0].What, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// byRequest returns cases with those dry runs together that are the same request.
func byRequest(cases []*Case) ([][]*Case, error) {
	var requests [][]*Case
	known := map[string]int{}
	for _, c := range cases {
		text, err := json.Marshal(c.Request)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.What, err)
		}
		i, found := known[string(text)]
		if !found || !c.Request.DryRun {
			i = len(requests)
			requests, known[string(text)] = append(requests, nil), i
		}
		requests[i] = append(requests[i], c)
	}
	return requests, nil
}

// grantLimit is how long an API server may take to know a new role.
const grantLimit = 5 * time.Second

// granted sends a request, again while the API server does not know the right to send it.
func (b *bench) granted(ctx context.Context, request framework.Request) (result framework.Result, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, grantLimit, true, func(context.Context) (bool, error) {
		result, err = b.sandbox.Send(ctx, request)
		return request.User == nil || result.Status.Code != http.StatusForbidden || !strings.Contains(result.Status.Message, fmt.Sprintf("User %q cannot ", request.User.Name)), err
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
	reapplied := b.reapplied()
	again := slices.Concat(reapplied, b.owned())
	b.observed.Cases = append(b.observed.Cases, again...)
	for _, c := range again {
		c.Before.Status.Code = 200 // it was accepted as the result of another request
	}
	if err := b.send(ctx, again, after); err != nil {
		return err
	}
	if b.subject.mutating() {
		if err := b.appliedTwice(ctx); err != nil {
			return err
		}
	}
	if err := b.real(ctx); err != nil {
		return err
	}
	if err := b.unsent(b.withoutParams(ctx), Shapes, Paramless); err != nil {
		return err
	}
	if err := b.unsent(b.onlyObserving(ctx), Observed); err != nil {
		return err
	}
	if err := b.unsent(b.inOrders(ctx), Orders); err != nil {
		return err
	}
	return b.unsent(b.withoutPolicies(ctx, reapplied), Reapplied)
}

// names adds the names of all fields of an OpenAPI document to a set.
func names(document any, into map[string]bool) {
	switch document := document.(type) {
	case map[string]any:
		properties, _ := document["properties"].(map[string]any)
		for name := range properties {
			into[name] = true
		}
		for _, below := range document {
			names(below, into)
		}
	case []any:
		for _, below := range document {
			names(below, into)
		}
	}
}

// types checks the types of the expressions of the policies for the kinds of the samples.
func (b *bench) types(ctx context.Context) error {
	check := b.server.Optional().TypeCheck
	if check == nil {
		return nil
	}
	b.observed.Fields = map[string]bool{}
	for _, document := range b.openAPI {
		names(document, b.observed.Fields)
	}
	seen := map[string]bool{}
	for _, c := range b.observed.Of(Samples) {
		if kind := c.Request.Kind.String(); !seen[kind] {
			seen[kind] = true
			found, err := check(ctx, b.namespace, c.Request)
			if err != nil {
				return err
			}
			b.observed.Types = append(b.observed.Types, found...)
		}
	}
	return nil
}

// OfAnotherName reports whether a request is about a copy of a sample that has another name.
func OfAnotherName(c *Case) bool {
	switch c.Group {
	case Generated, Violations, Unrelated, Repairs, Finalizers, Subwrites, Versions:
		return true
	case Verbs:
		return c.Control != nil && (c.Control.Group != Samples || !c.Request.DryRun)
	}
	return false
}

// Elsewhere returns why the values of the bad object that a request carries are no defect without the others, or "".
func (c *Case) Elsewhere() string {
	switch {
	case c.Alone == nil:
		return ""
	case !c.Alone.Accepted():
		return "the API server does not accept: " + c.Alone.What
	case c.Alone.Refusal() == "":
		return "the policies do not refuse: " + c.Alone.What
	}
	return ""
}

// Meaningless returns why a request that moves a bad element says nothing about the policies, or "".
func (c *Case) Meaningless() string {
	switch {
	case c.Elsewhere() != "":
		return c.Elsewhere()
	case c.Absent != nil && c.Absent.Accepted() && c.Absent.Denied() && len(c.Absent.Errors()) == 0:
		return "the policies ask for an element, and do not forbid one"
	case c.Same != nil && c.Same.Accepted() && c.Same.Refusal() == "":
		return "the policies decide by the name of the element"
	}
	return ""
}
