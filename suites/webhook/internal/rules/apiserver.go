package rules

import (
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// serverRules returns the rule about an API server on which the webhook is installed.
func serverRules() []check.Rule {
	return []check.Rule{{
		ID: "WH-SERVER-1", Name: "the-api-server-gets-the-same-verdict", Level: framework.Must,
		Title:  "The dry run of a sample on the API server has the verdict, the message and the change that the webhook gives when it is called directly.",
		Why:    "What the webhook denies is stored if the API server calls another endpoint, does not call it, or ignores its failure.",
		Fix:    "Compare the installed configuration with the one that is shipped: rules, selectors, clientConfig and failurePolicy.",
		Source: []string{goodPractices, "https://github.com/gardener/gardener/issues/7013"},
		Check:  checkServer,
	}}
}

func checkServer(t *check.T) {
	switch {
	case t.APIServer.DryRun == nil:
		t.Unsupported("no API server has the configurations; a test in Go can give Subject.APIServer")
	case t.Webhook.Name == "":
		t.Unsupported("there is no configuration, so no API server calls the webhook")
	}
	applies := false
	for _, c := range t.Cases() {
		if !isCreate(c) || t.Over() {
			continue
		}
		applies = true
		checkServed(t, c)
	}
	if !applies {
		t.Unsupported("no sample that reaches the webhook creates an object")
	}
}

// dryRun is the dry run of a sample that the API server accepted.
type dryRun struct {
	sample  check.Case
	request reach.Request  // as the webhook gets it
	want    check.Decision // of the webhook when it is called directly
	object  map[string]any // that the API server returned
}

// checkServed compares the dry run of a sample with the decision of the webhook.
func checkServed(t *check.T, c check.Case) {
	sent := t.ForServer(c)
	r := t.AfterMutation(sent)
	if !t.Called(r) {
		return
	}
	want, ok := t.Decide(r)
	if !ok {
		return
	}
	object, err := t.DryRun(sent)
	if t.Over() {
		return
	}
	if err == nil {
		checkAccepted(t, dryRun{c, r, want, object})
		return
	}
	text, quoted := err.Error(), fmt.Sprintf("webhook %q", t.Webhook.Name)
	switch {
	case strings.Contains(text, "failed calling "+quoted), strings.Contains(text, "failed calling admission "+quoted):
		t.Errorf("%s: the API server cannot call the webhook, which answers when it is called directly: %s", c, text)
	case !strings.Contains(text, "admission "+quoted+" denied the request"):
		t.LogOnce(fmt.Sprintf("%s: the API server refuses it for another reason: %s", c, text))
	case want.Response.Allowed:
		t.Differs("%s: the webhook allows it when it is called directly, but not when the API server calls it: %s", c, text)
	default:
		t.Reached()
		if message := want.Response.Status.Message; !strings.Contains(text, message) {
			t.Differs("%s: the message of the denial is another one on the API server\ngot %q, want %q in it", c, text, message)
		}
	}
}

// checkAccepted is checkServed for a dry run that the API server accepted.
func checkAccepted(t *check.T, d dryRun) {
	if !d.want.Response.Allowed {
		if again, ok := t.Decide(withObject(d.request, d.object)); !ok || again.Response.Allowed {
			t.LogOnce(fmt.Sprintf("%s: the webhook denies the sample, but not the object that the API server makes of it, with its defaults", d.sample))
			return
		}
		t.Differs("%s: the API server allows it, but the webhook denies it when it is called directly: %s", d.sample, d.want.Verdict())
		return
	}
	var changes check.Changes
	if t.Kind == check.Mutating {
		changes = t.ChangesIn(d.object, d.request.Object, d.want.Object)
	}
	switch {
	case changes.Made > 0 && changes.Shown == 0:
		t.Differs("%s: the object of the API server shows none of the changes that the webhook makes when it is called directly: %s", d.sample, t.DiffObjects(d.request.Object, d.want.Object))
	case changes.Made > 0 && changes.Shown == changes.Made:
		t.Reached()
	default:
		t.LogOnce(fmt.Sprintf("%s: the API server allows it too, but nothing shows that it called the webhook", d.sample))
	}
}
