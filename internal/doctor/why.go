package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
)

// ErrUnknownKind marks a request for a kind or subresource whose resource is not known.
var ErrUnknownKind = errors.New("its resource is not known")

// Question is a request for which Why returns who decides.
type Question struct {
	// Object is the object of the request: of a create, an update or a delete, or the owner of a subresource.
	Object map[string]any
	// OldObject is the stored object of an update. Nil means that it is the same.
	OldObject map[string]any
	// Operation is CREATE, UPDATE, DELETE or CONNECT. Empty means CREATE, or for a subresource the operation that it has.
	Operation string
	// Subresource is scale, status, exec and so on. Empty means the object itself.
	Subresource string
	// User sends the request. The zero value is an administrator.
	User framework.User
}

// Answer says who decides about a request. As JSON, its keys are frozen.
type Answer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Request is one line about the request.
	Request string `json:"request"`
	// Plugins are the admission plugins that a kube-apiserver enables by default, in the order in which they are called. A server can
	// have others.
	Plugins []string `json:"plugins"`
	// Steps are the webhooks and policies, in the order in which a kube-apiserver calls them.
	Steps []Step `json:"steps"`
}

// Step is what one webhook, or a policy with one of its bindings, does for the request. See reach.Finding for the fields.
type Step struct {
	// Plugin is the admission plugin that calls it.
	Plugin  string       `json:"plugin"`
	Kind    string       `json:"kind"`
	Name    string       `json:"name,omitempty"`
	Webhook string       `json:"webhook,omitempty"`
	Binding string       `json:"binding,omitempty"`
	Effect  reach.Effect `json:"effect"`
	Reason  reach.Reason `json:"reason,omitempty"`
	Text    string       `json:"text"`

	subject string
	refuses bool
}

// defaultPlugins are enabled by default in kube-apiserver 1.37, in this order
// (k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go).
func defaultPlugins() []string {
	return []string{
		"NamespaceLifecycle", "LimitRanger", "ServiceAccount", "TaintNodesByCondition", "PodSecurity", "Priority", "DefaultTolerationSeconds", "DefaultStorageClass",
		"StorageObjectInUseProtection", "PodGroupProtection", "PersistentVolumeClaimResize", "RuntimeClass", "CertificateApproval", "CertificateSigning", "ClusterTrustBundleAttest",
		"CertificateSubjectRestriction", "DefaultIngressClass", "PodTopologyLabels", "NodeDeclaredFeatureValidator", "PodResizeValidator",
		"MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook", "ResourceQuota",
	}
}

// Why returns which webhooks, policies and bindings of the Input decide about a request, and why the others do not. It returns an
// ErrUnknownKind if neither Kubernetes nor a CustomResourceDefinition of the Input defines the kind.
func Why(ctx context.Context, input Input, q Question) (*Answer, error) {
	w, err := newWorld(ctx, input)
	if err != nil {
		return nil, err
	}
	request, err := w.requestOf(q)
	if err != nil {
		return nil, err
	}
	findings, err := w.admission.Explain(ctx, request.Request, w)
	if err != nil {
		return nil, err
	}
	answer := &Answer{APIVersion: "admissiontest.dev/v1alpha1", Kind: "Why", Request: request.text + " by " + request.User.Name, Plugins: defaultPlugins(), Steps: []Step{}}
	for _, f := range findings {
		plugin := strings.Replace(f.Kind, "WebhookConfiguration", "AdmissionWebhook", 1)
		answer.Steps = append(answer.Steps, Step{plugin, f.Kind, f.Name, f.Webhook, f.Binding, f.Effect, f.Reason, f.Text, f.Subject(), f.Effect == reach.EffectRefused || f.Effect == reach.EffectInvalid && w.denies(f)})
	}
	slices.SortStableFunc(answer.Steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(slices.Index(answer.Plugins, a.Plugin), slices.Index(answer.Plugins, b.Plugin)), cmp.Compare(a.Name, b.Name))
	})
	answer.endAtRefusal()
	return answer, nil
}

// reasonRefused is the reason of what an API server does not get to.
const reasonRefused reach.Reason = "Refused"

// endAtRefusal marks what an API server does not get to, because the request is refused before: the plugins that follow, and webhooks of the
// same plugin. The match conditions of all validating webhooks are evaluated before the first one is called.
func (a *Answer) endAtRefusal() {
	at := slices.IndexFunc(a.Steps, func(s Step) bool { return s.refuses })
	if at < 0 {
		return
	}
	refusal := a.Steps[at]
	for i := range a.Steps {
		s := &a.Steps[i]
		reached := s.Plugin != refusal.Plugin && i < at || s.Plugin == refusal.Plugin && (s.Webhook == "" || i == at || i < at && s.Plugin == "MutatingAdmissionWebhook")
		if !reached && s.Effect != reach.EffectNone {
			s.Effect, s.Reason, s.Text = reach.EffectNone, reasonRefused, "the request is refused before, because of "+refusal.subject
		}
	}
}

