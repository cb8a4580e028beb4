// Package own has a plugin with its own initializer.
package own

import (
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// WantsText is the interface of plugins that want a string.
type WantsText interface{ SetText(text string) }

type plugin struct {
	*admission.Handler
	text       string
	namespaces corelisters.NamespaceLister
}

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register("Own", func(io.Reader) (admission.Interface, error) {
		return &plugin{Handler: admission.NewHandler(admission.Create)}, nil
	})
}

type textInitializer string

// Initialize sets the text.
func (i textInitializer) Initialize(p admission.Interface) {
	if wants, ok := p.(WantsText); ok {
		wants.SetText(string(i))
	}
}

// Initializers returns an initializer with the version of the API server, which it asks for.
func Initializers(c *server.RecommendedConfig) ([]admission.PluginInitializer, error) {
	if c.SharedInformerFactory == nil || c.Authorization.Authorizer == nil || c.FeatureGate == nil {
		return nil, errors.New("the configuration is not complete")
	}
	if _, err := kubernetes.NewForConfig(c.LoopbackClientConfig); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return []admission.PluginInitializer{textInitializer("own")}, nil
}

// SetText implements WantsText.
func (p *plugin) SetText(text string) { p.text = text }

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *plugin) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	p.namespaces = f.Core().V1().Namespaces().Lister()
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *plugin) ValidateInitialization() error {
	if p.text == "" || p.namespaces == nil {
		return errors.New("it is not initialized")
	}
	return nil
}

// Admit writes the text to an annotation of objects with the label.
func (p *plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object, err := meta.Accessor(a.GetObject())
	if err != nil || object.GetLabels()["Own"] == "" {
		return nil
	}
	object.SetAnnotations(map[string]string{"text": p.text})
	return nil
}
