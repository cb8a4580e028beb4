package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster"
	"github.com/admissiontest/admissiontest/framework/cluster/kind"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// TransportAuto takes what works: by url where the API server gets through to
// this machine, or else by a Service in the cluster.
const TransportAuto = "auto"

// Transports returns what Transport.Mode can be.
func Transports() []string {
	return []string{TransportAuto, framework.TransportURL, framework.TransportService}
}

// ErrNoWay marks an API server that gets through to no Hook of ours.
var ErrNoWay = errors.New("the API server cannot reach webhooks of this run")

// ErrImageNeeded marks a cluster that transport service needs an image for which
// cannot be built and loaded from here.
var ErrImageNeeded = errors.New("no image of the relay")

// Transport says how the API server reaches the Hooks, which are served by this
// process. The zero value takes what works.
type Transport struct {
	// Mode is "auto", "url" or "service". Empty is auto.
	Mode string
	// HookImage is the image that transport service runs in the cluster, one that
	// its nodes can pull. Empty builds it and loads it into the nodes of a kind
	// cluster on this machine; on any other cluster it is an ErrImageNeeded.
	HookImage string
	// HookAddress is the HOST or HOST:PORT by which the API server reaches this
	// process, by url. Where HOST is no address of this machine the Hooks listen on
	// all of them; the ports of faulty connections are always chosen freely. Empty
	// finds one out.
	HookAddress string
}

// The bounds of a probe: the first, and that of one more try when nothing else
// has worked.
const (
	probeLimit = 5 * time.Second
	retryLimit = 15 * time.Second
)

// opening is a cluster about to become a target.
type opening struct {
	config    *rest.Config
	kind      string
	transport Transport
	// cluster is the kind cluster that config leads to. Nil where it is not known to
	// be one of this machine.
	cluster *kind.Cluster
	// disposable means that the cluster ends with the target.
	disposable bool
	run        string
	progress   func(string)
}

// open makes the target, with Hooks that its API server gets through to.
func (o opening) open(ctx context.Context) (*remote, error) {
	if o.run == "" {
		o.run = cluster.NewRunID()
	}
	if o.progress == nil {
		o.progress = func(string) {}
	}
	switch o.transport.Mode {
	case framework.TransportURL:
		return o.byURL(ctx, probeLimit)
	case framework.TransportService:
		return o.byService(ctx)
	case "", TransportAuto:
	default:
		return nil, fmt.Errorf("use transport %q: want %s", o.transport.Mode, strings.Join(Transports(), ", "))
	}
	target, noWay := o.byURL(ctx, probeLimit)
	if noWay == nil || !errors.Is(noWay, ErrNoWay) || o.transport.HookAddress != "" {
		return target, noWay
	}
	o.progress("the API server does not get through to this machine: webhooks go through a Service in the cluster")
	target, err := o.byService(ctx)
	if err == nil || ctx.Err() != nil {
		return target, err
	}
	o.progress("that does not work, so by url once more: " + firstLine(err.Error()))
	if target, again := o.byURL(ctx, retryLimit); again == nil {
		return target, nil
	}
	return nil, fmt.Errorf("%w; and transport service: %w", noWay, err)
}

// byURL serves the Hooks at an address of this machine that the API server gets
// through to. The error is an ErrNoWay where there is none.
func (o opening) byURL(ctx context.Context, limit time.Duration) (*remote, error) {
	candidates, err := o.candidates(ctx)
	if err != nil {
		return nil, err
	}
	o.progress("finding out which address of this machine the API server gets through to")
	hooks, chosen, err := o.listen(ctx, candidates, limit)
	if err != nil {
		return nil, err
	}
	o.progress("webhooks by url, at " + chosen.String())
	target, err := cluster.New(ctx, cluster.Options{
		Config: o.config, Kind: o.kind, Run: o.run, Hooks: hooks, Disposable: o.disposable,
		HookService: o.cluster != nil, Transport: framework.TransportURL, Progress: o.progress,
	})
	if err != nil {
		return nil, errors.Join(err, hooks.Close())
	}
	return &remote{Target: target, after: []func(context.Context) error{func(context.Context) error { return hooks.Close() }}}, nil
}

// listen starts a Hook server at each candidate, and keeps the one of the first
// that the API server gets through to.
func (o opening) listen(ctx context.Context, candidates []candidate, limit time.Duration) (*hook.Server, candidate, error) {
	var servers []*hook.Server
	var listening []candidate
	var told []string
	for _, one := range candidates {
		server, err := hook.Start(context.WithoutCancel(ctx), hook.Options{Address: one.listen, AdvertiseHost: one.advertise})
		if err != nil {
			told = append(told, fmt.Sprintf("%s: %v", one, err))
			continue
		}
		servers, listening = append(servers, server), append(listening, one)
		told = append(told, one.String())
	}
	reached, err := cluster.Reach(ctx, cluster.Options{Config: o.config, Run: o.run, Progress: o.progress}, servers, limit)
	var kept *hook.Server
	var chosen candidate
	for i, server := range servers {
		if kept == nil && err == nil && reached[i] {
			kept, chosen = server, listening[i]
			continue
		}
		err = errors.Join(err, server.Close())
	}
	switch {
	case err != nil && kept != nil:
		return nil, chosen, errors.Join(err, kept.Close())
	case err != nil:
		return nil, chosen, err
	case kept == nil:
		return nil, chosen, fmt.Errorf("%w at %s: none arrived within %s; use --transport service, or --hook-address with an address that it reaches",
			ErrNoWay, strings.Join(told, ", "), limit)
	}
	return kept, chosen, nil
}

// remote is a target that has more to end than itself.
type remote struct {
	*cluster.Target
	after []func(context.Context) error
}

// Close ends the target, then the rest in its order.
func (r *remote) Close(ctx context.Context) error {
	errs := []error{r.Target.Close(ctx)}
	for _, end := range r.after {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
