package execution

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/engine/expect"
)

// timedOut matches the message of an API server about a call of a webhook that took too long
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors.go, net/http).
var timedOut = regexp.MustCompile(`failed calling webhook "([^"]+)": .*(context deadline exceeded|Client\.Timeout|TLS handshake timeout|i/o timeout)`)

// defaultTimeout is that of a webhook without timeoutSeconds
// (k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
const defaultTimeout = 10 * time.Second

// unreached returns why the responses to a step say nothing about admission, or "": the API server reports that a call
// timed out, or waited as long as the timeout of a webhook with failurePolicy Ignore in a time that no call explains. And
// the Hook did not receive a call that is expected, or it answers at once. On a busy machine, seconds can pass before a
// connection is open.
func (c *Case) unreached(mismatches []expect.Mismatch, all []framework.Result) string {
	missing := func(webhook string) bool {
		return slices.ContainsFunc(mismatches, func(m expect.Mismatch) bool {
			return strings.HasPrefix(m.Path, "calls") && strings.Contains(m.Expected, webhook)
		})
	}
	for _, result := range all {
		took, late := result.Finished.Sub(result.Started), ""
		if found := timedOut.FindStringSubmatch(result.Status.Message); found != nil {
			late = found[1]
		}
		if late != "" && missing(late) {
			return fmt.Sprintf("the API server reports that a call of webhook %s timed out, and the Hook did not receive the call", late)
		}
		for _, webhook := range c.webhooks() {
			ignored := webhook.ignored && unexplained(result) >= webhook.limit
			switch {
			case took < webhook.limit:
			case webhook.atOnce && (ignored && result.Allowed() || webhook.name == late):
				return fmt.Sprintf("a call of webhook %s took longer than its timeout of %s, although its Hook answers at once", webhook.name, webhook.limit)
			case ignored && missing(webhook.name):
				return fmt.Sprintf("the request took as long as the timeout of webhook %s, which has failurePolicy: Ignore, and the Hook did not receive a call", webhook.name)
			}
		}
	}
	return ""
}

// unexplained returns how long a request took besides the calls that the Hooks received.
func unexplained(result framework.Result) time.Duration {
	left := result.Finished.Sub(result.Started)
	for _, call := range result.Trace {
		if call.Plugin == nil && !call.Finished.IsZero() {
			left -= call.Finished.Sub(call.Started)
		}
	}
	return left
}

// webhook is a webhook that a scenario gives or installs.
type webhook struct {
	name    string
	ignored bool          // its failurePolicy is Ignore
	limit   time.Duration // the time for a call
	atOnce  bool          // a Hook serves it, and answers without a delay or a fault
}

// webhooks returns the webhooks of the scenario.
func (c *Case) webhooks() (all []webhook) {
	scripts := c.currentScripts()
	for _, m := range c.manifests() {
		for _, fields := range webhooksOf(m.object) {
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
