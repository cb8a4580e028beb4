package ready

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/vary"
)

// mostProbes limits the dry runs for one webhook or policy.
const mostProbes = 32

// deriveFor finds dry runs of creations that a subject selects: of the given objects, or of the smallest ones that its rules match, and
// of these with changes in what its expressions read. If there are none, missing says why.
func (w *waiter) deriveFor(ctx context.Context, s *subject) (missing string, err error) {
	if err := w.client.Discover(ctx); err != nil {
		return "", err
	}
	namespace, missing, err := w.namespace(ctx, s)
	if err != nil || missing != "" {
		return missing, err
	}
	all, missing := slices.Clone(w.Objects), ""
	if len(all) == 0 {
		if all, missing, err = w.smallest(ctx, s, namespace); err != nil {
			return "", err
		}
		for _, base := range all {
			for _, variation := range vary.NewVarier(s.variables, nil, s.expressions).Variations(base) {
				all = append(all, variation.Object)
			}
		}
	}
	for _, object := range all[:min(len(all), mostProbes)] {
		request, err := w.creation(object, namespace)
		if err != nil {
			return err.Error(), nil //nolint:nilerr // the reason says it
		}
		s.probes = append(s.probes, request)
	}
	return missing, nil
}

// smallest returns the smallest objects that the rules of a subject match, with labels that it selects.
func (w *waiter) smallest(ctx context.Context, s *subject, namespace string) (all []map[string]any, missing string, err error) {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, rule := range s.rules {
		if slices.Contains(rule.Operations, admissionregistrationv1.Create) || slices.Contains(rule.Operations, admissionregistrationv1.OperationAll) {
			rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
			rules = append(rules, rule)
		}
	}
	server := vary.Server{Resources: w.client.Resources.All(), OpenAPI: w.client.OpenAPI, Create: func(ctx context.Context, manifest map[string]any) (framework.Result, error) {
		request, err := w.creation(manifest, namespace)
		if err != nil {
			return framework.Result{}, err
		}
		answer, err := w.client.Send(ctx, request)
		if err == nil && !answer.Allowed() && !invalid(answer) { // what admission refuses can be a probe
			answer = framework.Result{Status: metav1.Status{Code: http.StatusCreated}, Object: &unstructured.Unstructured{Object: manifest}}
		}
		return answer, err
	}}
	requests, lacks, err := server.Requests(ctx, rules)
	for _, one := range requests {
		object := unstructured.Unstructured{Object: vary.OfClient(one.Response)}
		object.SetNamespace("")
		for _, selector := range s.objects {
			object.SetLabels(labels.Merge(object.GetLabels(), vary.Selected(selector)))
		}
		all = append(all, object.Object)
	}
	return all, strings.Join(lacks, "; "), err
}

// namespace returns the first namespace that a subject selects: default, if it can. Otherwise missing says what it selects.
func (w *waiter) namespace(ctx context.Context, s *subject) (name, missing string, err error) {
	matches := labels.Everything()
	for _, selector := range s.namespaces {
		if selector == nil {
			continue
		}
		each, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			return "", err.Error(), nil //nolint:nilerr // the reason says it
		}
		requirements, _ := each.Requirements()
		matches = matches.Add(requirements...)
	}
	list, err := w.client.ListObjects(ctx, client.Resource{GroupVersionResource: client.Namespaces()}, metav1.ListOptions{})
	if err != nil {
		return "", "", err
	}
	found := slices.DeleteFunc(list.Items, func(space unstructured.Unstructured) bool {
		return space.GetDeletionTimestamp() != nil || !matches.Matches(labels.Set(space.GetLabels()))
	})
	if len(found) == 0 {
		return "", "no namespace matches its namespaceSelector " + matches.String(), nil
	}
	if slices.ContainsFunc(found, func(space unstructured.Unstructured) bool { return space.GetName() == metav1.NamespaceDefault }) {
		return metav1.NamespaceDefault, "", nil
	}
	return found[0].GetName(), "", nil
}

