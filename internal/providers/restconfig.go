package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/target"
)

// FirstResponse limits the wait for the first response of an API server that is already
// running.
const FirstResponse = 10 * time.Second

// ErrUnreachable marks an API server that does not respond.
var ErrUnreachable = errors.New("no response")

// RESTConfig provides an API server that is already running. It starts no server with a
// profile: Start returns target.ErrNoProfiles.
type RESTConfig struct {
	// Config reaches the API server. Required, unless there is an Environment.
	Config *rest.Config
	// Environment is a user's Environment of controller-runtime, which is started before Check. Its API server is one for
	// tests that stays for several runs, with webhooks and policies that are under test. If it uses an existing cluster,
	// that is as with Config. Nil means Config.
	Environment *envtest.Environment
	// Transport is how the API server reaches the Hooks. The zero value tries what works.
	Transport Transport
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)

	// options has what else is known of the API server.
	options apiserver.Options
	// cluster is the kind cluster of Config. Nil finds out whether it is one.
	cluster *kind.Cluster
	// firstResponse replaces FirstResponse in tests. 0 means FirstResponse.
	firstResponse time.Duration
}

// Check waits for the first response of the API server and checks the rights that every run needs. Nothing is created.
// (Start checks the rights of transport service.) The errors are ErrUnreachable and apiserver.ErrRightsMissing.
func (r RESTConfig) Check(ctx context.Context) error {
	r, err := r.started()
	if err == nil {
		err = r.waitReachable(ctx)
	}
	if err != nil {
		return err
	}
	return apiserver.RequireRights(ctx, r.Config, apiserver.RunRights())
}

// Version returns "": the API server is running, and its version is known after Start.
func (RESTConfig) Version(context.Context) (string, error) { return "", nil }

// Start returns the API server as a target. The error is an ErrUnreachable if it does not
// respond within FirstResponse, and an ErrWebhookUnreachable if it cannot call a Hook.
func (r RESTConfig) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	opened, err := r.start(ctx, options)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func (r RESTConfig) start(ctx context.Context, options target.StartOptions) (*apiserver.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	r, err := r.started()
	if err == nil {
		err = r.waitReachable(ctx)
	}
	if err != nil {
		return nil, err
	}
	all := r.options
	all.Config, all.Progress = r.Config, r.Progress
	all.Endpoints, all.Patience = options.Endpoints, options.Patience
	cluster := r.cluster
	if cluster == nil {
		cluster = LocalKind(ctx, r.Config)
	}
	return connection{Options: all, transport: r.Transport, cluster: cluster}.open(ctx)
}

// started returns the API server of the Environment, if there is one.
func (r RESTConfig) started() (RESTConfig, error) {
	if r.Environment == nil {
		return r, nil
	}
	if r.Config = r.Environment.Config; r.Config == nil {
		return r, errors.New("the Environment of controller-runtime is not started: call its Start before the run, and Stop after it")
	}
	r.options.KubeConfig = r.Environment.KubeConfig
	existing := strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") // as controller-runtime
	if set := r.Environment.UseExistingCluster; set != nil {
		existing = *set
	}
	if !existing {
		r.options.Kind, r.options.Disposable, r.options.Served, r.options.UnderTest = framework.TargetEnvtest, true, true, true
	}
	return r, nil
}

// waitReachable waits for any response, so that later requests can have longer limits.
func (r RESTConfig) waitReachable(ctx context.Context) error {
	if r.Config == nil {
		return errors.New("use API server: RESTConfig.Config is nil: set it")
	}
	err := apiserver.WaitForResponse(ctx, r.Config, cmp.Or(r.firstResponse, FirstResponse))
	if err == nil || !errors.Is(err, framework.ErrNoResponse) {
		return err
	}
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err // without the URL
	}
	return fmt.Errorf("reach API server at %s: %w: %w; check that it is running and that the address is right", r.Config.Host, ErrUnreachable, err)
}

// nodesLimit limits the request for the nodes.
const nodesLimit = 5 * time.Second

// LocalKind returns the kind cluster on this machine that a configuration leads to, or
// nil if it is not known to be one.
func LocalKind(ctx context.Context, config *rest.Config) *kind.Cluster {
	ctx, cancel := context.WithTimeout(ctx, nodesLimit)
	defer cancel()
	client, err := corev1client.NewForConfig(apiserver.Limited(config))
	if err != nil {
		return nil
	}
	nodes, err := client.Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(nodes.Items) == 0 {
		return nil
	}
	found, err := kind.Of(ctx, nodes.Items[0].Spec.ProviderID, config)
	if err != nil {
		return nil
	}
	return found
}
