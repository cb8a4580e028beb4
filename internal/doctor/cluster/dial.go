package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/internal/doctor"
)

// Dial sends a dry run of a create through each webhook of a Snapshot, and returns what the API server says about the call. It is
// the only function that does more than read; nothing is stored.
func Dial(ctx context.Context, config *rest.Config, snapshot *doctor.Snapshot) ([]doctor.Dialed, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	calls, err := doctor.Calls(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	all := []doctor.Dialed{}
	for _, call := range calls {
		d := doctor.Dialed{Configuration: call.Configuration, Webhook: call.Webhook, Request: call.Text, Problem: call.Problem}
		if call.Text != "" {
			_, err := client.Resource(call.Resource).Namespace(call.Namespace).Create(ctx, &unstructured.Unstructured{Object: call.Object}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			judgeCall(&d, call, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, d)
	}
	return all, nil
}

// judgeCall sets Cause and Problem for the error of a dry run. If the error does not show whether the webhook was called, it
// removes Request.
func judgeCall(d *doctor.Dialed, call doctor.Call, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	name := fmt.Sprintf("webhook %q", call.Webhook)
	switch {
	case strings.Contains(text, "failed calling "+name), strings.Contains(text, "failed calling admission "+name):
		d.Cause, d.Problem = causeOf(text), text
	case strings.Contains(text, "admission "+name+" denied"):
	case call.Mutates && apierrors.IsInvalid(err): // validation comes after mutating webhooks
	default:
		d.Request, d.Problem = "", "the dry run does not show whether the webhook was called: "+text
	}
}

// causeOf returns the cause in the error of an API server.
func causeOf(text string) string {
	for _, cause := range []struct{ name, part string }{
		{"expired", "certificate has expired or is not yet valid"},
		{"host name", "certificate is valid for"}, {"host name", "is not valid for any names"}, {"host name", "doesn't contain any IP SANs"}, {"host name", "relies on legacy Common Name"},
		{"tls chain", "x509:"}, {"tls chain", "unable to load root certificates"}, {"tls", "tls:"}, {"tls", "server gave HTTP response to HTTPS client"},
		{"name", "no such host"}, {"service", "not found"}, {"endpoints", "no endpoints available"}, {"endpoints", "no service port"},
		{"refused", "connection refused"}, {"timeout", "context deadline exceeded"}, {"timeout", "Client.Timeout"}, {"timeout", "i/o timeout"}, {"timeout", "no route to host"},
	} {
		if strings.Contains(text, cause.part) {
			return cause.name
		}
	}
	return "other"
}
