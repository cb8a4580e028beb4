package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework/cluster"
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
	// Progress receives one line for each longer thing that is done. Nil discards them.
	Progress func(string)

	// firstAnswer stands in for FirstAnswer in tests. 0 is FirstAnswer.
	firstAnswer time.Duration
}

// Start returns the API server as a target. The error is an ErrUnreachable where
// nothing answers within FirstAnswer.
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
	return cluster.New(ctx, cluster.Options{Config: r.Config, Progress: r.Progress})
}

// knock waits for any answer at all, so that what follows need not be quick.
func (r RESTConfig) knock(ctx context.Context) error {
	limit := r.firstAnswer
	if limit == 0 {
		limit = FirstAnswer
	}
	config := rest.CopyConfig(r.Config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("use API server at %s: %w", config.Host, err)
	}
	defer client.CloseIdleConnections()
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("use API server at %q: %w; want an address like https://host:6443", config.Host, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("silence for %s", limit))
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, base.JoinPath("version").String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("use API server at %s: %w", config.Host, err)
	}
	response, err := client.Do(request)
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
		_ = response.Body.Close()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("reach API server at %s: %w", config.Host, ctx.Err())
	case limited.Err() != nil:
		err = context.Cause(limited)
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // the address is told already
	}
	return fmt.Errorf("reach API server at %s: %w: %w; check that it runs and that this is its address", config.Host, ErrUnreachable, err)
}
