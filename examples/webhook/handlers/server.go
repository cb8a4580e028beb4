package handlers

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync/atomic"
	"time"

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
	// Drain is how long the server goes on after its end was asked for. Clients with open connections, such as the API
	// server, connect to another Pod meanwhile.
	Drain time.Duration
}

// Server serves both webhooks.
type Server struct {
	webhook.Server
	drain    time.Duration
	draining atomic.Bool
}

// NewServer returns the server of both webhooks. Call Start to serve them.
func NewServer(options Options) (*Server, error) {
	scheme := runtime.NewScheme()
	if err := networkingv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	s := &Server{drain: options.Drain, Server: webhook.NewServer(webhook.Options{
		Host: options.Host, Port: options.Port, CertDir: options.CertDir,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.MinVersion = tls.VersionTLS12 }},
	})}
	s.Register(MutatePath, s.closing(admission.WithDefaulter[*networkingv1.Ingress](scheme, Defaulter{})))
	s.Register(ValidatePath, s.closing(admission.WithValidator[*networkingv1.Ingress](scheme, Validator{Domain: options.Domain})))
	return s, nil
}

// Start serves the webhooks until the context ends, and then for the time of Drain, so that no call is lost in a rollout.
func (s *Server) Start(ctx context.Context) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() {
		s.draining.Store(true)
		time.AfterFunc(s.drain, stop)
	})
	return s.Server.Start(serving)
}

// closing makes clients close their connections while the server drains.
func (s *Server) closing(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}
