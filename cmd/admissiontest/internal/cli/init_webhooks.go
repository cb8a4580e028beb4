package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/goccy/go-yaml"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/flags"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/userfile"
	"github.com/admissiontest/admissiontest/suites/policy"
)

// The kinds that decide what init writes.
const (
	mutatingWebhooks   = "MutatingWebhookConfiguration"
	validatingWebhooks = "ValidatingWebhookConfiguration"
	definition         = "CustomResourceDefinition"
)

func isWebhooks(m shipped.Manifest) bool {
	return m.Object["kind"] == mutatingWebhooks || m.Object["kind"] == validatingWebhooks
}

// webhookInit writes scenarios for webhooks.
type webhookInit struct {
	*app
	flags   *initFlags
	folder  string   // of the scenarios
	given   []string // files with the configurations and CustomResourceDefinitions, relative to the folder of the scenarios
	crds    []shipped.Manifest
	all     []*initWebhook
	missing []string
}

// initWebhook is a webhook of a configuration, with requests that reach it.
type initWebhook struct {
	manifest   shipped.Manifest
	at         string // its field in the manifest: "webhooks[0]"
	fields     admissionregistrationv1.MutatingWebhook
	phase      framework.Phase
	call       any    // how calls names it
	scenario   string // the name of its scenario
	namespaces map[string]map[string]string
	steps      []*initStep
}

// initStep is a request that reaches a webhook.
type initStep struct {
	operation, kind string
	// object is created, or exists before. Given is true if it must exist before the webhooks, which deny its creation.
	object          map[string]any
	given           bool
	action          yaml.MapItem
	answers, called yaml.MapSlice // of then: what can vary, and what cannot
}

func (s *initStep) String() string { return s.operation + " of " + s.kind }

// notInNames matches what names of scenarios cannot have.
var notInNames = regexp.MustCompile("[^a-z0-9]+")

// initWebhooks writes a scenario for each webhook of the files.
func (a *app) initWebhooks(ctx context.Context, f *initFlags, folder string, project *shipped.Project) (err error) {
	w := &webhookInit{app: a, flags: f, folder: folder}
	f.run.target.Assets.Version = f.version
	if err := w.read(project); err != nil {
		return err
	}
	if !f.answers() {
		serving, end := context.WithCancel(ctx)
		defer end()
		if f.run.endpoints.DefaultURL, f.run.endpoints.DefaultCA, err = serveAll(serving); err != nil {
			return exit.New(exit.Infrastructure, fmt.Errorf("init: serve webhooks: %w", err))
		}
	}
	for _, next := range []func(context.Context) error{w.draft, w.answer, w.verify} {
		if err := next(ctx); err != nil {
			return err
		}
	}
	documents := w.documents()
	text, err := documentsText(documents)
	switch {
	case err != nil:
		return fmt.Errorf("init: %w", err)
	case len(documents) == 0:
		return exit.New(exit.Nothing, fmt.Errorf("init: found no request:\n%s", strings.Join(w.missing, "\n")))
	}
	args := []string{"admissiontest", "run", f.to}
	if f.version != "" {
		args = append(args, "--k8s-version", f.version)
	}
	command := shellescape.QuoteCommand(slices.Concat(args, flags.Args(f.run.set, "install", "endpoint", "endpoint-ca"), f.run.program.Args()))
	header := "# Each code, message, warning and object is what the webhooks answer today: check that this is right.\n"
	if !f.answers() {
		command, header = command+" -- PROGRAM", ""
	}
	header = "# The first scenarios of the webhooks, written by admissiontest init: requests that reach each of them. Run them:\n# " + command + "\n" + header
	return a.writeInit(f.to, header+text+notFound("steps", w.missing), fmt.Sprintf("%d scenarios; not found: %d; to run them:\n%s", len(documents), len(w.missing), command))
}

// read reads the webhooks, and chooses the files that scenarios can be given. The others are for --install.
func (w *webhookInit) read(project *shipped.Project) error {
	var files []string
	others := map[string]bool{}
	for _, m := range project.Manifests {
		switch {
		case isWebhooks(m):
			if err := w.readWebhooks(m); err != nil {
				return err
			}
		case m.Object["kind"] == definition:
			w.crds = append(w.crds, m)
		default:
			others[m.File] = true
			continue
		}
		if !slices.Contains(files, m.File) {
			files = append(files, m.File)
		}
	}
	for _, file := range files {
		relative, err := relativeTo(w.folder, []string{file})
		switch {
		case err != nil:
			return err
		case others[file] || userfile.InTree(userfile.TreeOf(w.folder), file) != nil:
			w.flags.run.install.Paths = append(w.flags.run.install.Paths, file)
		default:
			w.given = append(w.given, relative...)
		}
	}
	return nil
}

