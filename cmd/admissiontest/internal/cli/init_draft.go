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
	"time"

	"github.com/goccy/go-yaml"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// draft is what init writes.
type draft struct {
	*app
	flags    *initFlags
	folder   string // of the file
	project  *shipped.Project
	files    []string // that the file names
	install  []string // files for --install
	subjects []*draftSubject
	missing  []string
}

// draftSubject is a policy, or a webhook of a configuration.
type draftSubject struct {
	manifest shipped.Manifest
	name     string
	matches  admissionregistrationv1.MatchResources
	phase    framework.Phase // of a webhook
	requests []*draftRequest
}

// draftRequest is a request, with what it got.
type draftRequest struct {
	vary.Request
	name     string
	before   map[string]any // what exists before an UPDATE or DELETE
	object   map[string]any
	expected yaml.MapSlice
}

// changed is the label that an UPDATE adds.
const changed = "example.com/changed"

// read reads the policies, and the webhooks of configurations.
func (d *draft) read() error {
	for _, m := range d.project.Manifests {
		if isRealPolicy(m) {
			one := &draftSubject{manifest: m, name: (&unstructured.Unstructured{Object: m.Object}).GetName()}
			constraints, _, _ := unstructured.NestedMap(m.Object, "spec", "matchConstraints")
			_ = runtime.DefaultUnstructuredConverter.FromUnstructured(constraints, &one.matches) // the API server says what is wrong
			d.subjects = append(d.subjects, one)
		}
		if !isWebhooks(m) {
			continue
		}
		var configuration admissionregistrationv1.MutatingWebhookConfiguration // it has all fields of the other kind
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &configuration); err != nil {
			return misplaced(m, "webhooks", fmt.Errorf("a field has another type: %w", err))
		}
		for _, w := range configuration.Webhooks {
			one := &draftSubject{manifest: m, name: w.Name, phase: framework.Validating}
			if configuration.Kind == "MutatingWebhookConfiguration" {
				one.phase = framework.Mutating
			}
			one.matches.NamespaceSelector, one.matches.ObjectSelector = w.NamespaceSelector, w.ObjectSelector
			for _, rule := range w.Rules {
				one.matches.ResourceRules = append(one.matches.ResourceRules, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
			}
			d.subjects = append(d.subjects, one)
		}
	}
	return nil
}

// misplaced returns a usage error with the position of a field.
func misplaced(m shipped.Manifest, field string, err error) error {
	line, column := m.Position(field)
	return usagef("init: %s:%d:%d: %s: %w", m.File, line, column, m, err)
}

// draftPatience is how long an init waits for a program that does not serve. One that needs longer to start can be started before, with --endpoint.
const draftPatience = 15 * time.Second

// fill finds the requests, sends them, and notes what each got.
func (d *draft) fill(ctx context.Context) (err error) {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer func() { err = d.ended(ctx, running, err) }()
	endpoints, err := d.endpoints()
	if err != nil {
		return err
	}
	f := &d.flags.run
	f.program.Progress = func(string) {}
	on, err := f.program.Provider(f.target.provider(f.program.Progress), end, false).Start(running, target.StartOptions{Endpoints: endpoints, Patience: draftPatience})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close(context.WithoutCancel(ctx))) }()
	s := &draftServer{draft: d, on: on, id: runid.Scenario(on.RunID(), 1)}
	if s.sandbox, err = on.NewSandbox(running, target.SandboxOptions{ID: s.id, Open: true}); err != nil {
		return err
	}
	d.note(fmt.Sprintf("finding requests for %d policies or webhooks", len(d.subjects)))
	if err := s.prepare(running); err != nil {
		return err
	}
	d.note("sending the requests")
	return s.send(running)
}

// draftServer is the API server of an init.
type draftServer struct {
	*draft
	on      target.Target
	id      string // of the Sandbox, and its namespace
	sandbox target.Sandbox
	// admissions are the policies, bindings and webhook configurations that are installed.
	admissions []map[string]any
}