// requestOf returns the request of a question.
func (w *world) requestOf(q Question) (probe, error) {
	object := &unstructured.Unstructured{Object: q.Object}
	kind := object.GroupVersionKind()
	known := w.Of(kind)
	if parents := w.parentsOf(kind); len(parents) > 0 {
		return probe{}, fmt.Errorf("find the resource of %s %s: %w: it is the object of requests for a subresource: give the %s", kind.GroupVersion(), kind.Kind, ErrUnknownKind, strings.Join(parents, ", or the "))
	}
	if known == nil {
		return probe{}, fmt.Errorf("find the resource of %s %s: %w: give its CustomResourceDefinition with --configurations, or a cluster that serves it", kind.GroupVersion(), kind.Kind, ErrUnknownKind)
	}
	if q.Subresource != "" && !slices.Contains(known.Subresources, q.Subresource) {
		return probe{}, fmt.Errorf("find the subresource %s of %s: %w; there are %s", q.Subresource, known.Resource, ErrUnknownKind, strings.Join(known.Subresources, ", "))
	}
	if q.Operation == "" {
		q.Operation = "CREATE"
		if q.Subresource != "" {
			at := slices.IndexFunc([]string{"UPDATE", "CREATE", "CONNECT"}, func(o string) bool { return possible(q.Subresource, o) })
			q.Operation = []string{"UPDATE", "CREATE", "CONNECT"}[at]
		}
	}
	if !possible(q.Subresource, q.Operation) {
		return probe{}, fmt.Errorf("make a request %s for %s/%s: there are no such requests", q.Operation, known.Resource, q.Subresource)
	}
	if q.User.Name == "" {
		q.User = userOf("")
	}
	namespace := object.GetNamespace()
	if namespace == "" && known.Namespaced {
		namespace = "default"
		object = object.DeepCopy()
		object.SetNamespace(namespace)
	}
	resource := known.GroupVersionResource
	r := reach.Request{Operation: q.Operation, Resource: resource, Subresource: q.Subresource, Kind: w.KindFor(resource, q.Subresource), Namespace: namespace, Name: object.GetName(), User: q.User}
	w.setObjects(&r, bodyOf(object, r.Kind), q.OldObject)
	if q.Operation == "CREATE" && r.Name == "" && object.GetGenerateName() != "" {
		generated := object.DeepCopy()
		generated.SetName(object.GetGenerateName() + "xxxxx")
		r.Object = generated.Object
	}
	text := q.Operation + " " + known.Resource
	if q.Subresource != "" {
		text += "/" + q.Subresource
	}
	if text += " " + object.GetName(); namespace != "" {
		text += " in " + namespace
	}
	return probeOf(r, text), nil
}

// parentsOf returns the kinds, with their subresources, whose requests have objects of another kind: a Pod with eviction for Eviction.
func (w *world) parentsOf(kind schema.GroupVersionKind) (all []string) {
	for _, r := range w.All() {
		for _, subresource := range r.Subresources {
			if parent := r.Kind.Kind + " with --subresource " + subresource; r.Kind != kind && w.KindFor(r.GroupVersionResource, subresource) == kind && !slices.Contains(all, parent) {
				all = append(all, parent)
			}
		}
	}
	return all
}

// bodyOf returns the object that admission gets: of the kind of the subresource.
func bodyOf(object *unstructured.Unstructured, kind schema.GroupVersionKind) map[string]any {
	if object.GroupVersionKind() == kind {
		return object.Object
	}
	body := map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind}
	if strings.HasSuffix(kind.Kind, "Options") {
		return body
	}
	body["metadata"] = map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	if replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas"); found && err == nil && kind.Kind == "Scale" {
		body["spec"] = map[string]any{"replicas": replicas}
	}
	return body
}

// Text returns the answer for people.
func (a *Answer) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", a.Request)
	first := slices.Index(a.Plugins, "MutatingAdmissionPolicy")
	fmt.Fprintf(&out, "  first      the other plugins, in kube-apiserver 1.37 by default: %s\n", strings.Join(a.Plugins[:first], ", "))
	for i, s := range a.Steps {
		if i == 0 || s.Plugin != a.Steps[i-1].Plugin {
			fmt.Fprintf(&out, "  %s\n", s.Plugin)
		}
		fmt.Fprintf(&out, "    %-8s %s: %s\n", s.Effect, s.subject, s.Text)
	}
	fmt.Fprintf(&out, "  last       ResourceQuota\n")
	return out.String()
}
