package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/reach"
)

// Dial sends a dry run of a create through each webhook of a Snapshot, and returns what the API server says about the call. It is
// the only function that does more than read; nothing is stored.
func Dial(ctx context.Context, config *rest.Config, snapshot *Snapshot) ([]Dialed, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	w, err := newWorld(ctx, Input{Cluster: snapshot})
	if w == nil || w.admission == nil {
		return nil, err
	}
	c := &checker{world: w}
	all := []Dialed{}
	for _, h := range w.webhooks {
		d, call := c.call(h)
		if call != nil {
			_, err := client.Resource(call.Resource).Namespace(call.Namespace).Create(ctx, &unstructured.Unstructured{Object: call.Object}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			d.judge(h, err)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, d)
	}
	return all, nil
}

// judge sets Cause and Problem for the error of a dry run. If the error does not show whether the webhook was called, it
// removes Request.
func (d *Dialed) judge(h *webhook, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	name := fmt.Sprintf("webhook %q", h.Name)
	switch {
	case strings.Contains(text, "failed calling "+name), strings.Contains(text, "failed calling admission "+name):
		d.Cause, d.Problem = causeOf(text), text
	case strings.Contains(text, "admission "+name+" denied"):
	case h.mutates && apierrors.IsInvalid(err): // validation comes after mutating webhooks
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

// dialName is the name of the objects of dry runs.
const dialName = "admissiontest-doctor-dial"

// call returns the creation of an object that calls a webhook: for the first of its rules, and the first namespace, for which
// it is certain that it is called. The request is nil if there is none: Problem then says why.
func (c *checker) call(h *webhook) (Dialed, *reach.Request) {
	d := Dialed{Configuration: h.configuration.String(), Webhook: h.Name}
	if !h.fails {
		d.Problem = "failurePolicy is Ignore: an API server does not return the error of the call"
		return d, nil
	}
	namespaces := []string{"default"}
	for _, namespace := range c.byKind["Namespace"] {
		if namespace.GetDeletionTimestamp() == nil {
			namespaces = append(namespaces, namespace.GetName())
		}
	}
	for _, rule := range h.Rules {
		if !slices.Contains(operations(rule), "CREATE") {
			continue
		}
		p, ok := c.probeFor(rule, "CREATE")
		if !ok || p.Subresource != "" || p.Kind.Kind == "Unknown" {
			continue
		}
		for _, namespace := range namespaces {
			r, text := p.Request, "CREATE "+p.Resource.Resource+"/"+dialName
			object := (&unstructured.Unstructured{Object: p.Object}).DeepCopy()
			object.SetName(dialName)
			r.Name = dialName
			if p.Namespace != "" {
				object.SetNamespace(namespace)
				r.Namespace, text = namespace, text+" in "+namespace
			}
			r.Object = object.Object
			if c.reaches(h, probeOf(r, text)).called {
				d.Request = text + " (dry run)"
				return d, &r
			}
			if p.Namespace == "" {
				break
			}
		}
	}
	d.Problem = "no creation of an object is known for which it is certainly called"
	return d, nil
}