// installAll installs manifests. What the API server refuses is a usage error with its position.
func (s *draftServer) installAll(ctx context.Context, which func(shipped.Manifest) bool) error {
	for _, m := range s.project.Manifests {
		if !which(m) {
			continue
		}
		manifest := runtime.DeepCopyJSON(m.Object)
		if webhooks, _ := manifest["webhooks"].([]any); !s.flags.answers() {
			for _, each := range webhooks {
				unstructured.RemoveNestedField(each.(map[string]any), "clientConfig") //nolint:forcetypeassert // read has decoded it
			}
		}
		var err error
		if u := (unstructured.Unstructured{Object: manifest}); u.GetNamespace() != "" && !slices.Contains(apiserver.SystemNamespaces(), u.GetNamespace()) {
			err = s.namespace(ctx, u.GetNamespace(), nil)
		}
		if err == nil {
			err = s.sandbox.Install(ctx, manifest, nil)
		}
		if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
			cause := status.Status().Details.Causes[0]
			return misplaced(m, cause.Field, fmt.Errorf("%s: %s", cause.Field, cause.Message))
		}
		if err != nil {
			return misplaced(m, "", err)
		}
		if object.IsAdmission(manifest) {
			s.admissions = append(s.admissions, manifest)
		}
	}
	return nil
}

// prepare installs what the policies or webhooks need, finds the requests, and creates what exists before them.
func (s *draftServer) prepare(ctx context.Context) error {
	webhooks := s.subjects[0].phase != ""
	for _, kinds := range [][]string{{"Namespace"}, {"CustomResourceDefinition"}, nil} {
		err := s.installAll(ctx, func(m shipped.Manifest) bool {
			kind := fmt.Sprint(m.Object["kind"])
			first := kind == "Namespace" || kind == "CustomResourceDefinition"
			return !object.IsAdmission(m.Object) && (kinds == nil && !first && !webhooks || slices.Contains(kinds, kind) && (!webhooks || kind != "Namespace"))
		})
		if err != nil {
			return err
		}
	}
	optional := s.on.Optional()
	server := vary.Server{Resources: optional.Resources(), OpenAPI: optional.OpenAPI, Create: func(ctx context.Context, manifest map[string]any) (framework.Result, error) {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
		namespaced, err := s.on.Namespaced(u.GroupVersionKind())
		if err != nil {
			return framework.Result{}, err
		}
		if namespaced {
			u.SetNamespace(s.id)
		}
		return s.sandbox.Send(ctx, framework.Create(u).WithDryRun())
	}}
	known := map[string]bool{}
	for i, one := range s.subjects {
		var rules []admissionregistrationv1.RuleWithOperations
		for _, each := range one.matches.ResourceRules {
			rules = append(rules, each.RuleWithOperations)
		}
		requests, missing, err := server.Requests(ctx, rules)
		if err != nil {
			return err
		}
		for _, line := range missing {
			s.lacks(one, "%s", line)
		}
		if one.selected() != "" && len(requests) > 0 {
			if err := s.namespace(ctx, s.space(i), vary.Selected(one.matches.NamespaceSelector)); err != nil {
				return err
			}
		}
		for _, r := range requests {
			key := fmt.Sprint(r.Operation, r.Kind, vary.Selected(one.matches.NamespaceSelector), vary.Selected(one.matches.ObjectSelector))
			if one.phase == "" && known[key] {
				continue // another policy has the same
			}
			known[key] = true
			if err := s.add(ctx, i, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// namespace creates a namespace.
func (s *draftServer) namespace(ctx context.Context, name string, labels map[string]string) error {
	u := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	u.SetLabels(labels)
	return s.sandbox.Install(ctx, u.Object, nil)
}

// lacks notes what is missing for a policy or webhook.
func (d *draft) lacks(s *draftSubject, format string, args ...any) {
	d.missing = append(d.missing, s.name+": "+fmt.Sprintf(format, args...))
}

// selected is the namespace in which the written requests of a policy or webhook with a namespaceSelector are.
func (s *draftSubject) selected() string {
	if len(vary.Selected(s.matches.NamespaceSelector)) == 0 {
		return ""
	}
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(s.name), "-"), "-")
}

// notInNames matches what names of namespaces and scenarios cannot have.
var notInNames = regexp.MustCompile("[^a-z0-9]+")

// add adds a request of the policy or webhook with an index, and creates what exists before it.
func (s *draftServer) add(ctx context.Context, index int, of vary.Request) error {
	one := s.subjects[index]
	with := func(name string) map[string]any {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(of.Object)}
		u.SetName(name)
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, vary.Selected(one.matches.ObjectSelector))
		u.SetLabels(labels)
		if len(labels) == 0 {
			u.SetLabels(nil)
		}
		return u.Object
	}
	r := &draftRequest{Request: of, name: strings.ToLower(string(of.Operation) + "-" + of.Kind.Kind), object: with(vary.Example)}
	if of.Operation != admission.Create {
		r.object = with("existing-" + strings.ToLower(string(of.Operation)))
		r.before = runtime.DeepCopyJSON(r.object)
	}
	if of.Operation == admission.Update {
		_ = unstructured.SetNestedField(r.object, "yes", "metadata", "labels", changed) // metadata is an object
	}
	one.requests = append(one.requests, r)
	if r.before == nil {
		return nil
	}
	result, err := s.sandbox.Send(ctx, framework.Create(s.real(index, r, r.before)))
	if err == nil && !result.Allowed() {
		err = usagef("init: create the %s of %s: %s", of.Kind.Kind, one.name, result.Status.Message)
	}
	return err
}

