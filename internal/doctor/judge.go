package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
	// Strict makes what files lack inconclusive, as on a cluster. Otherwise, these are remarks.
	Strict bool
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
}

// Report is the outcome of Judge. As JSON, its keys are frozen.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Configurations is the number of objects that were judged, without configurations that have no webhooks. Webhooks and
	// Policies are the numbers of webhooks and policies.
	Configurations int `json:"configurations"`
	Webhooks       int `json:"webhooks"`
	Policies       int `json:"policies"`
	// Rules are the IDs of the rules that were checked.
	Rules   []string `json:"rules"`
	Summary Summary  `json:"summary"`
	// Findings are the violations, the worst first. Suppressed are those that an annotation or an earlier report suppresses.
	Findings   []Finding `json:"findings"`
	Suppressed []Finding `json:"suppressed"`
	// NotChecked are the rules that could not be judged.
	NotChecked []Undecided `json:"notChecked"`

	merged   map[[6]string]int // the index in Findings by rule, object, message, request, fix and severity
	remarks  bool              // what could not be judged are remarks
	accepted int               // undecided rules that an earlier report has too
}

const (
	apiVersion = "admissiontest.dev/v1alpha1"
	reportKind = "DoctorReport"
)

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
	report := &Report{APIVersion: apiVersion, Kind: reportKind, Rules: []string{}, Findings: []Finding{}, Suppressed: []Finding{}, NotChecked: []Undecided{}, remarks: w.hasFiles && !input.Strict, merged: map[[6]string]int{}}
	for _, rule := range rules {
		report.Rules = append(report.Rules, rule.ID)
		rule.Check(&checker{world: w, input: &input, rule: rule, report: report})
	}
	report.Webhooks, report.Policies = len(w.chosen()), len(w.judgedPolicies())
	for _, o := range w.given {
		if w.judged(o) && (len(o.list("webhooks")) > 0 || o.Object["spec"] != nil) {
			report.Configurations++
		}
	}
	w.suppress(&input, rules, report)
	slices.SortStableFunc(report.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	report.summarize()
	return report, err
}

const (
	definitionKind = "CustomResourceDefinition.apiextensions.k8s.io"
	clusterRoles   = "ClusterRole.rbac.authorization.k8s.io"
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
		lists = input.Cluster.Resources
		for _, fields := range input.Cluster.Objects {
			w.add(&object{Unstructured: unstructured.Unstructured{Object: fields}})
		}
		w.minor = cmp.Or(w.minor, input.Cluster.Minor)
	}
	w.minor = cmp.Or(w.minor, oldestMinor)
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
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"} {
		for _, o := range w.byKind[kind+"."+admissionregistrationv1.GroupName] {
			if err := w.read(o); err != nil {
				problem := &scenario.Error{Message: fmt.Sprintf("%s: %v; expected a %s as an API server accepts it", o, err, o.GetKind())}
				if o.manifest != nil {
					problem.File, problem.Line, problem.Column = o.manifest.File, o.manifest.Line, 1
				}
				errs = append(errs, problem)
				continue
			}
			w.given, manifests = append(w.given, o), append(manifests, o.Object)
		}
	}
	admission, err := reach.New(manifests)
	if w.admission = admission; admission != nil {
		w.broken = admission.ExpressionErrors()
	}
	return errors.Join(append(errs, err)...)
}

// read reads a configuration, policy or binding.
func (w *world) read(o *object) error {
	kind := o.GetKind()
	if strings.HasSuffix(kind, "WebhookConfiguration") {
		return w.readWebhooks(o)
	}
	if _, err := reach.New([]map[string]any{o.Object}); err != nil {
		return err
	}
	if strings.HasSuffix(kind, "Binding") {
		w.bindings = append(w.bindings, &binding{o, as[admissionregistrationv1.ValidatingAdmissionPolicyBinding](o).Spec})
	} else {
		p := &policy{object: o, spec: as[admissionregistrationv1.ValidatingAdmissionPolicy](o).Spec}
		for _, b := range w.bindings {
			if b.GetKind() == kind+"Binding" && b.spec.PolicyName == o.GetName() {
				p.bindings = append(p.bindings, b)
			}
		}
		w.policies = append(w.policies, p)
	}
	return nil
}

// Inconclusive returns the rules of level MUST that could not be judged, unless these are remarks.
func (r *Report) Inconclusive() []Undecided {
	return slices.DeleteFunc(slices.Clone(r.NotChecked), func(u Undecided) bool {
		return r.remarks || u.Verdict != framework.Inconclusive || u.Level != framework.Must
	})
}