// creation returns the dry run that creates an object, in a namespace if the object has none.
func (w *waiter) creation(object map[string]any, namespace string) (client.HTTPRequest, error) {
	of := unstructured.Unstructured{Object: object}
	resource, err := w.client.Resources.Of(of.GroupVersionKind())
	if err != nil {
		return client.HTTPRequest{}, err
	}
	if namespace = cmp.Or(of.GetNamespace(), namespace); !resource.Namespaced {
		namespace = ""
	}
	return client.DryRun(resource.GroupVersionResource, namespace, object), nil
}

// invalid reports whether an object is refused because of its fields.
func invalid(answer framework.Result) bool {
	refused := answer.Status.Code == http.StatusUnprocessableEntity || answer.Status.Code == http.StatusBadRequest
	return refused && !strings.Contains(answer.Status.Message, "admission webhook ") && !strings.Contains(answer.Status.Message, " denied request: ")
}

// The metrics of an API server that count calls and evaluations
// (k8s.io/apiserver/pkg/admission/metrics and k8s.io/apiserver/pkg/admission/plugin/policy).
const (
	webhookMetric    = "apiserver_admission_webhook_request_total"
	validatingMetric = "apiserver_validating_admission_policy_check_total"
	mutatingMetric   = "apiserver_mutating_admission_policy_check_total"
	// startMetric is when the API server was started: it tells API servers behind a load balancer apart. One API server can say
	// different times, because the kernel corrects when it was started itself.
	startMetric = "process_start_time_seconds"
	jitter      = 2 // seconds
)

const validating = "Validating" + policies

// The outcomes that the metrics tell apart.
const (
	succeeded = "succeeded"
	rejected  = "rejected" // by a webhook, or because it cannot be called
	failed    = "failed"   // and the failure is ignored
)

// counts reads from the metrics how often each outcome occurred. It is empty if they cannot be read.
func counts(ctx context.Context, on *client.Client) (map[string]float64, error) {
	all, err := on.Metrics(ctx, webhookMetric, validatingMetric, mutatingMetric, startMetric)
	if apierrors.IsForbidden(err) || errors.Is(err, framework.ErrNotServed) {
		return nil, nil
	}
	found := map[string]float64{}
	for metric, samples := range all {
		for _, sample := range samples {
			of, outcome := sample.Labels, failed
			switch {
			case of["rejected"] == "true":
				outcome = rejected
			case of["code"] == "200", of["error_type"] == "no_error", metric == validatingMetric:
				outcome = succeeded
			}
			found[key(metric, of["type"]+of["policy"], of["name"]+of["policy_binding"], outcome)] += sample.Value
		}
	}
	return found, err
}

func key(parts ...string) string { return strings.Join(parts, " ") }

// probe sends the dry runs of what is not ready. If no response shows a decision, it sends them again between two looks at the metrics.
func (w *waiter) probe(ctx context.Context, on *client.Client) error {
	for _, s := range w.subjects {
		if len(s.probes) == 0 || s.ready[on] {
			continue
		}
		var before, after map[string]float64
		seen, err := s.ask(ctx, on)
		if err == nil && len(s.probes) > 0 && !seen.decided && (seen.reason == "" || seen.unknown) {
			var errs [3]error
			before, errs[0] = counts(ctx, on)
			seen, errs[1] = s.ask(ctx, on)
			after, errs[2] = counts(ctx, on)
			err = errors.Join(errs[:]...)
		}
		start := key(startMetric, "", "", failed)
		if err != nil || math.Abs(before[start]-after[start]) > jitter {
			return err // they are of different API servers
		}
		rise := func(outcome string) bool { return after[key(s.counted, outcome)] > before[key(s.counted, outcome)] }
		s.judge(on, seen, after[start] > 0, rise)
		if s.decides && (s.unseen[on] || time.Since(s.since) > settle || !s.changed && w.never(s, on)) {
			s.ready[on] = true
		}
	}
	return nil
}