// real returns an object as it is sent: under a name that no other policy or webhook has, in its namespace.
func (s *draftServer) real(index int, r *draftRequest, manifest map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
	u.SetName(fmt.Sprintf("%s-%d", u.GetName(), index))
	switch {
	case r.Namespaced && s.subjects[index].selected() != "":
		u.SetNamespace(s.space(index))
	case r.Namespaced:
		u.SetNamespace(s.id)
	}
	return u
}

// space is the namespace on the API server for selected.
func (s *draftServer) space(index int) string { return fmt.Sprintf("%s-%d", s.id, index) }

// send installs the policies or webhooks, sends the requests, and notes what each gets.
func (s *draftServer) send(ctx context.Context) error {
	for _, binding := range s.bindings() {
		if err := s.sandbox.Install(ctx, binding, nil); err != nil {
			return err
		}
		s.admissions = append(s.admissions, binding)
	}
	if err := s.installAll(ctx, func(m shipped.Manifest) bool { return object.IsAdmission(m.Object) }); err != nil {
		return err
	}
	if err := errors.Join(s.on.WaitUntilEffective(ctx, s.admissions), s.sandbox.WaitForParams(ctx)); err != nil {
		return err
	}
	for i, one := range s.subjects {
		var kept []*draftRequest
		for _, r := range one.requests {
			request := framework.Create(s.real(i, r, r.object))
			switch r.Operation {
			case admission.Update:
				u := s.real(i, r, r.before)
				patch, _ := json.Marshal(object.MergePatch(r.before, r.object)) // it comes from JSON
				request = framework.Request{Verb: framework.VerbPatch, Kind: r.Kind, Namespace: u.GetNamespace(), Name: u.GetName(), HTTP: framework.HTTP{Patch: patch, PatchType: types.MergePatchType}}
			case admission.Delete:
				request = framework.Delete(s.real(i, r, r.before))
			}
			request.InProcess = framework.InProcess{} // an API server reads the old object itself
			result, err := s.sandbox.Do(ctx, request)
			if err != nil {
				return err
			}
			if why := one.note(r, result); why != "" {
				s.lacks(one, "%s of %s: %s", r.Operation, r.Kind.Kind, why)
				continue
			}
			kept = append(kept, r)
		}
		one.requests = kept
		s.undenied(one)
	}
	return nil
}

// bindings returns a binding for each policy without one, as a PolicyTest adds it.
func (s *draftServer) bindings() []map[string]any {
	var all []map[string]any
	for _, one := range s.subjects {
		kind, name := one.manifest.Object["kind"], one.name
		bound := slices.ContainsFunc(s.project.Manifests, func(m shipped.Manifest) bool {
			of, _, _ := unstructured.NestedString(m.Object, "spec", "policyName")
			return m.Object["kind"] == fmt.Sprint(kind, "Binding") && of == name
		})
		if one.phase != "" || bound {
			continue
		}
		spec := map[string]any{"policyName": name}
		if kind == "ValidatingAdmissionPolicy" {
			spec["validationActions"] = []any{"Deny"}
		}
		param, _, _ := unstructured.NestedMap(one.manifest.Object, "spec", "paramKind")
		for _, m := range s.project.Manifests {
			if u := (unstructured.Unstructured{Object: m.Object}); len(param) > 0 && u.GetAPIVersion() == param["apiVersion"] && u.GetKind() == param["kind"] {
				spec["paramRef"] = map[string]any{"name": u.GetName(), "namespace": cmp.Or(u.GetNamespace(), s.id), "parameterNotFoundAction": "Deny"}
			}
		}
		all = append(all, map[string]any{"apiVersion": one.manifest.Object["apiVersion"], "kind": fmt.Sprint(kind, "Binding"), "metadata": map[string]any{"name": name}, "spec": spec})
	}
	return all
}

