package ready

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// mostProbes limits the dry runs that are tried for one webhook or policy.
const mostProbes = 32

// cluster is the reach.Cluster of an API server, as it was at the last derive.
type cluster struct {
	*client.Client
	runtime.EquivalentResourceMapper

	user      framework.User
	resources *client.Resources
	spaces    []unstructured.Unstructured
	admission *reach.Admission // what Wait waits for
}

// Namespace implements reach.Cluster.
func (c *cluster) Namespace(_ context.Context, name string) (map[string]any, error) {
	for _, space := range c.spaces {
		if space.GetName() == name {
			return space.Object, nil
		}
	}
	return nil, nil
}

// Params implements reach.Cluster. It reads none: what depends on them is tried.
func (*cluster) Params(context.Context, schema.GroupVersionKind) (reach.Params, error) {
	return reach.Params{}, errors.New("params are not read")
}

// Convert implements reach.Cluster. The objects are made up, so only their version changes.
func (*cluster) Convert(_ context.Context, object map[string]any, kind schema.GroupVersionKind) (map[string]any, error) {
	converted := maps.Clone(object)
	converted["apiVersion"], converted["kind"] = kind.ToAPIVersionAndKind()
	return converted, nil
}

// derive finds dry runs for each subject that has none. If there are none, the reason says why.
func (w *waiter) derive(ctx context.Context, manifests []map[string]any) (err error) {
	for _, s := range w.subjects {
		if len(s.rules) == 0 || len(s.probes) > 0 || time.Since(s.derived) < time.Second {
			continue
		}
		if w.admission, err = reach.New(manifests); err != nil {
			return err
		}
		bases, reason, err := w.bases(ctx, s)
		if err != nil {
			return err
		}
		found := map[reach.Effect][]client.HTTPRequest{}
		for _, object := range bases {
			finding, request := w.explain(ctx, s, object)
			found[finding.Effect] = append(found[finding.Effect], request)
			reason = finding.Text
		}
		for _, effect := range []reach.Effect{reach.EffectCalled, reach.EffectMutates, reach.EffectInvalid, reach.EffectRefused, reach.EffectUnknown} {
			s.probes = append(s.probes, found[effect]...)
		}
		s.probes = s.probes[:min(len(s.probes), mostProbes)]
		if s.derived, s.Unknown = time.Now(), len(s.probes) == 0; s.Unknown {
			s.Reason = "no creation is known that it decides about: " + reason
		}
	}
	return nil
}

// bases returns the given objects, and objects that the rules of a subject match. For a policy that validates, it
// varies what the expressions read.
func (w *waiter) bases(ctx context.Context, s *subject) (all []map[string]any, missing string, err error) {
	lists, err := w.ResourceLists(ctx)
	if err != nil {
		return nil, "", err
	}
	w.resources, w.EquivalentResourceMapper = client.NewResources(lists...), reach.NewMapper(lists)
	spaces, err := w.ListObjects(ctx, client.Resource{GroupVersionResource: client.Namespaces()}, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	w.spaces = spaces.Items
	var rules []admissionregistrationv1.RuleWithOperations
	for _, rule := range s.rules {
		if slices.Contains(rule.Operations, admissionregistrationv1.Create) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) {
			rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
			rules = append(rules, rule)
		}
	}
	requests, lacks, err := vary.Server{Resources: w.resources.All(), OpenAPI: w.OpenAPI, Create: w.create}.Requests(ctx, rules)
	all = slices.Clone(w.Objects)
	for _, one := range requests {
		object := unstructured.Unstructured{Object: vary.OfClient(one.Response)}
		object.SetNamespace("")
		if len(s.labels) > 0 {
			object.SetLabels(s.labels)
		}
		all = append(all, object.Object)
	}
	if s.policy == nil {
		return all, strings.Join(lacks, "; "), err
	}
	variables := map[string]string{}
	for _, variable := range s.policy.Spec.Variables {
		variables[variable.Name] = variable.Expression
	}
	var expressions []string
	for _, validation := range s.policy.Spec.Validations {
		expressions = append(expressions, validation.Expression)
	}
	for _, base := range all {
		for _, variation := range vary.NewVarier(variables, nil, expressions).Variations(base) {
			all = append(all, variation.Object)
		}
	}
	return all, strings.Join(lacks, "; "), err
}

// create sends a creation as a dry run. Only whether the object is valid counts: what admission refuses can be a probe.
func (w *waiter) create(ctx context.Context, manifest map[string]any) (framework.Result, error) {
	_, request, err := w.request(manifest, metav1.NamespaceDefault)
	if err != nil {
		return framework.Result{}, err
	}
	answer, err := w.Send(ctx, request)
	if err == nil && !answer.Allowed() && !invalid(answer) {
		answer = framework.Result{Status: metav1.Status{Code: http.StatusCreated}, Object: &unstructured.Unstructured{Object: manifest}}
	}
	return answer, err
}

// invalid reports whether an object is refused because of its fields.
func invalid(answer framework.Result) bool {
	refused := answer.Status.Code == http.StatusUnprocessableEntity || answer.Status.Code == http.StatusBadRequest
	return refused && !strings.Contains(answer.Status.Message, "admission webhook ") && !strings.Contains(answer.Status.Message, " denied request: ")
}

// request returns the creation of an object, as reach sees it and as it is sent, in a namespace if the object has none.
func (w *waiter) request(object map[string]any, namespace string) (asked reach.Request, sent client.HTTPRequest, err error) {
	of := unstructured.Unstructured{Object: object}
	resource, err := w.resources.Of(of.GroupVersionKind())
	if err != nil {
		return asked, sent, err
	}
	namespace = cmp.Or(of.GetNamespace(), namespace)
	if !resource.Namespaced {
		namespace = ""
	}
	asked = reach.Request{
		Operation: "CREATE", Resource: resource.GroupVersionResource, Kind: of.GroupVersionKind(),
		Namespace: namespace, Name: of.GetName(), User: w.user, Object: object, DryRun: true,
	}
	sent = client.HTTPRequest{
		Method: http.MethodPost, Path: client.URLPath(resource.GroupVersionResource, namespace, "", ""),
		Query: url.Values{"dryRun": {metav1.DryRunAll}}, ContentType: runtime.ContentTypeJSON,
	}
	sent.Body, err = json.Marshal(object)
	return asked, sent, err
}

// explain returns what a subject does about the creation of an object: in namespace default, or else in the first namespace
// that it selects.
func (w *waiter) explain(ctx context.Context, s *subject, object map[string]any) (first reach.Finding, request client.HTTPRequest) {
	names := []string{metav1.NamespaceDefault}
	for _, space := range w.spaces {
		names = append(names, space.GetName())
	}
	for _, name := range names {
		asked, sent, err := w.request(object, name)
		if err != nil {
			return reach.Finding{Text: err.Error()}, sent
		}
		findings, err := w.admission.Explain(ctx, asked, w)
		at := slices.IndexFunc(findings, func(f reach.Finding) bool { return f.Subject() == s.Subject })
		if at < 0 {
			return reach.Finding{Text: err.Error()}, sent
		}
		if first.Text == "" {
			first = findings[at]
		}
		if reason := findings[at].Reason; reason != reach.ReasonNamespaceSelector && reason != reach.ReasonBindingMatch {
			return findings[at], sent
		}
	}
	return first, request
}
