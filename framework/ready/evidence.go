package ready

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// The metrics of an API server that count calls and evaluations
// (k8s.io/apiserver/pkg/admission/metrics and k8s.io/apiserver/pkg/admission/plugin/policy).
const (
	webhookMetric    = "apiserver_admission_webhook_request_total"
	validatingMetric = "apiserver_validating_admission_policy_check_total"
	mutatingMetric   = "apiserver_mutating_admission_policy_check_total"
	// startMetric is when the API server was started: it tells API servers behind a load balancer apart.
	startMetric = "process_start_time_seconds"
)

const validating = "Validating" + policies

// The outcomes that the metrics tell apart.
const (
	succeeded = "succeeded"
	rejected  = "rejected" // by a webhook, or because it cannot be called
	failed    = "failed"   // and the failure is ignored
)

// counts reads from the metrics how often each outcome occurred. It is nil if they cannot be read.
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

// turns is how often a dry run that an API server accepts is sent before the next one is tried.
const turns = 20

// probe sends a dry run of each subject that is not ready to an API server, between two looks at its metrics.
func (w *waiter) probe(ctx context.Context, on *client.Client) error {
	before, err := counts(ctx, on)
	answers := map[string]framework.Result{}
	asked := map[*subject]string{}
	for _, s := range w.subjects {
		if err != nil || len(s.probes) == 0 || s.ready[on] {
			continue
		}
		request := s.probes[s.turn/turns%len(s.probes)]
		asked[s] = keyOf(request)
		if _, sent := answers[keyOf(request)]; !sent {
			answers[keyOf(request)], err = on.Send(ctx, request)
		}
	}
	if err != nil {
		return err
	}
	after, err := counts(ctx, on)
	start := key(startMetric, "", "", failed)
	if err != nil || before[start] != after[start] {
		return err // they are of different API servers
	}
	known := after[start] > 0
	if !known {
		after = before
	}
	for s, request := range asked {
		e := evidence{Result: answers[request], known: known}
		e.rise = func(outcome string) float64 { return after[key(s.counted, outcome)] - before[key(s.counted, outcome)] }
		s.note(on, request, e)
	}
	return nil
}

// keyOf identifies a request.
func keyOf(request client.HTTPRequest) string { return request.Path + string(request.Body) }

// evidence is what a dry run shows about a subject.
type evidence struct {
	framework.Result
	// rise is how much the count of an outcome has risen. It is only known if the metrics can be read.
	rise  func(outcome string) float64
	known bool
}

// note notes whether a dry run shows that a subject is ready.
func (s *subject) note(on *client.Client, request string, e evidence) {
	seen := s.seen(e)
	first := fmt.Sprintf("%p %s", on, request)
	switch {
	case seen && (!s.created.IsZero() && (s.unseen[first] || time.Since(s.created) > settle) || time.Since(s.since) > settle):
		s.ready[on] = true
	case seen:
		s.Reason = "it decides, but it can be an earlier version, which an API server uses for some seconds"
	case invalid(e.Result):
		s.probes = slices.DeleteFunc(s.probes, func(r client.HTTPRequest) bool { return keyOf(r) == request })
	case e.Allowed() && s.Reason == notYet:
		s.unseen[first] = true
		s.turn++
	default:
		s.turn += turns
	}
}

const notYet = "the API server does not use it yet"

// seen reports whether a dry run shows that a webhook answers or that a policy is evaluated. If not, it sets the reason.
func (s *subject) seen(e evidence) bool {
	message, webhook := e.Status.Message, s.names.Webhook
	bound := fmt.Sprintf("%s '%s' with binding '%s'", s.names.Kind, s.names.Name, s.names.Binding)
	shows := func(text string) bool {
		return strings.Contains(text, bound) && !strings.Contains(text, "failed to configure ")
	}
	denied := webhook != "" && strings.Contains(message, fmt.Sprintf("admission webhook %q denied the request", webhook))
	s.Unknown = false
	switch {
	case webhook != "" && strings.Contains(message, fmt.Sprintf("failed calling webhook %q", webhook)):
		s.Reason = message
	case s.shared:
		s.Reason, s.Unknown = "another configuration has a webhook with this name, and metrics do not tell them apart", true
	case e.Allowed() && e.rise(failed) > 0:
		s.Reason = "it fails, and failurePolicy Ignore hides why: the log of the API server says it"
	case e.rise(failed) == 0 && e.rise(succeeded) > 0, denied && e.rise(rejected) > 0, s.names.Kind == validating && (shows(message) || slices.ContainsFunc(e.Warnings, shows)):
		return true
	case webhook != "" && strings.Contains(message, fmt.Sprintf("admission webhook %q does not support dry run", webhook)):
		s.Reason, s.Unknown = "its sideEffects keep the API server from calling it for dry runs: set None or NoneOnDryRun", true
	case strings.Contains(message, " cannot create resource "):
		s.Reason, s.Unknown = "a right is missing for the dry run: "+message, true
	case !e.Allowed() && !denied:
		s.Reason = "the API server refuses the dry run for another reason: " + message
	case e.known || !s.silent && webhook == "":
		s.Reason = notYet
	default:
		s.Reason, s.Unknown = "the dry run does not show it, and a right is missing to get /metrics, which would", true
	}
	return false
}
