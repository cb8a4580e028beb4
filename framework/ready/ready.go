package ready

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
)

// Options says what Wait waits for. At least one name is required.
type Options struct {
	// Webhooks are names of ValidatingWebhookConfigurations and MutatingWebhookConfigurations, which need not exist yet.
	Webhooks []string
	// Policies are names of ValidatingAdmissionPolicies and MutatingAdmissionPolicies, which need not exist yet.
	Policies []string
	// Objects are created as dry runs. Nil means objects that are derived from rules, selectors and expressions.
	Objects []map[string]any
	// Progress receives a line when it changes what is not ready, or why. Nil drops it.
	Progress func(string)
}

// Error says why a webhook or policy is not ready.
type Error struct {
	// Subject names the webhook, or the policy and binding.
	Subject string
	// Reason says why it is not ready, or why that is not known.
	Reason string
	// Unknown is true if it can be ready, and nothing shows it.
	Unknown bool
}

// Error returns Subject and Reason.
func (e *Error) Error() string { return e.Subject + ": " + e.Reason }

const (
	interval = 100 * time.Millisecond
	// settle is how long an API server can use an earlier version of an object. It reads policies again every second.
	settle = 3 * time.Second
	// connections is how many connections stand for the API servers behind a load balancer. With three servers, one is
	// missed once in a thousand times.
	connections = 20
)

// waiter is one call of Wait.
type waiter struct {
	Options

	client   *client.Client
	servers  []*client.Client
	subjects []*subject
	first    map[*client.Client]map[string]float64 // the counts before the first dry run
	text     string                                // what is not ready
	lost     error                                 // why there is no answer
}

// Wait returns nil when each webhook and policy is ready: see the package comment. It ends with ctx. The error then has an
// Error for each webhook or policy that is not ready, Unknown ones last, and a framework.ErrNoResponse if the API server
// does not respond.
func Wait(ctx context.Context, config *rest.Config, options Options) error {
	if len(options.Webhooks)+len(options.Policies) == 0 {
		return errors.New("wait for webhooks and policies: there is no name: set Options.Webhooks or Options.Policies")
	}
	reader, err := client.New(config)
	if err != nil {
		return err
	}
	defer reader.Close()
	w := &waiter{Options: options, client: reader, first: map[*client.Client]map[string]float64{}}
	count, err := reader.Replicas(ctx)
	if err != nil || count != 1 {
		count = connections
	}
	for range count {
		one, err := connect(config)
		if err != nil {
			return err
		}
		defer one.Close()
		w.servers = append(w.servers, one)
	}
	if err = wait.PollUntilContextCancel(ctx, interval, true, w.round); err == nil {
		return nil
	}
	all := []error{w.lost}
	for _, s := range w.waiting() {
		all = append(all, &s.Error)
	}
	return errors.Join(append(all, err)...)
}

// connect returns a client with a connection of its own.
func connect(config *rest.Config) (*client.Client, error) {
	config = rest.CopyConfig(config)
	dial := config.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) { // a function of its own: others share connections
		return dial(ctx, network, address)
	}
	return client.New(config)
}

// round reads the configurations, sends dry runs, and returns true if all is ready.
func (w *waiter) round(ctx context.Context) (bool, error) {
	err := w.read(ctx)
	if err == nil {
		err = w.derive(ctx)
	}
	for i := 0; i < len(w.servers) && err == nil; i++ {
		if err = w.probe(ctx, w.servers[i]); slices.ContainsFunc(w.subjects, func(s *subject) bool { return !s.ready[w.servers[i]] }) {
			break // the reasons are about this API server
		}
	}
	if ctx.Err() != nil && w.subjects != nil { // otherwise the API server has not answered at all
		return false, nil
	}
	if w.lost = nil; errors.Is(err, framework.ErrNoResponse) {
		w.lost = err
		return false, nil
	}
	waiting := w.waiting()
	var lines []string
	for _, s := range waiting {
		lines = append(lines, s.Error.Error())
	}
	if text := strings.Join(lines, "; "); text != w.text && text != "" && w.Progress != nil {
		w.text = text
		w.Progress("not ready: " + text)
	}
	return len(waiting) == 0, err
}

// waiting returns what is not ready on each API server, what is Unknown last.
func (w *waiter) waiting() (found []*subject) {
	for _, unknown := range []bool{false, true} {
		for _, s := range w.subjects {
			if s.Unknown == unknown && len(s.ready) < len(w.servers) {
				found = append(found, s)
			}
		}
	}
	return found
}
