package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/cluster/kind"
	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/scenario"
)

// FirstAnswer is how long an API server that runs already may take to answer
// the first request.
const FirstAnswer = 10 * time.Second

// ErrUnreachable marks an API server that gave no answer at all.
var ErrUnreachable = errors.New("no answer")

// RESTConfig gives an API server that runs already as the only target. It gives
// no server profile: Start returns engine.ErrNoProfiles for one.
type RESTConfig struct {
	// Config reaches the API server. Required.
	Config *rest.Config
	// Transport is how the API server reaches the Hooks. The zero value takes what
	// works.
	Transport Transport
	// Progress receives one line for each longer thing that is done. Nil discards them.
	Progress func(string)

	// firstAnswer stands in for FirstAnswer in tests. 0 is FirstAnswer.
	firstAnswer time.Duration
}

// Start returns the API server as a target. The error is an ErrUnreachable where
// nothing answers within FirstAnswer, and an ErrNoWay where the API server reaches
// no Hook by the transport.
func (r RESTConfig) Start(ctx context.Context, profile *scenario.Server) (engine.Target, error) {
	if profile != nil {
		return nil, engine.ErrNoProfiles
	}
	if r.Config == nil {
		return nil, errors.New("use API server: RESTConfig.Config is nil: give a rest.Config")
	}
	if err := r.knock(ctx); err != nil {
		return nil, err
	}
	return r.open(ctx)
}

// open makes the target of an API server that answers.
func (r RESTConfig) open(ctx context.Context) (engine.Target, error) {
	return opening{
		config: r.Config, transport: r.Transport, progress: r.Progress,
		cluster: localKind(ctx, r.Config),
	}.open(ctx)
}

// knock waits for any answer at all, so that what follows need not be quick.
func (r RESTConfig) knock(ctx context.Context) error {
	limit := r.firstAnswer
	if limit == 0 {
		limit = FirstAnswer
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("silence for %s", limit))
	defer cancel()
	_, err := get(limited, r.Config, "version")
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("reach API server at %s: %w", r.Config.Host, ctx.Err())
	case errors.Is(err, errNoClient):
		return err
	case limited.Err() != nil:
		err = context.Cause(limited)
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // the address is told already
	}
	return fmt.Errorf("reach API server at %s: %w: %w; check that it runs and that this is its address", r.Config.Host, ErrUnreachable, err)
}

// errNoClient marks a configuration that makes no client.
var errNoClient = errors.New("no usable configuration")

// get reads a document of the API server, whatever the status of the answer.
func get(ctx context.Context, from *rest.Config, path ...string) ([]byte, error) {
	config := rest.CopyConfig(from)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("use API server at %s: %w: %w", config.Host, errNoClient, err)
	}
	defer client.CloseIdleConnections()
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("use API server at %q: %w: %w; want an address like https://host:6443", config.Host, errNoClient, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path...).String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("use API server at %s: %w: %w", config.Host, errNoClient, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(io.LimitReader(response.Body, 8<<20))
}

// nodeLimit bounds the question which nodes there are.
const nodeLimit = 5 * time.Second

// localKind returns the kind cluster of this machine that a configuration leads
// to, or nil where it is not known to be one.
func localKind(ctx context.Context, config *rest.Config) *kind.Cluster {
	limited, cancel := context.WithTimeout(ctx, nodeLimit)
	defer cancel()
	answer, err := get(limited, config, "api", "v1", "nodes")
	if err != nil {
		return nil
	}
	var nodes struct {
		Items []struct {
			Spec struct {
				ProviderID string `json:"providerID"`
			} `json:"spec"`
		} `json:"items"`
	}
	if json.Unmarshal(answer, &nodes) != nil || len(nodes.Items) == 0 {
		return nil
	}
	found, err := kind.Of(ctx, nodes.Items[0].Spec.ProviderID, config)
	if err != nil {
		return nil
	}
	return found
}
