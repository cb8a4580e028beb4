package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/shipped"
	"github.com/admissiontest/admissiontest/internal/vary"
)

const (
	// toStdout is the value of --to for the standard output.
	toStdout = "-"
	// example is the name of an object that init writes, and the value of a label that a selector wants to exist.
	example = "example"
	// changedLabel is the label that an UPDATE adds.
	changedLabel = "example.com/changed"
	// mostKinds limits the kinds for which init writes requests to a policy or webhook.
	mostKinds = 8
)

func (a *app) initCommand() *cobra.Command {
	to := ""
	command := &cobra.Command{
		Use:   "init FILE|DIR ...",
		Short: "Write a first PolicyTest for policies, or first scenarios for webhooks",
		Long: `Write a first PolicyTest for ValidatingAdmissionPolicies and MutatingAdmissionPolicies, or a
scenario for each request to the webhooks of configurations. There is a request for each kind and
operation that the rules match, and one for each message of a validation. The objects have only a
name, and the labels that selectors ask for: complete them. Then run the file, and compare what the
requests get with what you want.

The files also have what the policies or webhooks need: bindings, params,
CustomResourceDefinitions. A policy without a binding gets one from the PolicyTest. A file that exists
is not overwritten.`,
		Example: `  admissiontest init policy.yaml
  admissiontest init config/policy crd.yaml params.yaml --to tests/policytest.yaml
  admissiontest init config/webhook/manifests.yaml crd.yaml`,
	}
	command.RunE = a.reading(func(_ context.Context, args []string) error { return a.init(to, args) })
	command.Flags().StringVar(&to, "to", "", "file to write; - means standard output (default: policytest.yaml, or webhooks.yaml)")
	return command
}

// init implements the command init.
func (a *app) init(to string, args []string) error {
	if len(args) == 0 {
		return usagef("init: no arguments; want files or folders with policies, or with webhook configurations")
	}
	project, err := shipped.Read(args...)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(project.Manifests, isWebhooks)
	policy := slices.IndexFunc(project.Manifests, isRealPolicy)
	switch {
	case at >= 0 && policy >= 0:
		one, other := project.Manifests[at], project.Manifests[policy]
		return usagef("init: %s:%d has webhooks and %s:%d policies; want files with one of both: run init once for each", one.File, one.Line, other.File, other.Line)
	case at < 0 && policy < 0:
		return usagef("init: there is no ValidatingAdmissionPolicy or MutatingAdmissionPolicy, and no webhook configuration")
	}
	webhooks := at >= 0
	if to == "" && webhooks {
		to = "webhooks.yaml"
	}
	to = cmp.Or(to, "policytest.yaml")
	if err := checkTo(to); err != nil {
		return err
	}
	d := &draft{to: to, project: project}
	if err := d.read(); err != nil {
		return err
	}
	text, err := d.text(webhooks)
	switch {
	case err != nil:
		return err
	case to == toStdout:
		_, err = fmt.Fprint(a.Stdout, text)
		return err
	}
	if err := writeNew(to, text); err != nil {
		return usagef("--to: %w", err)
	}
	a.note(fmt.Sprintf("%s: complete its objects; to run it:\n%s", to, d.command(webhooks)))
	return nil
}

// checkTo checks --to, unless it is the standard output.
func checkTo(to string) error {
	if to == toStdout {
		return nil
	}
	if _, err := os.Lstat(to); err == nil {
		return usagef("--to: %s exists: want another file", to)
	}
	if info, err := os.Stat(filepath.Dir(to)); err != nil || !info.IsDir() {
		return usagef("--to: %s is no folder; want a file in a folder that exists", filepath.Dir(to))
	}
	return nil
}