// readWebhooks reads the webhooks of a configuration.
func (w *webhookInit) readWebhooks(m shipped.Manifest) error {
	var configuration admissionregistrationv1.MutatingWebhookConfiguration // it has all fields of the other kind
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &configuration)
	switch version := admissionregistrationv1.SchemeGroupVersion.String(); {
	case configuration.APIVersion != version:
		return misplaced(m, "apiVersion", fmt.Errorf("apiVersion is %v; want %s", m.Object["apiVersion"], version))
	case err != nil:
		return misplaced(m, "webhooks", fmt.Errorf("a field has another type: %w", err))
	case len(configuration.Webhooks) == 0:
		return misplaced(m, "webhooks", errors.New("there is no webhook; want at least one"))
	}
	area := notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(filepath.Base(w.flags.to), filepath.Ext(w.flags.to))), "")
	for i, fields := range configuration.Webhooks {
		one := &initWebhook{manifest: m, at: fmt.Sprintf("webhooks[%d]", i), fields: fields, phase: framework.Validating, namespaces: map[string]map[string]string{}}
		if configuration.Kind == mutatingWebhooks {
			one.phase = framework.Mutating
		}
		one.call, one.scenario = fields.Name, cmp.Or(area, "webhooks")+"."+fields.Name
		switch {
		case fields.Name == "":
			return one.errorf("", "the webhook has no name; want one such as guard.example.com")
		case len(fields.Rules) == 0:
			return one.errorf("", "webhook %s has no rules, so no request reaches it; want at least one rule", fields.Name)
		case fields.ClientConfig.URL != nil && !w.flags.answers():
			return one.errorf("clientConfig.url", "webhook %s is called at a URL; to call it, init needs its program: add -- PROGRAM", fields.Name)
		}
		for _, other := range w.all {
			if other.fields.Name == fields.Name && other.phase == one.phase {
				return one.errorf("name", "two %s webhooks have the name %s; want a name of its own for each: calls cannot tell them apart", one.phase, fields.Name)
			}
			if other.fields.Name == fields.Name {
				one.scenario += "." + string(one.phase)
				one.call, other.call = map[string]any{"webhook": fields.Name, "phase": one.phase}, map[string]any{"webhook": fields.Name, "phase": other.phase}
			}
		}
		w.all = append(w.all, one)
	}
	return nil
}

// errorf returns a usage error with the position of a field of the webhook.
func (h *initWebhook) errorf(field, format string, args ...any) error {
	return misplaced(h.manifest, strings.Trim(h.at+"."+field, "."), fmt.Errorf(format, args...))
}

// misplaced returns a usage error with the position of a field.
func misplaced(m shipped.Manifest, field string, err error) error {
	line, column := m.Position(field)
	return exit.Usagef("init: %s:%d:%d: %s: %w", m.File, line, column, m, err)
}

// refused returns the error of a Draft, with the position of the field that the API server refuses.
func (w *webhookInit) refused(h *initWebhook, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return exit.Usagef("init: %s", strings.TrimPrefix(err.Error(), policy.ErrSubject.Error()+": "))
	}
	details := status.Status().Details
	cause := errors.New(details.Causes[0].Message)
	for _, m := range w.crds {
		if m.String() == definition+" "+details.Name {
			return misplaced(m, details.Causes[0].Field, fmt.Errorf("%s: %w", details.Causes[0].Field, cause))
		}
	}
	field := strings.NewReplacer("spec.matchConstraints.resourceRules", "rules", "spec.matchConstraints.", "", "spec.", "").Replace(details.Causes[0].Field)
	return h.errorf(field, "webhook %s: %s: %w", h.fields.Name, field, cause)
}

