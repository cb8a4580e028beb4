package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/framework/kind"
	"github.com/admissiontest/admissiontest/internal/apiserver"
	"github.com/admissiontest/admissiontest/internal/target"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// ErrKubeconfig marks a kubeconfig that cannot be used: it does not exist, cannot be read,
// is malformed, or does not have the context.
var ErrKubeconfig = errors.New("there is no usable kubeconfig")

// Kubeconfig provides the API server of a kubeconfig. It starts no server with a profile:
// Start returns target.ErrNoProfiles.
type Kubeconfig struct {
	// Path is the file. Empty means the files that KUBECONFIG names, or ~/.kube/config, or the ServiceAccount of
	// this pod if there is none of them.
	Path string
	// Context is the context to use. Empty means the current context.
	Context string
	// Transport is how the API server reaches the Hooks. The zero value tries what works.
	Transport Transport
	// Disposable is true if the API server is only for tests and has no other clients: scenarios run as they are,
	// without isolation too. False means that the API server is of others.
	Disposable bool
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)

	// firstResponse replaces FirstResponse in tests. 0 means FirstResponse.
	firstResponse time.Duration
}

// Check waits for the first response of the API server and checks the rights that every run
// needs. Nothing is created. It returns the errors of Connect and
// apiserver.ErrRightsMissing.
func (k Kubeconfig) Check(ctx context.Context) error {
	server, err := k.server()
	if err == nil {
		err = k.of(server.Check(ctx))
	}
	return err
}

// Version returns "": the API server is running, and its version is known after Start.
func (Kubeconfig) Version(context.Context) (string, error) { return "", nil }

// Start returns the API server as a target. It returns the errors of Connect and of
// RESTConfig.Start.
func (k Kubeconfig) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	server, err := k.server()
	if err != nil {
		return nil, err
	}
	opened, err := server.Start(ctx, options)
	return opened, k.of(err)
}

// of returns an error with the kubeconfig in it.
func (k Kubeconfig) of(err error) error {
	if err != nil {
		err = fmt.Errorf("use %s: %w", k, err)
	}
	return err
}

// servedMark is the extension of the cluster in a kubeconfig that "admissiontest serve" prints.
const servedMark = "admissiontest.dev/serve"

// MarkServed returns a kubeconfig with the mark that its API server is one of "admissiontest serve".
func MarkServed(kubeconfig []byte) ([]byte, error) {
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, cluster := range loaded.Clusters {
		cluster.Extensions = map[string]runtime.Object{servedMark: &runtime.Unknown{Raw: []byte("{}"), ContentType: runtime.ContentTypeJSON}}
	}
	return clientcmd.Write(*loaded)
}

// server reads the kubeconfig, and returns its API server. Every error is an ErrKubeconfig.
func (k Kubeconfig) server() (RESTConfig, error) {
	server := RESTConfig{Transport: k.Transport, Progress: k.Progress, firstResponse: k.firstResponse}
	loaded, err := k.load()
	if err == nil {
		server.Config, err = clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	}
	if err == nil {
		server.options.KubeConfig, err = clientcmd.Write(*loaded)
	}
	if err != nil {
		return server, fmt.Errorf("read %s: %w: %w", k, ErrKubeconfig, err)
	}
	served := false
	for _, cluster := range loaded.Clusters { // the only one
		_, served = cluster.Extensions[servedMark]
	}
	server.options.Disposable, server.options.Served, server.options.Outlives = served || k.Disposable, served, k.Disposable
	return server, nil
}

// Connect reads the kubeconfig and waits for the first response of its API server. The
// errors come from Config, and ErrUnreachable if it does not respond within
// FirstResponse.
func (k Kubeconfig) Connect(ctx context.Context) (*rest.Config, error) {
	server, err := k.server()
	if err != nil {
		return nil, err
	}
	return server.Config, k.of(server.waitReachable(ctx))
}

// Config reads the kubeconfig. It sends no request. Every error is an ErrKubeconfig.
func (k Kubeconfig) Config() (*rest.Config, error) {
	server, err := k.server()
	return server.Config, err
}

// String returns "kubeconfig FILE, context C", or says that it is the ServiceAccount of this pod.
func (k Kubeconfig) String() string {
	if k.isInCluster() {
		return "the ServiceAccount of this pod"
	}
	text := "kubeconfig " + strings.Join(k.files(), string(os.PathListSeparator))
	if k.Context != "" {
		text += ", context " + k.Context
	}
	return text
}

// files returns the files that the kubeconfig is merged from.
func (k Kubeconfig) files() []string {
	if k.Path != "" {
		return []string{k.Path}
	}
	return clientcmd.NewDefaultClientConfigLoadingRules().Precedence
}

