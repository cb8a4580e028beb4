package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework/reach"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/review"
)

// Webhook is one webhook of a Subject.
type Webhook struct {
	// Name is the name in the configuration. Empty means that there is no configuration.
	Name string
	// Kind is empty if it is unknown.
	Kind Kind
	// Config is the webhook in its configuration; without a configuration it has the defaults.
	Config admissionregistrationv1.MutatingWebhook
	// Path is where it is called.
	Path string
	// Allow, Reject and Untouched are the cases that reach it.
	Allow, Reject, Untouched []Case
	// Unreached says for each other sample why the webhook is not called.
	Unreached []string
	// Uncalled are the samples of Reject for which no webhook of the Subject is called, each of them for one webhook.
	Uncalled []Uncalled

	admission     *reach.Admission // nil without a configuration
	configuration string           // its name
	operations    []string         // without a configuration: what the samples are about

	comparing sync.Mutex
	varies    *string // the case that gets different answers, or ""; nil is not known yet; guarded by comparing
}

// Case is a sample as a request.
type Case struct {
	// Request is what the webhook gets, and Sample what a client sends: without the changes of mutating webhooks.
	Request, Sample reach.Request
	Message         string
	Fix             []byte

	versions []Version
}

// Uncalled is a sample of Reject for which no webhook is called, so that it is allowed, and why the first one is not. Unknown means that
// one may be called, and Why is then about that one.
type Uncalled struct {
	What, Why string
	Unknown   bool
}

// String names the request: "CREATE pods default/a".
func (c Case) String() string { return Describe(c.Request) }

// Describe names a request: "UPDATE pods/status default/a".
func Describe(r reach.Request) string {
	resource, name := r.Resource.Resource, strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if r.Name == "" {
		prefix, _, _ := unstructured.NestedString(r.Object, "metadata", "generateName")
		name += prefix
	}
	return strings.TrimSpace(r.Operation + " " + resource + " " + name)
}

// Timeout is the timeout of the webhook.
func (w *Webhook) Timeout() time.Duration {
	if w.Config.TimeoutSeconds == nil {
		return 10 * time.Second
	}
	return time.Duration(*w.Config.TimeoutSeconds) * time.Second
}

// Versions are the versions of AdmissionReview that the webhook accepts and this suite knows, the preferred one first.
func (w *Webhook) Versions() []string {
	var known []string
	for _, each := range w.Config.AdmissionReviewVersions {
		if each == "v1" || each == "v1beta1" {
			known = append(known, each)
		}
	}
	if len(known) == 0 {
		return []string{"v1"}
	}
	return known
}

// Prepared is a Subject that has been read.
type Prepared struct {
	Subject
	Webhooks []*Webhook
	Kinds    review.Kinds
	// Misuse says what is wrong with the Subject.
	Misuse []string
	// Err says why no webhook can be called at the addresses of the Subject, if Misuse is empty.
	Err error

	endpoint *endpoint
	replicas []*endpoint
	cluster  cluster
	renewal  time.Duration // 0 means two minutes

	sending sync.Mutex
	sent    map[string]served // by the object; guarded by sending
}