// writeNew writes a file that does not exist.
func writeNew(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file of a project, not a secret
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// isRealPolicy reports whether a manifest is a policy, and no binding.
func isRealPolicy(m shipped.Manifest) bool {
	return object.IsPolicy(m.Object) && !strings.HasSuffix(fmt.Sprint(m.Object["kind"]), "Binding")
}

func isWebhooks(m shipped.Manifest) bool {
	return m.Object["kind"] == "MutatingWebhookConfiguration" || m.Object["kind"] == "ValidatingWebhookConfiguration"
}

// draft is what init writes.
type draft struct {
	to       string
	project  *shipped.Project
	subjects []*draftSubject
	missing  []string
}

// draftSubject is a policy, or a webhook of a configuration.
type draftSubject struct {
	manifest shipped.Manifest
	name     string
	matches  admissionregistrationv1.MatchResources
	phase    framework.Phase // of a webhook
	requests []draftRequest
}

// draftRequest is a request that the rules match.
type draftRequest struct {
	name       string
	operation  admission.Operation
	namespaced bool
	// before exists before an UPDATE or DELETE. It is nil for a CREATE.
	before, object map[string]any
}

// read reads the policies, and the webhooks of configurations, and finds requests to them.
func (d *draft) read() error {
	for _, m := range d.project.Manifests {
		if isRealPolicy(m) {
			one := &draftSubject{manifest: m, name: (&unstructured.Unstructured{Object: m.Object}).GetName()}
			constraints, _, _ := unstructured.NestedMap(m.Object, "spec", "matchConstraints")
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(constraints, &one.matches); err != nil {
				return misplaced(m, "spec.matchConstraints", err)
			}
			d.subjects = append(d.subjects, one)
		}
		if !isWebhooks(m) {
			continue
		}
		var configuration admissionregistrationv1.MutatingWebhookConfiguration // it has all fields of the other kind
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &configuration); err != nil {
			return misplaced(m, "webhooks", err)
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
	served := d.served()
	for _, one := range d.subjects {
		d.find(one, served)
	}
	return nil
}

// misplaced returns a usage error with the position of a field that has another type.
func misplaced(m shipped.Manifest, field string, err error) error {
	line, column := m.Position(field)
	return usagef("init: %s:%d:%d: %s: a field has another type: %w", m.File, line, column, m, err)
}

// served returns the resources of the project's CustomResourceDefinitions, then those that a kube-apiserver serves and stores by default,
// each in its first version, without subresources.
func (d *draft) served() (all []metav1.APIResource) {
	var lists []*metav1.APIResourceList
	for _, m := range d.project.Manifests {
		if m.Object["kind"] == "CustomResourceDefinition" {
			lists = append(lists, kinds.OfDefinition(m.Object)...)
		}
	}
	custom := len(lists)
	for i, list := range append(lists, kinds.BuiltIn()...) {
		of, _ := schema.ParseGroupVersion(list.GroupVersion) // what cannot be read is in no group, and no rule matches it
		for _, each := range list.APIResources {
			if strings.Contains(each.Name, "/") || i >= custom && len(each.Verbs) == 0 {
				continue
			}
			each.Group, each.Version = of.Group, of.Version
			all = append(all, each)
		}
	}
	return all
}

// find finds the requests that the rules of a policy or webhook match.
func (d *draft) find(s *draftSubject, served []metav1.APIResource) {
	match := func(of metav1.APIResource, operations ...admission.Operation) bool {
		return slices.ContainsFunc(s.matches.ResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
			return vary.Matches(rule.RuleWithOperations, of, operations...)
		})
	}
	operations := []admission.Operation{admission.Create, admission.Update, admission.Delete}
	var chosen []metav1.APIResource
	for _, each := range served {
		known := slices.ContainsFunc(chosen, func(r metav1.APIResource) bool { return r.Group == each.Group && r.Name == each.Name })
		if !known && match(each, operations...) {
			chosen = append(chosen, each)
		}
	}
	if len(chosen) == 0 {
		d.missing = append(d.missing, s.name+": the rules match no kind of Kubernetes, and none of the CustomResourceDefinitions in the files")
	}
	if count := len(chosen); count > mostKinds {
		isConfigMap := func(r metav1.APIResource) bool { return r.Group == "" && r.Name == "configmaps" }
		at := max(0, slices.IndexFunc(chosen, isConfigMap)) // they stand for all, if they are among them
		chosen = chosen[at : at+1]
		d.missing = append(d.missing, fmt.Sprintf("%s: the rules match %d kinds: requests are only written for %s", s.name, count, chosen[0].Name))
	}
	for _, each := range chosen {
		for _, operation := range operations {
			if match(each, operation) {
				s.requests = append(s.requests, s.request(operation, each))
			}
		}
	}
}

// request returns a request for a resource.
func (s *draftSubject) request(operation admission.Operation, of metav1.APIResource) draftRequest {
	made := func(name string, more map[string]string) map[string]any {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetAPIVersion(schema.GroupVersion{Group: of.Group, Version: of.Version}.String())
		u.SetKind(of.Kind)
		u.SetName(name)
		labels := labelsOf(s.matches.ObjectSelector)
		maps.Copy(labels, more)
		if len(labels) > 0 {
			u.SetLabels(labels)
		}
		return u.Object
	}
	r := draftRequest{name: strings.ToLower(string(operation) + "-" + of.Kind), operation: operation, namespaced: of.Namespaced}
	switch existing := "existing-" + strings.ToLower(string(operation)); operation {
	case admission.Create:
		r.object = made(example, nil)
	case admission.Update:
		r.before, r.object = made(existing, nil), made(existing, map[string]string{changedLabel: "yes"})
	default:
		r.before = made(existing, nil)
		r.object = r.before
	}
	return r
}

// labelsOf returns labels that a selector asks for.
func labelsOf(selector *metav1.LabelSelector) map[string]string {
	labels := map[string]string{}
	if selector == nil {
		return labels
	}
	maps.Copy(labels, selector.MatchLabels)
	for _, each := range selector.MatchExpressions {
		switch {
		case each.Operator == metav1.LabelSelectorOpIn && len(each.Values) > 0:
			labels[each.Key] = each.Values[0]
		case each.Operator == metav1.LabelSelectorOpExists:
			labels[each.Key] = example
		}
	}
	return labels
}

// notInNames matches what names of namespaces and scenarios cannot have.
var notInNames = regexp.MustCompile("[^a-z0-9]+")

// namespace is the namespace of a request to a policy or webhook with a namespaceSelector. Empty is that of the test.
func (s *draftSubject) namespace(r draftRequest) string {
	if !r.namespaced || len(labelsOf(s.matches.NamespaceSelector)) == 0 {
		return ""
	}
	return strings.Trim(notInNames.ReplaceAllString(strings.ToLower(s.name), "-"), "-")
}

// command is the command that runs the file. A run installs webhooks, and a PolicyTest names the files of its policies.
func (d *draft) command(webhooks bool) string {
	args := []string{"admissiontest", "run", d.to}
	if !webhooks {
		return shellescape.QuoteCommand(args)
	}
	for _, path := range d.files() {
		args = append(args, "--install", path)
	}
	return shellescape.QuoteCommand(args) + " -- PROGRAM"
}

// files returns the files of the project.
func (d *draft) files() (all []string) {
	for _, m := range d.project.Manifests {
		if !slices.Contains(all, m.File) {
			all = append(all, m.File)
		}
	}
	return all
}

// text returns the content of the file.
func (d *draft) text(webhooks bool) (string, error) {
	write := d.policyTest
	if webhooks {
		write = d.scenarios
	}
	documents, err := write()
	switch {
	case err != nil:
		return "", usagef("init: %w", err)
	case len(documents) == 0:
		return "", withCode(exitNothing, fmt.Errorf("init: found no request:\n%s", strings.Join(d.missing, "\n")))
	}
	var text strings.Builder
	text.WriteString("# Written by admissiontest init. TODO: complete the objects, and check what is expected. Run this file:\n# " + d.command(webhooks) + "\n")
	encoder := yaml.NewEncoder(&text)
	for _, document := range documents {
		if err := encoder.Encode(document); err != nil {
			return "", fmt.Errorf("init: %w", err)
		}
	}
	if err := encoder.Close(); err != nil {
		return "", fmt.Errorf("init: %w", err)
	}
	if !webhooks {
		text.WriteString("# contract: {} # also checks the rules that hold for every policy\n")
	}
	for _, line := range d.missing {
		text.WriteString("# TODO: " + strings.Join(strings.Fields(line), " ") + "\n")
	}
	return text.String(), nil
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

// policyTest returns the PolicyTest, or none without a case.
func (d *draft) policyTest() ([]yaml.MapSlice, error) {
	namespaces, known := map[string]any{}, map[string]int{}
	var cases []yaml.MapSlice
	add := func(s *draftSubject, r draftRequest, name, expected string, value any) {
		if known[name]++; known[name] > 1 {
			name += fmt.Sprintf("-%d", known[name])
		}
		operation, old, namespace := "", map[string]any(nil), s.namespace(r)
		switch r.operation {
		case admission.Delete:
			operation = string(r.operation)
		case admission.Update:
			old = r.before
		}
		if namespace != "" {
			namespaces[namespace] = labelsOf(s.matches.NamespaceSelector)
		}
		cases = append(cases, fieldsOf("name", name, "operation", operation, "namespace", namespace, "old", old, "object", r.object, expected, value))
	}
	for _, one := range d.subjects {
		for _, r := range one.requests {
			add(one, r, r.name, "allowed", true)
		}
		for i, message := range d.messages(one) {
			if message != "" && len(one.requests) > 0 {
				add(one, one.requests[0], fmt.Sprintf("denied-by-validation-%d", i), "denied", message)
			}
		}
	}
	if len(cases) == 0 {
		return nil, nil
	}
	var files []string
	for _, file := range d.files() {
		from, err := filepath.Abs(filepath.Dir(d.to))
		to, wrong := filepath.Abs(file)
		relative, notBelow := filepath.Rel(from, to)
		if err := errors.Join(err, wrong, notBelow); err != nil {
			return nil, err
		}
		files = append(files, filepath.ToSlash(relative))
	}
	return []yaml.MapSlice{fieldsOf("apiVersion", scenario.APIVersion, "kind", scenario.KindPolicyTest, "policies", files, "namespaces", namespaces, "cases", cases)}, nil
}

// messages returns the messages of the validations of a policy. The message is empty where an expression makes it: such a validation is missing.
func (d *draft) messages(s *draftSubject) (all []string) {
	validations, _, _ := unstructured.NestedSlice(s.manifest.Object, "spec", "validations")
	for i, each := range validations {
		fields, _ := each.(map[string]any)
		message, _ := fields["message"].(string)
		if message == "" {
			d.missing = append(d.missing, fmt.Sprintf("%s: a case that validations[%d] denies: %v", s.name, i, fields["expression"]))
		}
		all = append(all, message)
	}
	return all
}

// scenarios returns a Scenario for each request to a webhook.
func (d *draft) scenarios() (all []yaml.MapSlice, err error) {
	area := cmp.Or(notInNames.ReplaceAllString(strings.ToLower(strings.TrimSuffix(filepath.Base(d.to), filepath.Ext(d.to))), ""), "webhooks")
	for _, one := range d.subjects {
		for _, r := range one.requests {
			name := fmt.Sprintf("%s.%s.%s.%s", area, one.name, one.phase, r.name)
			all = append(all, fieldsOf("apiVersion", scenario.APIVersion, "kind", scenario.Kind, "metadata", fieldsOf("name", name), "spec", one.spec(r)))
		}
	}
	return all, nil
}

// spec returns the spec of the Scenario for a request.
func (s *draftSubject) spec(r draftRequest) yaml.MapSlice {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(r.object)}
	var namespaces, given []any
	switch namespace := s.namespace(r); {
	case !r.namespaced:
		u.SetName("$(id)-" + u.GetName())
	case namespace != "":
		u.SetNamespace("$(namespace." + namespace + ")")
		namespaces = []any{fieldsOf("name", namespace, "labels", labelsOf(s.matches.NamespaceSelector))}
	}
	step := fieldsOf("create", u.Object)
	if r.before != nil {
		before := u.DeepCopy()
		before.SetLabels((&unstructured.Unstructured{Object: r.before}).GetLabels())
		given = []any{before.Object}
		reference := fieldsOf("apiVersion", u.GetAPIVersion(), "kind", u.GetKind(), "name", u.GetName(), "namespace", u.GetNamespace())
		step = fieldsOf("delete", reference)
		if r.operation == admission.Update {
			step = fieldsOf("patch", append(reference, fieldsOf("merge", object.MergePatch(r.before, r.object))...))
		}
	}
	calls := fieldsOf("include", []any{fieldsOf("webhook", s.name, "phase", s.phase)})
	requirement := fmt.Sprintf("A %s of a %s reaches the %s webhook %s.", r.operation, u.GetKind(), s.phase, s.name)
	return fieldsOf("level", framework.Must, "requirement", requirement, "namespaces", namespaces, "given", given, "when", []any{append(step, fieldsOf("then", fieldsOf("calls", calls))...)})
}
