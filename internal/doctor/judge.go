package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// Input is what is judged, and what is known about its surroundings.
type Input struct {
	// Manifests are the objects of files. With a Cluster, only their configurations, policies and bindings are judged, and they
	// replace objects of the same name.
	Manifests []shipped.Manifest
	// Cluster is what a cluster has. Nil means that it is not known.
	Cluster *Snapshot
	// Minor is the minor version of the API server, 36 for 1.36. 0 means the oldest supported version, or the version of the
	// Cluster.
	Minor int
	// Only are the IDs, names or groups of the rules to check: "CF-BLOCK-1", "CF-REACH". Empty means all. Skip are the ones
	// that are not checked.
	Only, Skip []string
	// Now is the time for which certificates and suppressions are judged. The zero value means the present.
	Now time.Time
}

// Snapshot is what a cluster has at one moment.
type Snapshot struct {
	// Minor is the minor version of the API server.
	Minor int
	// Objects are the objects of all kinds that were listed.
	Objects []map[string]any
	// Resources is the discovery.
	Resources []*metav1.APIResourceList
	// Incomplete is true if an aggregated API server did not answer: it can serve more resources.
	Incomplete bool
	// Missing says why a kind could not be listed, by kind and group: "Service", "Deployment.apps".
	Missing map[string]string
	// Dialed are the results of the dry runs through each webhook. Nil if none were sent.
	Dialed []Dialed
}

// Dialed is the result of a dry run that calls a webhook.
type Dialed struct {
	// Configuration is the kind and name of the configuration, Webhook the name of the webhook.
	Configuration, Webhook string
	// Request is the request that was sent. Empty if none calls the webhook; Problem then says why.
	Request string
	// Cause is what is wrong: "name", "service", "endpoints", "refused", "timeout", "tls", "tls chain", "host name", "expired", "other".
	// Empty if the webhook answered.
	Cause string
	// Problem is the text of the API server.
	Problem string
}

// Report is the outcome of Judge.
type Report struct {
	// Rules are the rules that were checked.
	Rules []Rule
	// Findings are the violations, the worst first.
	Findings []Finding
	// Suppressed are the violations that an annotation or a baseline suppresses.
	Suppressed []Finding
	// Undecided are the rules that could not be judged.
	Undecided []Undecided
	// Webhooks and Policies are the numbers of webhooks and policies that were judged. Configurations is the number of objects, without
	// configurations that have no webhooks.
	Configurations, Webhooks, Policies int

	merged map[[5]string]int // the index in Findings by rule, object, message, request and severity
}

// ErrUnknownRule marks the name of a rule that does not exist.
var ErrUnknownRule = errors.New("there is no such rule")

// Choose returns the rules with an ID, a name or a group, and an ErrUnknownRule with a suggestion for an unknown one.
func Choose(only, skip []string) ([]Rule, error) {
	match := func(r Rule, names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.EqualFold(name, r.ID) || name == r.Name || strings.HasPrefix(strings.ToUpper(r.ID), strings.ToUpper(name)+"-")
		})
	}
	var known []string
	for _, r := range All() {
		group := r.ID[:strings.LastIndex(r.ID, "-")]
		known = append(known, r.ID, r.Name, group)
	}
	for _, name := range slices.Concat(only, skip) {
		if !slices.ContainsFunc(All(), func(r Rule) bool { return match(r, []string{name}) }) {
			return nil, fmt.Errorf("choose rules %q: %w%s", name, ErrUnknownRule, suggest.DidYouMean(name, known))
		}
	}
	return slices.DeleteFunc(All(), func(r Rule) bool { return len(only) > 0 && !match(r, only) || match(r, skip) }), nil
}

