package providers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/userfile"
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

// maxCandidates limits the number of addresses to try.
const maxCandidates = 16

// candidates returns the addresses by which an API server may be able to call this process: the loopback address, and
// then the addresses of this machine in its networks, IPv4 first. The gateway of a kind network is one of them.
func candidates() []netip.Addr {
	list := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	interfaces, _ := net.InterfaceAddrs() // without them, there is the loopback address
	for _, address := range interfaces {
		prefix, err := netip.ParsePrefix(address.String())
		if err == nil && prefix.Addr().IsGlobalUnicast() && !slices.Contains(list, prefix.Addr()) {
			list = append(list, prefix.Addr())
		}
	}
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return list[:min(len(list), maxCandidates)]
}

// byService serves the Hooks through a Service in the cluster.
func (c connection) byService(ctx context.Context) (*apiserver.Target, error) {
	reference, err := c.image(ctx)
	if err != nil {
		return nil, err
	}
	hooks, err := hook.Start(context.WithoutCancel(ctx), hook.Options{})
	if err != nil {
		return nil, err
	}
	through, err := newInCluster(c.Config, c.Run, reference, hooks)
	if err != nil {
		return nil, errors.Join(err, hooks.Close())
	}
	c.Progress("starting the relay pod in namespace " + through.namespace)
	if err := through.start(ctx); err != nil {
		return nil, errors.Join(err, hooks.Close())
	}
	c.Progress("webhooks by service, at " + through.host())
	options := c.options(hooks)
	options.Transport, options.ClientConfig, options.HooksErr, options.HookAddress = framework.TransportService, through.clientConfig, through.err, through.hookAddress()
	opened, err := apiserver.New(ctx, options)
	if err != nil {
		return nil, errors.Join(err, through.remove(context.WithoutCancel(ctx)), hooks.Close())
	}
	opened.AfterClose(func(context.Context) error {
		through.close()
		return hooks.Close()
	})
	return opened, nil
}

// image returns the image of the relay. If none is given, it builds one and loads it
// into a kind cluster; the error is an ErrImageNeeded for any other cluster.
func (c connection) image(ctx context.Context) (string, error) {
	if c.transport.HookImage != "" {
		return c.transport.HookImage, nil
	}
	if c.cluster == nil {
		return "", fmt.Errorf("use transport service: %w: the cluster is not a kind cluster of this machine, into which an image can be loaded; "+
			"create one with `admissiontest image --push REF` and give it with --transport service=REF", ErrImageNeeded)
	}
	tag, err := LoadImage(ctx, c.cluster, c.Progress)
	if err != nil {
		return "", fmt.Errorf("use transport service: %w", err)
	}
	return tag, nil
}

// LoadImage builds the image and loads it into the nodes of a cluster.
func LoadImage(ctx context.Context, into *kind.Cluster, progress func(string)) (string, error) {
	built, err := BuildImage(ctx, ImageOptions{Progress: progress})
	if err != nil {
		return "", err
	}
	tag, err := ImageTag(built)
	if err != nil {
		return "", err
	}
	dir, err := userfile.MkdirTemp("admissiontest-image-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	archive := filepath.Join(dir, "image.tar")
	if err := WriteImage(built, tag, archive); err != nil {
		return "", err
	}
	progress("loading image " + tag + " into kind cluster " + into.Name())
	return tag, into.LoadImage(ctx, archive)
}