// Prepare reads a Subject. What cannot be read is in Misuse, and the rest is checked. For samples of a validating webhook, it
// calls the mutating webhooks of the Subject first, as an API server does.
func Prepare(ctx context.Context, s Subject) *Prepared {
	p := &Prepared{Subject: s}
	var err error
	if p.endpoint, err = newEndpoint(s); err != nil {
		p.misuse("", err)
		return p
	}
	for _, each := range s.Replicas {
		replica, err := p.endpoint.at(each)
		if p.misuse("Replicas: ", err); err == nil {
			p.replicas = append(p.replicas, replica)
		}
	}
	var manifests []map[string]any
	for _, each := range s.Configurations {
		read, err := each.read()
		p.misuse("Configurations: ", err)
		manifests = append(manifests, read...)
	}
	p.Kinds = review.NewKinds(manifests)
	p.cluster = newCluster(manifests)
	for _, each := range manifests {
		if kind, _ := each["kind"].(string); objects.IsAdmission(each) && strings.HasSuffix(kind, "WebhookConfiguration") {
			p.misuse("Configurations: ", p.addWebhooks(each))
		}
	}
	if len(s.Configurations) == 0 {
		p.Webhooks = []*Webhook{{Kind: s.Kind, Path: "/"}}
	} else if len(p.Webhooks) == 0 && len(p.Misuse) == 0 {
		p.misuse("Configurations: ", errors.New("no webhook is in them: give a MutatingWebhookConfiguration or ValidatingWebhookConfiguration, or set Kind"))
	}
	if s.Tokens != nil && slices.ContainsFunc(p.Webhooks, func(w *Webhook) bool { return w.Audience() == "" }) {
		p.misuse("", errors.New("it has Tokens, and a webhook without an address: the audience of its tokens is the url or service of its clientConfig, so give Configurations with it"))
	}
	if len(s.Allow)+len(s.Reject)+len(s.Untouched) == 0 {
		p.misuse("", errors.New("it has no samples: fill Allow and Reject, which most rules need"))
	}
	for _, each := range append(p.replicas, p.endpoint) {
		if p.Err = each.dial(ctx); p.Err != nil {
			break
		}
	}
	p.addCases(ctx)
	for _, w := range p.Webhooks { // the first call can be slow, and shows whether the webhook answers at all
		for _, each := range append(slices.Clip(w.Allow), w.Reject...)[:min(1, len(w.Allow)+len(w.Reject))] {
			if got := p.Send(ctx, w, each.Request); p.endpoint.base != nil && p.Err == nil && got.Status == http.StatusNotFound {
				p.Err = fmt.Errorf("no webhook is at %s: HTTP status 404; the path of a webhook is in its URL, or in its configuration", p.endpoint.address(w.Path))
			}
		}
	}
	return p
}

// misuse records an error.
func (p *Prepared) misuse(what string, err error) {
	if err != nil {
		p.Misuse = append(p.Misuse, fmt.Sprintf("webhook: Subject %s: %s%v", p.Name, what, err))
	}
}

// addWebhooks adds the webhooks of a configuration, the mutating ones before the others.
func (p *Prepared) addWebhooks(configuration map[string]any) error {
	if version := configuration["apiVersion"]; version != "admissionregistration.k8s.io/v1" {
		return fmt.Errorf("%s has apiVersion %v; want admissionregistration.k8s.io/v1, the only version since Kubernetes 1.22", objects.Describe(configuration), version)
	}
	all, _, _ := unstructured.NestedSlice(configuration, "webhooks")
	if len(all) == 0 {
		return fmt.Errorf("%s has no webhooks", objects.Describe(configuration))
	}
	kind := Validating
	if configuration["kind"] == "MutatingWebhookConfiguration" {
		kind = Mutating
	}
	for i, fields := range all {
		w := &Webhook{Kind: kind}
		where := fmt.Sprintf("%s: webhooks[%d]", objects.Describe(configuration), i)
		data, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(data, &w.Config)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if w.Name = w.Config.Name; w.Name == "" {
			return fmt.Errorf("%s has no name", where)
		}
		only := map[string]any{"apiVersion": configuration["apiVersion"], "kind": configuration["kind"], "metadata": configuration["metadata"], "webhooks": []any{fields}}
		if w.admission, err = reach.New([]map[string]any{only}); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		w.configuration = (&unstructured.Unstructured{Object: configuration}).GetName()
		if w.Path, err = pathOf(w.Config.ClientConfig); err != nil {
			return fmt.Errorf("%s: clientConfig.url: %w", where, err)
		}
		p.Webhooks = append(p.Webhooks, w)
	}
	slices.SortStableFunc(p.Webhooks, func(a, b *Webhook) int { return strings.Compare(string(a.Kind), string(b.Kind)) })
	return nil
}

func pathOf(config admissionregistrationv1.WebhookClientConfig) (string, error) {
	path := "/"
	switch {
	case config.Service != nil && config.Service.Path != nil:
		path = *config.Service.Path
	case config.URL != nil:
		address, err := url.Parse(*config.URL)
		if err != nil {
			return "", err
		}
		path = address.Path
	}
	return "/" + strings.TrimPrefix(path, "/"), nil
}

