package engine

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/judge"
)

// answers are the responses to the requests of a step and of the steps in it. Nil discards them.
type answers struct {
	mu  sync.Mutex
	all []framework.Result
}

func (a *answers) add(result framework.Result) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, result)
}

// timedOut matches the message of an API server about a call of a webhook that took too long
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors.go, net/http).
var timedOut = regexp.MustCompile(`failed calling webhook "([^"]+)": .*(context deadline exceeded|Client\.Timeout|TLS handshake timeout|i/o timeout)`)

// shortestTimeout is the shortest time that an API server gives a webhook: timeoutSeconds is a
// whole number.
const shortestTimeout = time.Second

// defaultTimeout is that of a webhook without timeoutSeconds
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
const defaultTimeout = 10 * time.Second

// unreached returns why expected calls are missing, if the API server says that it made them and
// their time ended before the Hook had them, or if that can be and is not known, or "". On a busy
// machine a second can pass before a connection is open.
func (c *scenarioCase) unreached(ctx context.Context, mismatches []judge.Mismatch, all []framework.Result) string {
	missing := func(webhook string) bool {
		for _, m := range mismatches {
			if strings.HasPrefix(m.Path, "calls") && strings.Contains(m.Expected, webhook) {
				return true
			}
		}
		return false
	}
	for _, result := range all {
		webhooks, known := c.ignored(ctx, result)
		if found := timedOut.FindStringSubmatch(result.Status.Message); found != nil {
			webhooks = append(webhooks, found[1])
		}
		for _, webhook := range webhooks {
			if missing(webhook) {
				return fmt.Sprintf("the API server reports that a call of %s took too long, and the Hook did not receive it", webhook)
			}
		}
		if known {
			continue
		}
		for _, webhook := range c.ignorable(result.Finished.Sub(result.Started)) {
			if missing(webhook) {
				return fmt.Sprintf("the request took as long as a call of %s can take, whose failure is ignored, and the Hook did not receive one: without the audit event nobody knows whether the API server made it", webhook)
			}
		}
	}
	return ""
}

// ignored returns the webhooks whose failed calls were ignored in a request that took so long that
// a call can have timed out: those of its audit event. They are not known without the event.
func (c *scenarioCase) ignored(ctx context.Context, result framework.Result) (webhooks []string, known bool) {
	if result.Finished.Sub(result.Started) < shortestTimeout {
		return nil, true
	}
	read := c.target.Optional().Audit
	if read == nil || result.AuditID == "" {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	event, err := read(ctx, result.AuditID)
	if err != nil {
		return nil, false
	}
	for key, value := range event.Annotations {
		if strings.HasPrefix(key, "failed-open.") {
			webhooks = append(webhooks, value)
		}
	}
	return webhooks, true
}

// ignorable returns the webhooks of the scenario whose failures are ignored and whose calls can
// have timed out in a request that took so long.
func (c *scenarioCase) ignorable(took time.Duration) (webhooks []string) {
	manifests := slices.Clone(c.scenario.Spec.Given)
	_ = eachStep(c.scenario.Spec, func(_ string, step scenario.Step) error { // it returns no error
		manifests = append(manifests, step.Install...)
		return nil
	})
	for _, manifest := range manifests {
		all, _ := manifest["webhooks"].([]any)
		for _, item := range all {
			webhook, _ := item.(map[string]any)
			name, _ := webhook["name"].(string)
			limit := defaultTimeout
			if seconds, ok := webhook["timeoutSeconds"].(int64); ok {
				limit = time.Duration(seconds) * time.Second
			}
			if webhook["failurePolicy"] == "Ignore" && took >= limit {
				webhooks = append(webhooks, name)
			}
		}
	}
	return webhooks
}
