package installed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

var (
	// ErrUnknown is the error of a name that no configuration and no webhook has.
	ErrUnknown = errors.New("no such webhook")
	// ErrRight is the error of a right that the account does not have.
	ErrRight = errors.New("the account lacks a right")
)

// rightsMissing returns an ErrRight for what an API server forbids, and any other error as it is. Rule is the rule of a Role that
// allows it.
func rightsMissing(err error, rule string) error {
	forbidden := apierrors.IsForbidden(err)
	if text, ok := strings.CutPrefix(err.Error(), "unable to upgrade connection: "); ok { // client-go 0.37 keeps only the text
		forbidden = strings.Contains(text, " is forbidden: ")
	}
	refused := forbidden && strings.Contains(err.Error(), " cannot ") // not by admission
	if refused || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%w: it needs the rule %s: %v", ErrRight, rule, err) //nolint:errorlint // ErrRight says what kind of error it is
	}
	return err
}

// Backend is a server of webhooks, as the API server reaches it.
type Backend struct {
	// Configurations have the selected webhooks that this server serves, and no others.
	Configurations []map[string]any
	// URL is the address of webhooks by URL: "https://guard.example.com". Empty for webhooks of a Service.
	URL string
	// ServerName is the name that the certificate of a Service must have. Empty means the host of URL.
	ServerName string
	// CA has the PEM certificates of the caBundle. Empty means the certificates of the system.
	CA []byte

	config    *rest.Config
	service   admissionregistrationv1.ServiceReference
	namespace bool // a webhook has a namespaceSelector
}

// String names the server.
func (b *Backend) String() string {
	if b.URL != "" {
		return b.URL
	}
	return fmt.Sprintf("Service %s/%s", b.service.Namespace, b.service.Name)
}

// Find returns the servers of webhooks. A name is that of a configuration, which stands for all its webhooks, or of a
// webhook. The error is an ErrUnknown, an ErrRight, or comes from the API server.
func Find(ctx context.Context, config *rest.Config, names []string) ([]*Backend, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	found := finder{config: config, names: names, used: map[string]bool{}}
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		list, err := client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource(resource)).List(ctx, metav1.ListOptions{})
		if err != nil {
			err = rightsMissing(err, fmt.Sprintf("{apiGroups: [admissionregistration.k8s.io], resources: [%s], verbs: [list]}", resource))
			return nil, fmt.Errorf("list %s: %w", resource, err)
		}
		for _, each := range list.Items {
			if err := found.add(each.Object); err != nil {
				return nil, err
			}
		}
	}
	return found.backends, found.unknown()
}

// finder collects Backends.
type finder struct {
	config   *rest.Config
	names    []string
	used     map[string]bool
	known    []string
	backends []*Backend
}

func (f *finder) unknown() error {
	var errs []error
	for _, name := range f.names {
		if !f.used[name] {
			errs = append(errs, fmt.Errorf("%w: no webhook configuration of the cluster, and no webhook in one, is called %q%s", ErrUnknown, name, suggest.DidYouMean(name, f.known)))
		}
	}
	return errors.Join(errs...)
}

// add adds the selected webhooks of a configuration.
func (f *finder) add(configuration map[string]any) error {
	metadata, _ := configuration["metadata"].(map[string]any)
	of, _ := metadata["name"].(string)
	f.known = append(f.known, of)
	webhooks, _ := configuration["webhooks"].([]any)
	for _, fields := range webhooks {
		data, err := json.Marshal(fields)
		var w admissionregistrationv1.MutatingWebhook
		if err == nil {
			err = json.Unmarshal(data, &w)
		}
		if err != nil {
			return fmt.Errorf("read webhook configuration %s: %w", of, err)
		}
		f.known = append(f.known, w.Name)
		selected := false
		for _, name := range []string{of, w.Name} {
			if slices.Contains(f.names, name) {
				f.used[name], selected = true, true
			}
		}
		if !selected {
			continue
		}
		b, err := f.backend(w)
		if err != nil {
			return fmt.Errorf("webhook %s of configuration %s: %w", w.Name, of, err)
		}
		b.namespace = b.namespace || w.NamespaceSelector != nil && len(w.NamespaceSelector.MatchLabels)+len(w.NamespaceSelector.MatchExpressions) > 0
		b.Configurations = append(b.Configurations, map[string]any{
			"apiVersion": configuration["apiVersion"], "kind": configuration["kind"], "metadata": map[string]any{"name": of}, "webhooks": []any{fields},
		})
	}
	return nil
}

// backend returns the Backend of a webhook.
func (f *finder) backend(w admissionregistrationv1.MutatingWebhook) (*Backend, error) {
	made := &Backend{CA: []byte(strings.TrimSpace(string(w.ClientConfig.CABundle))), config: f.config}
	switch {
	case w.ClientConfig.Service != nil:
		port := int32(443)
		if w.ClientConfig.Service.Port != nil {
			port = *w.ClientConfig.Service.Port
		}
		made.service = admissionregistrationv1.ServiceReference{Namespace: w.ClientConfig.Service.Namespace, Name: w.ClientConfig.Service.Name, Port: &port}
		made.ServerName = made.service.Name + "." + made.service.Namespace + ".svc"
	case w.ClientConfig.URL != nil:
		address, err := url.Parse(*w.ClientConfig.URL)
		if err != nil {
			return nil, err
		}
		made.URL = (&url.URL{Scheme: address.Scheme, Host: address.Host}).String()
	}
	for _, each := range f.backends {
		samePort := each.service.Port == nil || made.service.Port == nil || *each.service.Port == *made.service.Port
		if each.URL == made.URL && each.ServerName == made.ServerName && samePort && string(each.CA) == string(made.CA) {
			return each, nil
		}
	}
	f.backends = append(f.backends, made)
	return made, nil
}

// Around returns what else decides which requests reach the webhooks: the namespaces of samples, and the
// CustomResourceDefinitions of their kinds, as far as they exist. The error is an ErrRight, or comes from the API server.
func (b *Backend) Around(ctx context.Context, samples []map[string]any) ([]map[string]any, error) {
	r, err := newReader(b.config)
	if err != nil {
		return nil, err
	}
	for _, sample := range samples {
		metadata, _ := sample["metadata"].(map[string]any)
		if namespace, _ := metadata["namespace"].(string); b.namespace {
			if namespace == "" {
				namespace = metav1.NamespaceDefault
			}
			if err := r.get(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, namespace); err != nil {
				return nil, err
			}
		}
		if err := r.definition(ctx, sample); err != nil {
			return nil, err
		}
	}
	return r.objects, nil
}