// never reports whether an API server never called a webhook of this name before Wait: then it does not call an earlier version. Of a
// policy this is not known: what a ValidatingAdmissionPolicy allows is not counted.
func (w *waiter) never(s *subject, on *client.Client) bool {
	first := w.first[on]
	return s.names.Webhook != "" && len(first) > 0 && first[key(s.counted, succeeded)]+first[key(s.counted, rejected)]+first[key(s.counted, failed)] == 0
}

// shown is what the responses to dry runs show about a subject.
type shown struct {
	decided bool   // it denied or warned
	reason  string // why it cannot decide, or why it is not known
	unknown bool
}

// ask sends the dry runs of a subject, until a response shows something about it. It forgets invalid ones.
func (s *subject) ask(ctx context.Context, on *client.Client) (seen shown, err error) {
	for _, request := range slices.Clone(s.probes) {
		answer, err := on.Send(ctx, request)
		if err != nil {
			return seen, err
		}
		if invalid(answer) {
			s.probes = slices.DeleteFunc(s.probes, func(r client.HTTPRequest) bool {
				return r.Path == request.Path && string(r.Body) == string(request.Body)
			})
			if len(s.probes) == 0 {
				return shown{reason: "the API server finds each object invalid that was tried: " + answer.Status.Message, unknown: true}, nil
			}
			continue
		}
		if one := s.shown(answer); one != (shown{}) {
			if seen = one; one.decided || !one.unknown {
				break
			}
		}
	}
	return seen, nil
}

// shown returns what one response shows.
func (s *subject) shown(answer framework.Result) shown {
	message, webhook := answer.Status.Message, s.names.Webhook
	bound := fmt.Sprintf("%s '%s' with binding '%s'", s.names.Kind, s.names.Name, s.names.Binding)
	policy := func(text string) bool {
		return strings.Contains(text, bound) && !strings.Contains(text, "failed to configure ")
	}
	switch {
	case webhook != "" && strings.Contains(message, fmt.Sprintf("failed calling webhook %q", webhook)):
		return shown{reason: message}
	case webhook != "" && strings.Contains(message, fmt.Sprintf("admission webhook %q does not support dry run", webhook)):
		return shown{reason: "its sideEffects keep the API server from calling it for dry runs: set None or NoneOnDryRun", unknown: true}
	case webhook != "" && strings.Contains(message, fmt.Sprintf("admission webhook %q denied the request", webhook)), policy(message), slices.ContainsFunc(answer.Warnings, policy):
		return shown{decided: true}
	case strings.Contains(message, " cannot create resource "):
		return shown{reason: "a right is missing for the dry run: " + message, unknown: true}
	case !answer.Allowed():
		return shown{reason: "the API server refuses the dry run for another reason: " + message, unknown: true}
	}
	return shown{}
}

// judge says whether a subject is ready on an API server, or why not. The metrics tell, if they are known, what the responses hide.
func (s *subject) judge(on *client.Client, seen shown, known bool, rise func(outcome string) bool) {
	s.Reason, s.Unknown, s.decides = seen.reason, seen.unknown, false
	switch {
	case seen.reason != "" && !seen.unknown:
	case s.shared:
		s.Reason, s.Unknown = "another configuration has a webhook with this name, and metrics do not tell them apart", true
	case rise(failed):
		s.Reason, s.Unknown = "it fails, and failurePolicy Ignore hides why: the log of the API server says it", false
	case seen.decided || rise(succeeded):
		s.decides = true
		s.Reason, s.Unknown = "it decides, but it can be an earlier version, which an API server uses for some seconds", false
	case s.Reason != "":
	case !known && (s.names.Webhook != "" || s.names.Kind != validating):
		s.Reason, s.Unknown = "no response shows it, and a right is missing to get /metrics, which would", true
	default:
		s.unseen[on] = true
		s.Reason = "the API server does not use it yet"
		if s.Unknown = len(s.expressions) > 0; s.Unknown {
			s.Reason += ", or its expressions let pass each object that was tried"
		}
		if !known {
			s.Reason += ", or it only audits, which needs the right to get /metrics"
		}
		s.Reason += s.note
	}
}
