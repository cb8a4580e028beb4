package execution

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/requests"
	"github.com/admissiontest/admissiontest/internal/judge"
)

// timedOut matches the message of an API server about a call of a webhook that took too long
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors.go, net/http).
var timedOut = regexp.MustCompile(`failed calling webhook "([^"]+)": .*(context deadline exceeded|Client\.Timeout|TLS handshake timeout|i/o timeout)`)

// shortestTimeout is the shortest time that an API server gives a webhook: timeoutSeconds is a
// whole number.
const shortestTimeout = time.Second

// defaultTimeout is that of a webhook without timeoutSeconds
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
const defaultTimeout = 10 * time.Second

// unreached returns why a result says nothing about admission, or "". It checks three cases:
//
//   - An expected call is missing, and the API server reports that it timed out before the Hook
//     received it.
//   - An expected call of a webhook with failurePolicy Ignore is missing, the request took as long as
//     the timeout of the webhook, and without the audit event it is not known whether the call was made.
//   - A call timed out although its Hook answers at once.
//
// On a busy machine, seconds can pass before a connection is open.
func (c *Case) unreached(ctx context.Context, mismatches []judge.Mismatch, all []framework.Result) string {
	missing := func(webhook string) bool {
		for _, m := range mismatches {
			if strings.HasPrefix(m.Path, "calls") && strings.Contains(m.Expected, webhook) {
				return true
			}
		}
		return false
	}
	for _, result := range all {
		took := result.Finished.Sub(result.Started)
		late, known := c.ignored(ctx, result)
		if found := timedOut.FindStringSubmatch(result.Status.Message); found != nil {
			late = append(late, found[1])
		}
		for _, webhook := range late {
			if missing(webhook) {
				return fmt.Sprintf("the API server reports that a call of webhook %s timed out, and the Hook did not receive the call", webhook)
			}
		}
		for _, webhook := range c.webhooks() {
			switch {
			case took < webhook.limit:
			case webhook.atOnce && slices.Contains(late, webhook.name):
				return fmt.Sprintf("a call of webhook %s took longer than its timeout of %s, although its Hook answers at once", webhook.name, webhook.limit)
			case webhook.ignored && !known && missing(webhook.name):
				return fmt.Sprintf("the request took as long as the timeout of webhook %s, which has failurePolicy: Ignore, and the Hook did not receive a call: without the audit event, admissiontest does not know whether the API server called the webhook", webhook.name)
			}
		}
	}
	return ""
}

// ignored returns the webhooks whose failed calls the API server ignored, according to the audit event
// of the request. It returns none if the request was too short for a timeout. Known is false if
// there is no audit event.
func (c *Case) ignored(ctx context.Context, result framework.Result) (webhooks []string, known bool) {
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

// webhook is a webhook that a scenario gives or installs.
type webhook struct {
	name    string
	ignored bool          // its failurePolicy is Ignore
	limit   time.Duration // the time for a call
	atOnce  bool          // a Hook serves it, and answers without a delay or a fault
}

// manifests returns what the scenario gives and what its steps install.
func (c *Case) manifests() []map[string]any {
	all := slices.Clone(c.Scenario.Spec.Given)
	_ = requests.EachStep(c.Scenario.Spec, func(_ string, step scenario.Step) error { // it returns no error
		all = append(all, step.Install...)
		return nil
	})
	return all
}

// webhooks returns the webhooks of the scenario.
func (c *Case) webhooks() (all []webhook) {
	scripts := c.currentScripts()
	for _, manifest := range c.manifests() {
		items, _ := manifest["webhooks"].([]any)
		for _, item := range items {
			fields, _ := item.(map[string]any)
			one := webhook{ignored: fields["failurePolicy"] == "Ignore", limit: defaultTimeout}
			one.name, _ = fields["name"].(string)
			if seconds, ok := fields["timeoutSeconds"].(int64); ok {
				one.limit = time.Duration(seconds) * time.Second
			}
			one.atOnce = fields["clientConfig"] == nil && !slices.ContainsFunc(scripts[one.name].Replies, func(r hook.Reply) bool {
				return r.Delay != 0 || r.Fault != "" || r.Meanwhile != nil
			})
			all = append(all, one)
		}
	}
	return all
}
