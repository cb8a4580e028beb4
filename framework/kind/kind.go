package kind

import (
	"context"
	"crypto/rand"
	"crypto/x509"

	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// ErrNoCluster means: kind has no such cluster on this machine.
var ErrNoCluster = errors.New("the kind cluster does not exist")

const (
	// Prefix is the prefix of the names of clusters that stay after a run.
	Prefix = "admissiontest-"
	// RunPrefix is the prefix of the names that Create generates. RunClusters finds
	// clusters by it.
	RunPrefix = Prefix + "run-"
)

// Limits of Create and Delete.
const (
	readyLimit  = 2 * time.Minute        // for the nodes to be ready
	cancelLimit = 30 * time.Second       // for kind to end after a cancellation
	cancelPoll  = 500 * time.Millisecond // between two deletions of its containers
	deleteLimit = 30 * time.Second       // for all attempts to delete a cluster
	deletePoll  = 200 * time.Millisecond // between two of them
)

// Options configure a new cluster. The zero value means one node with kind's default image.
type Options struct {
	// Name is the name of the cluster. Empty generates one with RunPrefix.
	Name string
	// NodeImage is the image of all nodes, including those in Config. Empty means the
	// images in Config, or kind's default.
	NodeImage string
	// Config is a file with a kind configuration. Empty means kind's default.
	Config string
	// Logs is a folder for the logs of the nodes if the creation fails. Empty discards
	// the logs.
	Logs string
	// Progress receives one line for each step. Nil discards the lines.
	Progress func(string)
}

// Cluster is a kind cluster. It is safe for use by several goroutines.
type Cluster struct {
	name       string
	runtime    containers
	provider   *kindcluster.Provider
	kubeconfig string
	// dir is a temporary directory for the kubeconfig that kind writes.
	dir string
}

// Create creates a cluster and waits until its control plane is ready. Without a container
// runtime the error is an ErrNoRuntime; otherwise it is the error of kind. If Create fails or
// ctx is cancelled, it removes the cluster; see "Not promised".
func Create(ctx context.Context, options Options) (*Cluster, error) {
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	if options.Name == "" {
		options.Name = GenerateName(RunPrefix)
	}
	if options.Config != "" {
		if _, err := userfile.Read(options.Config); err != nil {
			return nil, fmt.Errorf("create kind cluster %s: read its configuration: %w", options.Name, err)
		}
	}
	c, err := find(ctx, options.Name, options.Progress)
	if err != nil {
		return nil, fmt.Errorf("create kind cluster %s: %w", options.Name, err)
	}
	if names, err := c.list(); err == nil && slices.Contains(names, c.name) {
		return nil, fmt.Errorf("create kind cluster %s: a cluster of that name exists already; delete it, or choose another name", c.name)
	}
	if c.dir, err = userfile.MkdirTemp("admissiontest-kind-"); err != nil {
		return nil, fmt.Errorf("create kind cluster %s: %w", c.name, err)
	}
	if err := c.create(ctx, options); err != nil {
		return nil, fmt.Errorf("create kind cluster %s: %w", c.name, err)
	}
	return c, nil
}

// GenerateName returns a new name for a cluster: prefix and five random characters.
func GenerateName(prefix string) string { return prefix + strings.ToLower(rand.Text()[:5]) }

// create runs kind. If that fails, it removes the cluster.
func (c *Cluster) create(ctx context.Context, options Options) error {
	done := make(chan error, 1)
	go func() {
		done <- c.provider.Create(c.name,
			kindcluster.CreateWithConfigFile(options.Config), kindcluster.CreateWithNodeImage(options.NodeImage),
			kindcluster.CreateWithKubeconfigPath(c.ownKubeconfig()), kindcluster.CreateWithWaitForReady(readyLimit),
			kindcluster.CreateWithRetain(true)) // for its logs
	}()
	var err error
	select {
	case err = <-done:
		err = withOutput(err)
	case <-ctx.Done():
		return errors.Join(ctx.Err(), c.abandon(done))
	}
	if err == nil {
		err = c.readKubeconfig()
	}
	if err == nil {
		return nil
	}
	if options.Logs != "" {
		// Some logs can be missing. The error of kind is what matters.
		_ = c.provider.CollectLogs(c.name, options.Logs)
	}
	return errors.Join(err, c.remove())
}

// abandon deletes the containers of a cluster again and again until kind has ended.
func (c *Cluster) abandon(done <-chan error) error {
	again, limit := time.NewTicker(cancelPoll), time.NewTimer(cancelLimit)
	defer again.Stop()
	defer limit.Stop()
	for {
		_ = c.deleteNodes() // repeated until kind has ended
		select {
		case <-done: //nolint:errcheck // kind fails because its containers were deleted
			return c.remove()
		case <-limit.C:
			go func() {
				<-done //nolint:errcheck // kind fails because its containers were deleted
				_ = c.remove()
			}()
			return nil
		case <-again.C:
		}
	}
}

// Use returns an existing cluster. The error is an ErrNoRuntime, an ErrNoCluster, or that of
// kind.
func Use(ctx context.Context, name string) (*Cluster, error) {
	c, err := find(ctx, name, func(string) {})
	if err != nil {
		return nil, fmt.Errorf("use kind cluster %s: %w", name, err)
	}
	names, err := c.list()
	if err != nil {
		return nil, fmt.Errorf("use kind cluster %s: %w", name, err)
	}
	if !slices.Contains(names, name) {
		existing := "there are no kind clusters on this machine"
		if len(names) > 0 {
			existing = "the kind clusters are " + strings.Join(names, ", ")
		}
		return nil, fmt.Errorf("use kind cluster %s: %w%s; %s", name, ErrNoCluster, suggest.DidYouMean(name, names), existing)
	}
	if err := c.readKubeconfig(); err != nil {
		return nil, fmt.Errorf("use kind cluster %s: %w", name, err)
	}
	return c, nil
}

// RunClusters returns the clusters with names that Create generated: clusters of killed runs, and
// of runs that are still active. The error is an ErrNoRuntime, or that of kind.
func RunClusters(ctx context.Context) ([]*Cluster, error) {
	all, err := find(ctx, "", func(string) {})
	if err != nil {
		return nil, fmt.Errorf("list kind clusters: %w", err)
	}
	names, err := all.list()
	if err != nil {
		return nil, fmt.Errorf("list kind clusters: %w", err)
	}
	var found []*Cluster
	for _, name := range names {
		if strings.HasPrefix(name, RunPrefix) {
			found = append(found, &Cluster{name: name, runtime: all.runtime, provider: all.provider})
		}
	}
	return found, nil
}

// list returns the names of all kind clusters.
func (c *Cluster) list() ([]string, error) {
	names, err := c.provider.List()
	return names, withOutput(err)
}

// Of returns the cluster on this machine that a node belongs to. providerID is the node's
// spec.providerID, and config is the configuration that was used to read it. The cluster must
// have the certificate authority of config: another machine can have a cluster of the same
// name. If the node is not a node of kind, or its cluster is not on this machine, the error
// is an ErrNoCluster. It can also be an ErrNoRuntime.
func Of(ctx context.Context, providerID string, config *rest.Config) (*Cluster, error) {
	parts := strings.Split(strings.TrimPrefix(providerID, "kind://"), "/")
	if !strings.HasPrefix(providerID, "kind://") || len(parts) != 3 {
		return nil, fmt.Errorf("find the kind cluster of node %q: %w: its providerID does not have the form kind://PROVIDER/CLUSTER/NODE", providerID, ErrNoCluster)
	}
	c, err := Use(ctx, parts[1])
	if err != nil {
		return nil, err
	}
	own, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	if !sameAuthority(own, config) {
		return nil, fmt.Errorf("find the kind cluster of node %q: %w on this machine: the cluster %s here has another certificate authority", providerID, ErrNoCluster, c.name)
	}
	return c, nil
}

// sameAuthority reports whether the first certificate authority of two configurations is the
// same.
func sameAuthority(a, b *rest.Config) bool {
	first := func(config *rest.Config) *x509.Certificate {
		data := config.CAData
		if len(data) == 0 && config.CAFile != "" {
			data, _ = os.ReadFile(config.CAFile)
		}
		certificates, err := cert.ParseCertsPEM(data)
		if err != nil {
			return nil
		}
		return certificates[0]
	}
	one, other := first(a), first(b)
	return one != nil && other != nil && one.Equal(other)
}

// find returns a Cluster that need not exist.
func find(ctx context.Context, name string, progress func(string)) (*Cluster, error) {
	runtime, err := detect(ctx)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		name: name, runtime: runtime,
		provider: kindcluster.NewProvider(runtime.option, kindcluster.ProviderWithLogger(logger{progress})),
	}, nil
}