// asPolicy returns a policy that is evaluated for the requests that reach the webhook, and allows them. Of rules for every
// kind it takes ConfigMaps.
func (h *initWebhook) asPolicy() (asPolicy map[string]any, wild bool, err error) {
	p := admissionregistrationv1.ValidatingAdmissionPolicy{}
	p.APIVersion, p.Kind, p.Name = admissionregistrationv1.SchemeGroupVersion.String(), "ValidatingAdmissionPolicy", policyOfWebhook
	constraints := &admissionregistrationv1.MatchResources{NamespaceSelector: h.fields.NamespaceSelector, ObjectSelector: h.fields.ObjectSelector, MatchPolicy: h.fields.MatchPolicy}
	p.Spec.MatchConstraints, p.Spec.MatchConditions = constraints, h.fields.MatchConditions
	p.Spec.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "reached", ValueExpression: "''"}} // a validation would be searched for a denial
	for _, rule := range h.fields.Rules {
		has := func(of []string, values ...string) bool {
			return slices.ContainsFunc(of, func(value string) bool { return slices.Contains(values, value) })
		}
		if has(rule.Resources, "*", "*/*") && has(rule.APIGroups, "", "*") && has(rule.APIVersions, "v1", "*") && (rule.Scope == nil || *rule.Scope != admissionregistrationv1.ClusterScope) {
			wild = true
			rule.Rule = admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}
		}
		constraints.ResourceRules = append(constraints.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
	}
	asPolicy, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&p)
	delete(asPolicy, "status")
	unstructured.RemoveNestedField(asPolicy, "metadata", "creationTimestamp")
	return asPolicy, wild, err
}

// policyOfWebhook is the name of the policy that asPolicy returns.
const policyOfWebhook = "webhook"

// draft finds requests that reach the webhooks. Webhooks that select the same requests have the same.
func (w *webhookInit) draft(ctx context.Context) (err error) {
	w.note(fmt.Sprintf("finding requests that reach the webhooks: %d", len(w.all)))
	server := &policy.Server{KubernetesVersion: w.flags.version}
	defer func() { err = errors.Join(err, server.Close(ctx)) }()
	known := map[string]policy.Draft{}
	for _, one := range w.all {
		asPolicy, wild, err := one.asPolicy()
		if err != nil {
			return one.errorf("", "%w", err)
		}
		contract := &scenario.Contract{Policies: []scenario.ContractManifest{{Object: asPolicy, File: one.manifest.File, Line: one.manifest.Line}}}
		for _, m := range w.crds {
			contract.Given = append(contract.Given, scenario.ContractManifest{Object: m.Object, File: m.File, Line: m.Line})
		}
		key, err := json.Marshal(asPolicy)
		if err != nil {
			return one.errorf("", "%w", err)
		}
		draft, found := known[string(key)]
		if !found {
			subject, _ := policy.OfTest(contract)
			draft, err = server.Draft(ctx, subject)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, policy.ErrSubject):
				return w.refused(one, err)
			case err != nil:
				return exit.New(exit.Infrastructure, fmt.Errorf("init: %w", err))
			}
			known[string(key)] = draft
		}
		if wild {
			w.lacks(one, "its rules are for every kind: only requests for a ConfigMap are written")
		}
		w.take(one, draft)
	}
	return nil
}

// lacks notes what was not found for a webhook.
func (w *webhookInit) lacks(h *initWebhook, format string, args ...any) {
	w.missing = append(w.missing, fmt.Sprintf("%s: %s", h.fields.Name, fmt.Sprintf(format, args...)))
}

// take makes steps of the cases of a Draft.
func (w *webhookInit) take(h *initWebhook, draft policy.Draft) {
	of := "ValidatingAdmissionPolicy " + policyOfWebhook
	words := strings.NewReplacer(of+" is evaluated for and allows", "reaches it", of+": ", "", of+" of ", "", "a PolicyTest has only requests for the object itself; write a Scenario", "only requests for the object itself are written; add a step with subresource, or connect", "cases are only", "steps are only")
	for _, line := range draft.Missing {
		w.lacks(h, "%s", words.Replace(line))
	}
	var created []map[string]any
	for _, c := range draft.Cases {
		after, _ := c.Object[0].(map[string]any)
		step := &initStep{operation: cmp.Or(c.Operation, "CREATE"), kind: fmt.Sprint(after["kind"]), called: yaml.MapSlice{{Key: "calls", Value: map[string]any{"include": []any{h.call}}}}}
		before := after
		if len(c.Old) > 0 {
			step.operation = "UPDATE"
			before, _ = c.Old[0].(map[string]any)
		}
		if c.As != nil {
			w.lacks(h, "%s: only a request of another user reaches it, such as %s; add a step with as, and roles in given", step, c.As.Name)
			continue
		}
		if c.Namespace != "" {
			h.namespaces[c.Namespace] = draft.Namespaces[c.Namespace]
		}
		step.object = w.inScenario(before, c.Namespace, step.operation)
		for _, known := range created { // one object is enough, if only the name differs
			if renamed := w.inScenario(before, c.Namespace, "CREATE"); reflect.DeepEqual(withName(renamed, ""), withName(known, "")) {
				step.object = known
			}
		}
		switch step.operation {
		case "CREATE":
			created = append(created, step.object)
			step.action = yaml.MapItem{Key: "create", Value: step.object}
		case "UPDATE":
			merge := object.MergePatch(withName(before, ""), withName(after, ""))
			if len(merge) == 0 {
				merge = map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.com/changed": "by-an-update"}}}
			}
			step.action = yaml.MapItem{Key: "patch", Value: append(reference(step.object), yaml.MapItem{Key: "merge", Value: merge})}
		case "DELETE":
			step.action = yaml.MapItem{Key: "delete", Value: reference(step.object)}
		}
		h.steps = append(h.steps, step)
	}
}