// denial matches the message of a denial by a policy or webhook.
var denial = regexp.MustCompile(`(?s)denied (?:the )?request: (.*)$`)

// ofRun matches what is not the same in each run, and ends a line: the name of a namespace. It also matches what begins a placeholder.
var ofRun = regexp.MustCompile(fmt.Sprintf(`at-[a-z0-9]{%d}(-[0-9]{5}(-[0-9]+)?)?|\$\(|\n`, runid.Len))

// lasting returns the longest part of a string that is the same in each run.
func lasting(text string) string {
	longest := ""
	for _, part := range ofRun.Split(text, -1) {
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// note notes what a request got. It returns why that is no expectation, or "".
func (s *draftSubject) note(r *draftRequest, result framework.Result) (why string) {
	message, mutated := "", map[string]any(nil)
	if found := denial.FindStringSubmatch(result.Status.Message); found != nil && !result.Allowed() {
		message = lasting(found[1])
	}
	if result.Allowed() && r.Operation != admission.Delete && r.Kind.Kind != "Secret" {
		mutated = r.changedBy(result.Fields())
	}
	var warnings []string
	for _, text := range result.Warnings {
		if _, said, of := strings.Cut(text, "' with binding '"); of && s.phase == "" {
			_, text, _ = strings.Cut(said, "': ")
		}
		warnings = append(warnings, lasting(text))
	}
	if s.phase == "" {
		if !result.Allowed() && message == "" {
			return "it is refused: " + result.Status.Message
		}
		r.expected = fieldsOf("denied", message, "warned", warnings, "mutated", mutated)
		return ""
	}
	at := slices.IndexFunc(result.Trace, func(c framework.Call) bool {
		return c.Webhook == s.name && c.Phase == s.phase && c.Request()["operation"] == string(r.Operation)
	})
	switch {
	case at < 0:
		return "it does not reach the webhook" + strings.TrimSuffix(": "+result.Status.Message, ": ")
	case result.Trace[at].Response == nil:
		return "the webhook gives no answer that an API server understands: " + result.Trace[at].Answer
	}
	calls := fieldsOf("include", []any{fieldsOf("webhook", s.name, "phase", s.phase)})
	r.expected = fieldsOf("code", result.Status.Code, "message", message, "warnings", warnings, "object", mutated, "calls", calls)
	return ""
}

// changedBy returns what a response has that the request did not ask for, as an expectation. Nil means nothing, or something that is not
// the same in each run.
func (r *draftRequest) changedBy(response map[string]any) map[string]any {
	before, after := vary.OfClient(r.Response), vary.OfClient(response)
	sent, _, _ := unstructured.NestedMap(r.object, "metadata")
	got, _, _ := unstructured.NestedMap(after, "metadata")
	for _, set := range []string{"name", "namespace"} {
		delete(sent, set)
		delete(got, set)
	}
	before["metadata"], after["metadata"] = sent, got
	changes := vary.Expected(before, after)
	if metadata, _ := changes["metadata"].(map[string]any); len(metadata) == 0 {
		delete(changes, "metadata")
	}
	text, err := json.Marshal(changes)
	if err != nil || ofRun.Match(text) || len(changes) == 0 {
		return nil
	}
	return changes
}

// undenied notes the validations of a policy that no request fails.
func (d *draft) undenied(s *draftSubject) {
	validations, _, _ := unstructured.NestedSlice(s.manifest.Object, "spec", "validations")
	for i, each := range validations {
		fields, _ := each.(map[string]any)
		expression, message := strings.Join(strings.Fields(fmt.Sprint(fields["expression"])), " "), fmt.Sprint(fields["message"])
		denied := slices.ContainsFunc(s.requests, func(r *draftRequest) bool {
			text := fmt.Sprint(r.expected)
			return strings.Contains(text, message) || strings.Contains(text, "failed expression: "+expression)
		})
		if !denied {
			d.lacks(s, "a request that validations[%d] denies: %s", i, expression)
		}
	}
}

// fieldsOf returns a map of keys and values, which alternate, in their order. It leaves out empty values.
func fieldsOf(pairs ...any) (all yaml.MapSlice) {
	for i := 0; i+1 < len(pairs); i += 2 {
		switch value := reflect.ValueOf(pairs[i+1]); {
		case !value.IsValid() || value.IsZero():
		case value.Kind() == reflect.Map && value.Len() == 0:
		default:
			all = append(all, yaml.MapItem{Key: pairs[i], Value: pairs[i+1]})
		}
	}
	return all
}

// policyTest returns the PolicyTest.
func (d *draft) policyTest() yaml.MapSlice {
	namespaces, known := map[string]any{}, map[string]int{}
	var cases []yaml.MapSlice
	for _, one := range d.subjects {
		for _, r := range one.requests {
			if known[r.name]++; known[r.name] > 1 {
				r.name += fmt.Sprintf("-%d", known[r.name])
			}
			operation, old, namespace := "", any(nil), ""
			switch r.Operation {
			case admission.Delete:
				operation = string(r.Operation)
			case admission.Update:
				old = r.before
			}
			if r.Namespaced && one.selected() != "" {
				namespace = one.selected()
				namespaces[namespace] = vary.Selected(one.matches.NamespaceSelector)
			}
			cases = append(cases, append(fieldsOf("name", r.name, "operation", operation, "namespace", namespace, "old", old, "object", r.object), r.expected...))
		}
	}
	return fieldsOf("apiVersion", scenario.APIVersion, "kind", scenario.KindPolicyTest, "policies", d.files, "namespaces", namespaces, "cases", cases)
}

// scenarios returns a Scenario for each request to a webhook.
func (d *draft) scenarios() (all []yaml.MapSlice) {
	area := cmp.Or(notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(filepath.Base(d.flags.to), filepath.Ext(d.flags.to))), ""), "webhooks")
	for _, one := range d.subjects {
		for _, r := range one.requests {
			name := fmt.Sprintf("%s.%s.%s.%s", area, one.name, one.phase, r.name)
			all = append(all, fieldsOf("apiVersion", scenario.APIVersion, "kind", scenario.Kind, "metadata", fieldsOf("name", name), "spec", one.spec(r, d.files)))
		}
	}
	return all
}

