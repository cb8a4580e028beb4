package fence

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// callState is what is known about a call of a webhook under test.
type callState struct {
	// answered is true if the webhook answered, whatever the answer is.
	answered bool
	// problem is why it did not.
	problem string
	// certificate is true if the API server does not trust the certificate of the webhook.
	certificate bool
	// closed is true if the webhook closed the connection without an answer.
	closed bool
}

// call makes the API server call the webhook with number i.
func (e *Webhooks) call(ctx context.Context, scope *install.Scope, i int) (callState, error) {
	recording := e.Install.Hooks.Record(scope.ID)
	defer recording.Stop()
	send := func(policy string) (framework.Result, error) {
		return e.Client.Send(ctx, Probe(scope, map[string]any{numberLabel: strconv.Itoa(i), policyLabel: policy}))
	}
	strict, err := send("Fail")
	if err != nil {
		return callState{}, err
	}
	effective := slices.ContainsFunc(recording.Calls(), func(call framework.Call) bool { return call.Webhook == markWebhook })
	switch {
	case !effective && strict.Allowed():
		return callState{problem: "the configuration is not effective yet"}, nil
	case !effective:
		return callState{problem: strict.Status.Message}, nil // something else refused the request
	case strict.Allowed():
		return callState{answered: true}, nil
	}
	lenient, err := send("Ignore")
	if err != nil {
		return callState{}, err
	}
	if !lenient.Allowed() {
		return callState{answered: true}, nil // refused with either failure policy: it denied the request
	}
	return failedCall(strict.Status.Message), nil
}

// failedCall returns the state of a call that failed, from the message of the API
// server: no other part of the response says whether the call reached the webhook. It relies
// on the error text of net/http (`Post "URL": REASON`) for a request without a
// response, and on the error text of crypto/x509. Without the text of net/http, the webhook sent a
// response that is not an AdmissionReview, so the call reached it.
// Source: k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go.
func failedCall(message string) callState {
	_, request, found := strings.Cut(message, `Post "`)
	if !found {
		return callState{answered: true}
	}
	_, reason, _ := strings.Cut(request, `": `)
	return callState{problem: reason, certificate: strings.Contains(reason, "x509: "), closed: isClosed(reason)}
}

// isClosed reports whether an error of net/http says that the other end closed the connection after it
// was open. A handler that panics does that.
func isClosed(reason string) bool {
	return slices.ContainsFunc([]string{"EOF", "connection reset by peer", "broken pipe", "stream error: ", "client connection lost", "server closed", "GOAWAY"}, func(part string) bool {
		return strings.Contains(reason, part)
	})
}