// Name returns the name of the cluster.
func (c *Cluster) Name() string { return c.name }

// Kubeconfig returns the content of a kubeconfig file for use on this machine.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// RESTConfig returns a client configuration of the cluster's administrator, for use on this
// machine.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(c.kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig of kind cluster %s: %w", c.name, err)
	}
	return config, nil
}

func (c *Cluster) readKubeconfig() (err error) {
	if c.kubeconfig, err = c.provider.KubeConfig(c.name, false); err != nil {
		return fmt.Errorf("read its kubeconfig: %w", withOutput(err))
	}
	return nil
}

// ownKubeconfig returns the path of the file that kind writes instead of the user's
// kubeconfig.
func (c *Cluster) ownKubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// Gateways returns the addresses of the container runtime's host in the network of the nodes,
// IPv4 first. If the runtime runs in a virtual machine, they are addresses of that machine.
func (c *Cluster) Gateways(ctx context.Context) ([]netip.Addr, error) {
	found, err := c.runtime.gateways(ctx)
	if err != nil {
		return nil, fmt.Errorf("find gateway of kind cluster %s: %w", c.name, err)
	}
	return found, nil
}

// LoadImage loads an image archive, in the format of docker save, into all nodes.
func (c *Cluster) LoadImage(ctx context.Context, archive string) error {
	list, err := c.provider.ListInternalNodes(c.name)
	if err != nil {
		return fmt.Errorf("load image into kind cluster %s: %w", c.name, withOutput(err))
	}
	if len(list) == 0 {
		return fmt.Errorf("load image into kind cluster %s: %w: it has no nodes", c.name, ErrNoCluster)
	}
	done := make(chan error, 1)
	go func() {
		var g errgroup.Group
		for _, node := range list {
			g.Go(func() error { return load(node, archive) })
		}
		done <- g.Wait()
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("load image into kind cluster %s: %w", c.name, err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func load(node nodes.Node, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := nodeutils.LoadImageArchive(node, file); err != nil {
		return fmt.Errorf("node %s: %w", node, withOutput(err))
	}
	return nil
}

// ExportLogs writes the logs of the nodes to a folder, which it creates. If some logs are
// missing, the error lists them.
func (c *Cluster) ExportLogs(ctx context.Context, dir string) error {
	done := make(chan error, 1)
	go func() { done <- c.provider.CollectLogs(c.name, dir) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("export logs of kind cluster %s: %w", c.name, withOutput(err))
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Delete deletes the cluster. It is not an error if the cluster does not exist. Delete ignores
// the end of its context, so that it does not leave a part of the cluster.
func (c *Cluster) Delete(context.Context) error {
	if err := c.remove(); err != nil {
		return fmt.Errorf("delete kind cluster %s: %w; delete it with: kind delete cluster --name %s", c.name, err, c.name)
	}
	return nil
}

// Release removes the temporary files of this process. The cluster stays.
func (c *Cluster) Release() error {
	if c.dir == "" {
		return nil
	}
	return os.RemoveAll(c.dir)
}

func (c *Cluster) remove() error {
	// Docker lists a container that is still being created, but cannot delete it yet and
	// returns no error. So deletion is repeated until the cluster is not listed.
	err := wait.PollUntilContextTimeout(context.Background(), deletePoll, deleteLimit, true, func(context.Context) (bool, error) {
		if err := c.deleteNodes(); err != nil {
			return false, err
		}
		names, err := c.list()
		return !slices.Contains(names, c.name), err
	})
	if wait.Interrupted(err) {
		err = fmt.Errorf("timed out after %s waiting for its nodes to be deleted", deleteLimit)
	}
	return errors.Join(err, c.Release())
}

func (c *Cluster) deleteNodes() error {
	// Without a path kind would edit the user's kubeconfig.
	path := c.ownKubeconfig()
	if c.dir == "" {
		dir, err := userfile.MkdirTemp("admissiontest-kind-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		path = filepath.Join(dir, "kubeconfig")
	}
	return withOutput(c.provider.Delete(c.name, path))
}

// lastLines is the number of lines of a failed command's output in an error.
const lastLines = 12

// withOutput adds the last lines of output to the error of a command that kind ran.
func withOutput(err error) error {
	run := kindexec.RunErrorForError(err)
	if run == nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(run.Output)), "\n")
	lines = lines[max(0, len(lines)-lastLines):]
	if text := strings.Join(lines, "\n"); text != "" {
		return fmt.Errorf("%w:\n%s", err, text)
	}
	return err
}
