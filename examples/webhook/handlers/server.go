package handlers

import (
	"crypto/tls"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// The paths of the webhooks. config/webhook.yaml also has them.
const (
	MutatePath   = "/mutate-ingress"
	ValidatePath = "/validate-ingress"
)

// Options configure the server.
type Options struct {
	// Host and Port to listen on. An empty Host means all addresses.
	Host string
	Port int
	// CertDir is a folder with tls.crt and tls.key.
	CertDir string
	// Domain is the domain of the Validator.
	Domain string
}

// NewServer returns the server of both webhooks. Call Start of the server to serve them.
func NewServer(options Options) (webhook.Server, error) {
	scheme := runtime.NewScheme()
	if err := networkingv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	server := webhook.NewServer(webhook.Options{
		Host: options.Host, Port: options.Port, CertDir: options.CertDir,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.MinVersion = tls.VersionTLS12 }},
	})
	server.Register(MutatePath, admission.WithDefaulter[*networkingv1.Ingress](scheme, Defaulter{}))
	server.Register(ValidatePath, admission.WithValidator[*networkingv1.Ingress](scheme, Validator{Domain: options.Domain}))
	return server, nil
}
