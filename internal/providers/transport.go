package providers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// TransportAuto uses url if the API server can call this machine, and service otherwise.
const TransportAuto = "auto"

// Transports returns the values of Transport.Mode.
func Transports() []string {
	return []string{TransportAuto, framework.TransportURL, framework.TransportService}
}

// ErrWebhookUnreachable marks an API server that cannot call webhooks of this process.
var ErrWebhookUnreachable = errors.New("the API server cannot call webhooks of this process")

// ErrImageNeeded marks a cluster for which the image of the relay must be given.
var ErrImageNeeded = errors.New("an image of the relay is needed")

// Transport is how the API server reaches the Hooks, which run in this process. The zero
// value tries what works.
type Transport struct {
	// Mode is "auto", "url" or "service". Empty means auto.
	Mode string
	// HookImage is the image that transport service runs in the cluster. The nodes must be
	// able to pull it. Empty builds the image and loads it into the nodes of a kind cluster
	// on this machine; for any other cluster it is an ErrImageNeeded.
	HookImage string
}

// probeLimit limits finding an address.
const probeLimit = 5 * time.Second

// connection is an API server that is about to become a target.
type connection struct {
	// Options are the options that all transports have in common.
	apiserver.Options

	transport Transport
	// cluster is the kind cluster of Config. Nil if Config is not known to belong to a kind cluster of
	// this machine.
	cluster *kind.Cluster
}

// open returns the target, with Hooks that its API server can call.
func (c connection) open(ctx context.Context) (*apiserver.Target, error) {
	c.Run = apiserver.NewRunID()
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	switch c.transport.Mode {
	case framework.TransportURL:
		return c.byURL(ctx, max(probeLimit, c.Patience))
	case framework.TransportService:
		return c.byService(ctx)
	case "", TransportAuto:
		return c.auto(ctx)
	default:
		return nil, fmt.Errorf("use transport %q: want %s", c.transport.Mode, strings.Join(Transports(), ", "))
	}
}

// auto tries url, and then service.
func (c connection) auto(ctx context.Context) (*apiserver.Target, error) {
	opened, unreachable := c.byURL(ctx, probeLimit)
	if unreachable == nil || !errors.Is(unreachable, ErrWebhookUnreachable) {
		return opened, unreachable
	}
	c.Progress("the API server cannot call this machine: using a Service in the cluster")
	opened, err := c.byService(ctx)
	if err == nil || ctx.Err() != nil {
		return opened, err
	}
	return nil, fmt.Errorf("%w; and transport service: %w", unreachable, err)
}

// byURL serves the Hooks at an address of this machine that the API server can call. The
// error is an ErrWebhookUnreachable if there is none.
func (c connection) byURL(ctx context.Context, limit time.Duration) (*apiserver.Target, error) {
	c.Progress("finding an address of this machine that the API server can call")
	hooks, err := c.listen(ctx, limit)
	if err != nil {
		return nil, err
	}
	c.Progress("webhooks by url, at " + hooks.Address().Host)
	options := c.options(hooks)
	options.Transport = framework.TransportURL
	opened, err := apiserver.New(ctx, options)
	if err != nil {
		return nil, errors.Join(err, hooks.Close())
	}
	opened.AfterClose(func(context.Context) error { return hooks.Close() })
	return opened, nil
}

// options returns the options of a target with a Hook server.
func (c connection) options(hooks *hook.Server) apiserver.Options {
	options := c.Options
	options.Hooks, options.HookService = hooks, c.cluster != nil || c.Kind == framework.TargetEnvtest
	return options
}

// listen starts a Hook server at each address of this machine and keeps the first one that the API
// server can call.
func (c connection) listen(ctx context.Context, limit time.Duration) (*hook.Server, error) {
	var servers []*hook.Server
	var tried []string
	for _, address := range candidates() {
		server, err := hook.Start(context.WithoutCancel(ctx), hook.Options{Address: net.JoinHostPort(address.String(), "0")})
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		servers, tried = append(servers, server), append(tried, address.String())
	}
	reached, err := apiserver.CanCall(ctx, apiserver.Options{Config: c.Config, Run: c.Run, Progress: c.Progress}, servers, limit)
	kept := slices.Index(reached, true)
	errs := []error{err}
	for i, server := range servers {
		if i != kept {
			errs = append(errs, server.Close())
		}
	}
	err = errors.Join(errs...)
	switch {
	case err != nil && kept >= 0:
		return nil, errors.Join(err, servers[kept].Close())
	case err != nil:
		return nil, err
	case kept < 0:
		return nil, fmt.Errorf("%w at %s: no call arrived within %s; use --transport service, or run inside the cluster",
			ErrWebhookUnreachable, strings.Join(tried, ", "), limit)
	}
	return servers[kept], nil
}