// spec returns the spec of the Scenario for a request.
func (s *draftSubject) spec(r *draftRequest, files []string) yaml.MapSlice {
	located := func(manifest map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(manifest)}
		switch {
		case !r.Namespaced:
			u.SetName("$(id)-" + u.GetName())
		case s.selected() != "":
			u.SetNamespace("$(namespace." + s.selected() + ")")
		}
		return u
	}
	var namespaces, given []any
	if r.Namespaced && s.selected() != "" {
		namespaces = []any{fieldsOf("name", s.selected(), "labels", vary.Selected(s.matches.NamespaceSelector))}
	}
	step := fieldsOf("create", located(r.object).Object)
	if r.before != nil {
		u := located(r.before)
		given = []any{u.Object}
		reference := fieldsOf("apiVersion", u.GetAPIVersion(), "kind", u.GetKind(), "name", u.GetName(), "namespace", u.GetNamespace())
		step = fieldsOf("delete", reference)
		if r.Operation == admission.Update {
			step = fieldsOf("patch", append(reference, fieldsOf("merge", object.MergePatch(r.before, r.object))...))
		}
	}
	requirement := fmt.Sprintf("A %s of a %s reaches the %s webhook %s.", r.Operation, r.Kind.Kind, s.phase, s.name)
	return fieldsOf("level", framework.Must, "requirement", requirement, "givenFiles", files, "namespaces", namespaces, "given", given, "when", []any{append(step, fieldsOf("then", r.expected)...)})
}