// Judge checks the rules. The error has one scenario.Error for each configuration or policy that cannot be read; the Report has the
// findings about the others. It returns an ErrUnknownRule for an unknown rule.
func Judge(ctx context.Context, input Input) (*Report, error) {
	rules, err := Choose(input.Only, input.Skip)
	if err != nil {
		return nil, err
	}
	if input.Now.IsZero() {
		input.Now = time.Now()
	}
	w, err := newWorld(ctx, input)
	if w == nil {
		return nil, err
	}
	report := &Report{Rules: rules, merged: map[[5]string]int{}}
	for _, rule := range rules {
		rule.Check(&checker{world: w, input: &input, rule: rule, report: report})
	}
	for _, h := range w.webhooks {
		if w.judged(h.configuration) {
			report.Webhooks++
		}
	}
	for _, o := range slices.Concat(w.byKind[validatingConfigurations], w.byKind[mutatingConfigurations], w.policies, w.bindings) {
		if w.judged(o) && (len(o.list("webhooks")) > 0 || o.Object["spec"] != nil) {
			report.Configurations++
		}
	}
	for _, o := range w.policies {
		if w.judged(o) {
			report.Policies++
		}
	}
	w.suppress(&input, report)
	slices.SortStableFunc(report.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return report, err
}

const (
	validatingConfigurations = "ValidatingWebhookConfiguration.admissionregistration.k8s.io"
	mutatingConfigurations   = "MutatingWebhookConfiguration.admissionregistration.k8s.io"
	definitionKind           = "CustomResourceDefinition.apiextensions.k8s.io"
)

// oldestMinor is the oldest supported minor version of Kubernetes.
const oldestMinor = 34

// newWorld reads the input. The world is nil if nothing can be judged.
func newWorld(ctx context.Context, input Input) (*world, error) {
	w := &world{
		ctx: ctx, objects: map[string]*object{}, byKind: map[string][]*object{}, backends: map[string]*backend{}, decided: map[string]*decisions{},
		onCluster: input.Cluster != nil, minor: input.Minor, hasFiles: len(input.Manifests) > 0,
	}
	lists := kinds.BuiltIn()
	if input.Cluster != nil {
		lists, w.missing = input.Cluster.Resources, input.Cluster.Missing
		for _, fields := range input.Cluster.Objects {
			w.add(&object{Unstructured: unstructured.Unstructured{Object: fields}})
		}
		if w.minor == 0 {
			w.minor = input.Cluster.Minor
		}
	}
	if w.minor == 0 {
		w.minor = oldestMinor
	}
	for i := range input.Manifests {
		m := &input.Manifests[i]
		w.add(&object{Unstructured: unstructured.Unstructured{Object: m.Object}, manifest: m})
	}
	var definitions []map[string]any
	for _, o := range w.byKind[definitionKind] {
		definitions = append(definitions, o.Object)
	}
	w.Catalogue, w.complete = kinds.NewCatalogue(lists, definitions...), input.Cluster != nil && !input.Cluster.Incomplete
	return w, w.readAdmission()
}

// readAdmission reads configurations, policies and bindings. Those that cannot be read are left out, with an error.
func (w *world) readAdmission() error {
	var errs []error
	var manifests []map[string]any
	refuse := func(o *object, err error) {
		problem := &scenario.Error{Message: fmt.Sprintf("%s: %v; expected a %s as an API server accepts it", o, err, o.GetKind())}
		if o.manifest != nil {
			problem.File, problem.Line, problem.Column = o.manifest.File, o.manifest.Line, 1
		}
		errs = append(errs, problem)
	}
	for _, key := range []string{mutatingConfigurations, validatingConfigurations} {
		w.byKind[key] = slices.DeleteFunc(w.byKind[key], func(o *object) bool {
			if o.GroupVersionKind().Version == "v1beta1" {
				setOldDefaults(o)
			}
			if err := w.readWebhooks(o); err != nil {
				refuse(o, err)
				return true
			}
			manifests = append(manifests, o.Object)
			return false
		})
	}
	for _, kind := range []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"} {
		for _, o := range w.byKind[kind+".admissionregistration.k8s.io"] {
			if _, err := reach.New([]map[string]any{o.Object}); err != nil {
				refuse(o, err)
				continue
			}
			w.policies, manifests = append(w.policies, o), append(manifests, o.Object)
		}
		for _, o := range w.byKind[kind+"Binding.admissionregistration.k8s.io"] {
			if _, err := reach.New([]map[string]any{o.Object}); err != nil {
				refuse(o, err)
				continue
			}
			w.bindings, manifests = append(w.bindings, o), append(manifests, o.Object)
		}
	}
	admission, err := reach.New(manifests)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	w.admission = admission
	return errors.Join(errs...)
}

// Worst returns the worst severity of the findings, and false if there are none.
func (r *Report) Worst() (Severity, bool) {
	if len(r.Findings) == 0 {
		return "", false
	}
	return r.Findings[0].Severity, true
}

// Inconclusive returns the rules of level MUST that could not be judged.
func (r *Report) Inconclusive() []Undecided {
	return slices.DeleteFunc(slices.Clone(r.Undecided), func(u Undecided) bool {
		return u.Verdict != framework.Inconclusive || u.Level != framework.Must
	})
}