// load reads the files that exist and merges them. Only the chosen context is left, which can be used.
func (k Kubeconfig) load() (*api.Config, error) {
	loaded, err := k.merge()
	if err != nil {
		return nil, err
	}
	if k.Context != "" {
		loaded.CurrentContext = k.Context
	}
	return loaded, choose(loaded)
}

func (k Kubeconfig) merge() (*api.Config, error) {
	found := 0
	for _, name := range k.files() {
		data, err := userfile.Read(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		found++
		// The error of clientcmd for this has Go types in it.
		var fields map[string]any
		if err := yaml.Unmarshal(data, &fields); err != nil {
			return nil, fmt.Errorf("%s is malformed: want a YAML or JSON mapping of kind Config: %w", name, err)
		}
	}
	if found == 0 {
		if k.isInCluster() {
			return ofPod()
		}
		return nil, errors.New("the file does not exist; give one with --kubeconfig FILE or in KUBECONFIG")
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	return rules.Load()
}

// isInCluster reports whether this process is in a pod, and there is no kubeconfig.
func (k Kubeconfig) isInCluster() bool {
	return k.Path == "" && os.Getenv("KUBERNETES_SERVICE_HOST") != "" && !slices.ContainsFunc(k.files(), func(name string) bool {
		_, err := os.Stat(name)
		return !errors.Is(err, os.ErrNotExist)
	})
}

// ofPod returns a kubeconfig for the ServiceAccount of this pod.
func ofPod() (*api.Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	const name = "in-cluster"
	return &api.Config{
		CurrentContext: name,
		Clusters:       map[string]*api.Cluster{name: {Server: config.Host, CertificateAuthority: config.CAFile}},
		AuthInfos:      map[string]*api.AuthInfo{name: {TokenFile: config.BearerTokenFile}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
	}, nil
}

// choose leaves only the current context, and checks that the files that it names can be read.
func choose(loaded *api.Config) error {
	if loaded.CurrentContext == "" {
		return errors.New("it has no current-context, and --context is not given")
	}
	if err := api.MinifyConfig(loaded); err != nil { // it names the context or cluster that is missing
		return err
	}
	var named []string
	for _, cluster := range loaded.Clusters {
		named = append(named, cluster.CertificateAuthority)
	}
	for _, user := range loaded.AuthInfos {
		named = append(named, user.ClientCertificate, user.ClientKey, user.TokenFile)
	}
	for _, file := range named {
		if file == "" {
			continue
		}
		if _, err := userfile.Read(file); err != nil {
			return fmt.Errorf("its context %q names a file that cannot be used: %w", loaded.CurrentContext, err)
		}
	}
	return nil
}

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

// Kind provides a kind cluster that it creates and deletes. It starts no server with a
// profile: Start returns target.ErrNoProfiles.
type Kind struct {
	// Cluster configures the cluster to create. Its Progress is replaced by Progress.
	Cluster kind.Options
	// Transport is how the API server reaches the Hooks. The zero value tries what works.
	Transport Transport
	// Progress receives a line for each longer action. Nil discards them.
	Progress func(string)
}

// Check returns nil: the user of a kind cluster is its administrator.
func (Kind) Check(context.Context) error { return nil }

// Version returns "": it is not known before the cluster runs.
func (Kind) Version(context.Context) (string, error) { return "", nil }

// Start creates the cluster and returns it as a target, whose Close deletes it. It returns the errors of
// kind.Create, and an ErrWebhookUnreachable if the API server cannot call a
// Hook. If it fails, the cluster is deleted.
func (k Kind) Start(ctx context.Context, options target.StartOptions) (target.Target, error) {
	if options.Profile != nil {
		return nil, target.ErrNoProfiles
	}
	if k.Progress == nil {
		k.Progress = func(string) {}
	}
	create := k.Cluster
	create.Progress = k.Progress
	made, err := kind.Create(ctx, create)
	if err != nil {
		return nil, err
	}
	end := func(ctx context.Context) error {
		k.Progress("deleting kind cluster " + made.Name())
		return made.Delete(ctx)
	}
	started, err := k.start(ctx, made, options)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("use kind cluster %s: %w", made.Name(), err), end(context.WithoutCancel(ctx)))
	}
	started.AfterClose(end)
	return started, nil
}

func (k Kind) start(ctx context.Context, made *kind.Cluster, options target.StartOptions) (*apiserver.Target, error) {
	config, err := made.RESTConfig()
	if err != nil {
		return nil, err
	}
	return RESTConfig{
		Config: config, Transport: k.Transport, Progress: k.Progress, cluster: made,
		options: apiserver.Options{Kind: framework.TargetKind, Disposable: true, KubeConfig: []byte(made.Kubeconfig())},
	}.start(ctx, options)
}
