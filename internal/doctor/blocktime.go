package doctor

import (
	"fmt"

	"github.com/admissiontest/admissiontest/framework"
)

// timeRules returns the rule about timeouts.
func timeRules() []Rule {
	return []Rule{
		{
			ID: "CF-BLOCK-5", Name: "short-timeout", Level: framework.Should,
			Title:  "The timeout is short.",
			Why:    "Each request that the webhook matches waits that long when it does not answer. Clients, and the API server itself, give up after about 30 s.",
			When:   "timeoutSeconds is more than 10, an error from 30 on; not set, which means 10, is a note; and so is more than 5 for a webhook that mutates Pods",
			Fix:    "set timeoutSeconds to a few times what the webhook needs, at most 10",
			Source: []string{goodPractices, issue("digitalocean/clusterlint/blob/f8280ec625b978747868d6e21b43a68f602ffad3/checks/doks/admission_controller_webhook_timeout.go"), issue("gardener/gardener/issues/7013")},
			Check:  each(checkTimeout),
		},
	}
}

func checkTimeout(c *checker, h *webhook) {
	switch {
	case h.timeout >= 30:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Error, Message: fmt.Sprintf("a request waits up to %d s, which leaves no time before the client and the API server give up", h.timeout)})
	case h.timeout > defaultTimeout:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Warning, Message: fmt.Sprintf("a request waits up to %d s when the webhook does not answer", h.timeout)})
	case h.TimeoutSeconds == nil:
		c.webhook(h, "timeoutSeconds", Finding{Severity: Note, Message: "timeoutSeconds is not set: a request waits up to 10 s when the webhook does not answer"})
	case h.mutates && h.timeout > 5:
		pod := newProbe(c.world, about{operation: "CREATE", resource: "pods", namespace: ordinary, name: "pod-1", user: "replicaset-controller", object: podSpec()})
		if d := c.reaches(h, pod); d.called {
			c.webhook(h, "timeoutSeconds", Finding{Severity: Note, Request: pod.text, Message: fmt.Sprintf("the creation of each Pod waits up to %d s when the webhook does not answer", h.timeout)})
		}
	}
}