// addCases makes the cases of each webhook.
func (p *Prepared) addCases(ctx context.Context) {
	add := func(list string, samples []Sample, to func(*Webhook) []*[]Case) {
		for _, sample := range samples {
			c, err := p.caseOf(sample)
			if err != nil {
				p.misuse(list+": ", err)
				continue
			}
			called, uncalled := false, Uncalled{What: c.String()}
			for _, w := range p.Webhooks {
				if !slices.Contains(w.operations, c.Request.Operation) {
					w.operations = append(w.operations, c.Request.Operation)
				}
				final := c
				if w.Kind == Validating {
					final.Request = p.mutated(ctx, c.Request)
				}
				effect, why := p.effect(ctx, w, final.Request, p.cluster)
				if called = called || effect == reach.EffectCalled || effect == reach.EffectRefused; effect != reach.EffectCalled {
					w.Unreached = append(w.Unreached, final.String()+": "+why)
					if unknown := effect != reach.EffectNone; uncalled.Why == "" || unknown && !uncalled.Unknown {
						uncalled.Why, uncalled.Unknown = why, unknown
					}
					continue
				}
				for _, cases := range to(w) {
					*cases = append(*cases, final)
				}
			}
			if list == "Reject" && !called && len(p.Webhooks) > 0 {
				w := p.Webhooks[max(0, slices.IndexFunc(p.Webhooks, func(w *Webhook) bool { return len(w.Allow)+len(w.Reject) > 0 }))]
				w.Uncalled = append(w.Uncalled, uncalled)
			}
		}
	}
	add("Allow", p.Allow, func(w *Webhook) []*[]Case { return []*[]Case{&w.Allow} })
	add("Untouched", p.Untouched, func(w *Webhook) []*[]Case { return []*[]Case{&w.Allow, &w.Untouched} })
	add("Reject", p.Reject, func(w *Webhook) []*[]Case { return []*[]Case{&w.Reject} })
}

// caseOf returns a sample as a request.
func (p *Prepared) caseOf(s Sample) (Case, error) {
	fields, err := s.one()
	if err != nil {
		return Case{}, err
	}
	operation := s.Operation
	if operation == "" {
		operation = review.OpCreate
	}
	r, err := p.Kinds.New(fields, operation, s.Subresource)
	if err != nil {
		return Case{}, fmt.Errorf("%s: %w", s.name(), err)
	}
	if s.Old.File != "" || s.Old.Object != nil {
		old, err := s.Old.one()
		if err != nil {
			return Case{}, fmt.Errorf("%s: Old: %w", s.name(), err)
		}
		before, err := p.Kinds.New(old, operation, s.Subresource)
		if err != nil {
			return Case{}, fmt.Errorf("%s: Old: %w", s.name(), err)
		}
		r.OldObject = before.OldObject
	}
	if s.User.Name != "" {
		r.User = s.User
	}
	c := Case{Request: r, Sample: r, Message: s.Message}
	for _, each := range s.Versions {
		other, err := each.one()
		if err != nil {
			return c, fmt.Errorf("%s: Versions: %w", s.name(), err)
		}
		converted, err := p.Kinds.New(other, operation, s.Subresource)
		if err != nil {
			return c, fmt.Errorf("%s: Versions: %w", s.name(), err)
		}
		if converted.Kind.GroupKind() != r.Kind.GroupKind() || converted.Kind.Version == r.Kind.Version {
			return c, fmt.Errorf("%s: Versions: %s is %s; want another version of %s", s.name(), each.name(), converted.Kind, r.Kind)
		}
		converted.User = r.User
		c.versions = append(c.versions, Version{Request: converted})
	}
	c.Fix, err = s.fix()
	return c, err
}

// mutated returns a request as the mutating webhooks of the Subject leave it.
func (p *Prepared) mutated(ctx context.Context, r reach.Request) reach.Request {
	for _, w := range p.Webhooks {
		if ok, _ := p.Reaches(ctx, w, r); !ok || w.Kind != Mutating || r.Object == nil {
			continue
		}
		a := p.Send(ctx, w, r)
		if a.NoDecision() != "" || !a.Response.Allowed {
			continue // the rules for the mutating webhook report it
		}
		if object, err := p.patched(r.Object, a.Response.Patch); err == nil {
			r.Object = object
		}
	}
	return r
}