// inScenario returns an object as it is in a scenario: in the namespace of a case, or with a name that no other scenario has.
func (w *webhookInit) inScenario(manifest map[string]any, namespace, operation string) map[string]any {
	u := unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
	switch {
	case w.clusterScoped(u):
		u.SetName("$(id)-" + strings.ToLower(operation))
	case namespace != "":
		u.SetNamespace("$(namespace." + namespace + ")")
	}
	return u.Object
}

// withName returns a copy of an object with another name.
func withName(manifest map[string]any, name string) map[string]any {
	u := unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
	u.SetName(name)
	return u.Object
}

// clusterScoped reports whether an object is in no namespace.
func (w *webhookInit) clusterScoped(u unstructured.Unstructured) bool {
	for _, m := range w.crds {
		group, _, _ := unstructured.NestedString(m.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(m.Object, "spec", "names", "kind")
		if scope, _, _ := unstructured.NestedString(m.Object, "spec", "scope"); group == u.GroupVersionKind().Group && kind == u.GetKind() {
			return scope == "Cluster"
		}
	}
	return kinds.IsCluster(u.GroupVersionKind().GroupKind())
}

// reference returns the fields of a step that name an object.
func reference(manifest map[string]any) yaml.MapSlice {
	u := unstructured.Unstructured{Object: manifest}
	fields := yaml.MapSlice{{Key: "apiVersion", Value: u.GetAPIVersion()}, {Key: "kind", Value: u.GetKind()}, {Key: "name", Value: u.GetName()}}
	if u.GetNamespace() != "" {
		fields = append(fields, yaml.MapItem{Key: "namespace", Value: u.GetNamespace()})
	}
	return fields
}

// document returns a scenario with steps.
func (w *webhookInit) document(name string, h *initWebhook, steps []*initStep) yaml.MapSlice {
	var requests []string
	var given, created []map[string]any
	var when []yaml.MapSlice
	for _, step := range steps {
		requests = append(requests, step.String())
		same := func(known map[string]any) bool { return reflect.DeepEqual(known, step.object) }
		switch {
		case step.given && !slices.ContainsFunc(given, same):
			given = append(given, step.object)
		case !step.given && !slices.ContainsFunc(created, same):
			created = append(created, step.object)
			if step.operation != "CREATE" {
				when = append(when, yaml.MapSlice{{Key: "create", Value: step.object}})
			}
		}
		when = append(when, yaml.MapSlice{step.action, {Key: "then", Value: slices.Concat(step.answers, step.called)}})
	}
	spec := yaml.MapSlice{{Key: "level", Value: framework.Must}, {Key: "requirement", Value: fmt.Sprintf("Requests reach the %s webhook %s: %s.", h.phase, h.fields.Name, strings.Join(requests, ", "))}}
	add := func(key string, value any, has bool) {
		if has {
			spec = append(spec, yaml.MapItem{Key: key, Value: value})
		}
	}
	add("givenFiles", w.given, len(w.given) > 0)
	var namespaces []yaml.MapSlice
	for _, name := range slices.Sorted(maps.Keys(h.namespaces)) {
		namespaces = append(namespaces, yaml.MapSlice{{Key: "name", Value: name}, {Key: "labels", Value: h.namespaces[name]}})
	}
	add("namespaces", namespaces, len(namespaces) > 0)
	add("given", given, len(given) > 0)
	add("when", when, true)
	return yaml.MapSlice{{Key: "apiVersion", Value: scenario.APIVersion}, {Key: "kind", Value: scenario.Kind}, {Key: "metadata", Value: map[string]any{"name": name}}, {Key: "spec", Value: spec}}
}

// documents returns the scenarios of the webhooks with steps.
func (w *webhookInit) documents() (all []yaml.MapSlice) {
	for _, h := range w.all {
		if len(h.steps) > 0 {
			all = append(all, w.document(h.scenario, h, h.steps))
		}
	}
	return all
}

func documentsText(documents []yaml.MapSlice) (string, error) {
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	for _, document := range documents {
		if err := encoder.Encode(document); err != nil {
			return "", err
		}
	}
	return text.String(), encoder.Close()
}
