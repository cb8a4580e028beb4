package kind

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
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
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/admissiontest/admissiontest/internal/suggest"
)

// ErrNoCluster marks a cluster that kind does not know of.
var ErrNoCluster = errors.New("no such kind cluster")

// RunPrefix begins the name of every cluster that is given none: it ends with the
// run that made it. Prefix begins that of those that are to stay, too.
const (
	Prefix    = "admissiontest-"
	RunPrefix = Prefix + "run-"
)

// Bounds of a creation: of the wait for its nodes to be ready, and after it was
// cancelled of the wait for kind to notice. Bounds of a deletion: of all tries, and
// the time between them.
const (
	readyLimit  = 2 * time.Minute
	cancelLimit = 30 * time.Second
	cancelAgain = 500 * time.Millisecond
	goneLimit   = 30 * time.Second
	deleteAgain = 200 * time.Millisecond
)

// Options say which cluster to create. The zero value is one node of kind's
// default image.
type Options struct {
	// Name is the cluster's. Empty makes up one that begins with RunPrefix.
	Name string
	// NodeImage is the image of every node, whatever Config says. Empty is kind's
	// own choice.
	NodeImage string
	// Config is a file with a kind configuration. Empty is kind's default.
	Config string
	// Logs is a folder for the logs of a cluster that could not be created. Empty
	// loses them.
	Logs string
	// Progress receives one line for each longer thing that is done. Nil discards them.
	Progress func(string)
}

// Cluster is a kind cluster. It is safe for use by several goroutines.
type Cluster struct {
	name       string
	runtime    containers
	provider   *kindcluster.Provider
	kubeconfig string
	// dir has the kubeconfig that kind writes while it works.
	dir string
}

// Create makes a cluster and waits until its control plane is ready. The error is
// an ErrNoRuntime without a container runtime, and otherwise what kind ran into.
// It leaves nothing behind when it fails or ctx is cancelled; see "Not promised".
func Create(ctx context.Context, options Options) (*Cluster, error) {
	if options.Progress == nil {
		options.Progress = func(string) {}
	}
	if options.Name == "" {
		options.Name = MakeUpName(RunPrefix)
	}
	if options.Config != "" {
		if _, err := os.Stat(options.Config); err != nil {
			return nil, fmt.Errorf("create kind cluster %s: read its configuration: %w", options.Name, err)
		}
	}
	c, err := find(ctx, options.Name, options.Progress)
	if err != nil {
		return nil, fmt.Errorf("create kind cluster %s: %w", options.Name, err)
	}
	if names, err := c.list(); err == nil && slices.Contains(names, c.name) {
		return nil, fmt.Errorf("create kind cluster %s: there is one of that name, which is left alone", c.name)
	}
	if c.dir, err = os.MkdirTemp("", "admissiontest-kind-"); err != nil {
		return nil, fmt.Errorf("create kind cluster %s: %w", c.name, err)
	}
	if err := c.create(ctx, options); err != nil {
		return nil, fmt.Errorf("create kind cluster %s: %w", c.name, err)
	}
	return c, nil
}

// MakeUpName returns a name for a cluster that no other has.
func MakeUpName(prefix string) string { return prefix + strings.ToLower(rand.Text()[:5]) }

// create lets kind work, and takes everything back unless that succeeds.
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
		err = told(err)
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
		// What there is; kind's own error says what the matter is.
		_ = c.provider.CollectLogs(c.name, options.Logs)
	}
	return errors.Join(err, c.remove())
}

// abandon deletes what kind has made so far, until it has noticed.
func (c *Cluster) abandon(done <-chan error) error {
	again, limit := time.NewTicker(cancelAgain), time.NewTimer(cancelLimit)
	defer again.Stop()
	defer limit.Stop()
	for {
		_ = c.deleteNodes() // once more below
		select {
		case <-done: //nolint:errcheck // what was taken from under it
			return c.remove()
		case <-limit.C:
			go func() {
				<-done //nolint:errcheck // what was taken from under it
				_ = c.remove()
			}()
			return nil
		case <-again.C:
		}
	}
}

// Use finds a cluster that there is. The error is an ErrNoRuntime or an
// ErrNoCluster.
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
		there := "there is none at all"
		if len(names) > 0 {
			there = "there are " + strings.Join(names, ", ")
		}
		return nil, fmt.Errorf("use kind cluster %s: %w%s; %s", name, ErrNoCluster, suggest.DidYouMean(name, names), there)
	}
	if err := c.readKubeconfig(); err != nil {
		return nil, fmt.Errorf("use kind cluster %s: %w", name, err)
	}
	return c, nil
}

// Leftovers finds the clusters whose name was made up by Create: those of runs
// that were killed, or are still at work. The error is an ErrNoRuntime where there
// can be none.
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

// list returns the names of all clusters of kind.
func (c *Cluster) list() ([]string, error) {
	names, err := c.provider.List()
	return names, told(err)
}

// Of finds the cluster of this machine that a node belongs to, by the node's
// spec.providerID, and that a client configuration leads to: both must have one
// certificate authority. The error is an ErrNoCluster where the node is none of
// kind's or its cluster runs elsewhere, and can be an ErrNoRuntime.
func Of(ctx context.Context, providerID string, config *rest.Config) (*Cluster, error) {
	parts := strings.Split(strings.TrimPrefix(providerID, "kind://"), "/")
	if !strings.HasPrefix(providerID, "kind://") || len(parts) != 3 {
		return nil, fmt.Errorf("find the kind cluster of node %q: %w: its providerID is none of kind's", providerID, ErrNoCluster)
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
		return nil, fmt.Errorf("find the kind cluster of node %q: %w on this machine: the one named %s here is another", providerID, ErrNoCluster, c.name)
	}
	return c, nil
}

// sameAuthority reports whether two configurations trust the same first
// certificate.
func sameAuthority(a, b *rest.Config) bool {
	first := func(config *rest.Config) *x509.Certificate {
		data := config.CAData
		if len(data) == 0 && config.CAFile != "" {
			data, _ = os.ReadFile(config.CAFile)
		}
		block, _ := pem.Decode(data)
		if block == nil {
			return nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		return certificate
	}
	one, other := first(a), first(b)
	return one != nil && other != nil && one.Equal(other)
}

// find prepares to use a cluster that may not exist.
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

// Name is the cluster's.
func (c *Cluster) Name() string { return c.name }

// Kubeconfig is a kubeconfig that leads to the cluster from this machine.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// RESTConfig leads to the cluster from this machine, as its administrator.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(c.kubeconfig))
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig of kind cluster %s: %w", c.name, err)
	}
	return config, nil
}

func (c *Cluster) readKubeconfig() (err error) {
	if c.kubeconfig, err = c.provider.KubeConfig(c.name, false); err != nil {
		return fmt.Errorf("read its kubeconfig: %w", told(err))
	}
	return nil
}

// ownKubeconfig is a file of ours for kind to write to.
func (c *Cluster) ownKubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// Gateways returns the addresses of this machine in the network of the nodes, as
// far as the container runtime tells them. Where it runs in a virtual machine they
// are that machine's.
func (c *Cluster) Gateways(ctx context.Context) ([]netip.Addr, error) {
	found, err := c.runtime.gateways(ctx)
	if err != nil {
		return nil, fmt.Errorf("find gateway of kind cluster %s: %w", c.name, err)
	}
	return found, nil
}

// LoadImage loads an image archive, as docker save writes it, into every node.
func (c *Cluster) LoadImage(ctx context.Context, archive string) error {
	list, err := c.provider.ListInternalNodes(c.name)
	if err != nil {
		return fmt.Errorf("load image into kind cluster %s: %w", c.name, told(err))
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
		return fmt.Errorf("node %s: %w", node, told(err))
	}
	return nil
}

// ExportLogs writes the logs of the nodes to a folder, which it makes. The error
// tells of those that are missing.
func (c *Cluster) ExportLogs(ctx context.Context, dir string) error {
	done := make(chan error, 1)
	go func() { done <- c.provider.CollectLogs(c.name, dir) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("export logs of kind cluster %s: %w", c.name, told(err))
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Delete deletes the cluster. One that is gone already is fine. It is not
// interrupted by ctx, which would leave half a cluster.
func (c *Cluster) Delete(context.Context) error {
	if err := c.remove(); err != nil {
		return fmt.Errorf("delete kind cluster %s: %w; kind delete cluster --name %s does it", c.name, err, c.name)
	}
	return nil
}

// Release gives up what this process has of the cluster, which stays.
func (c *Cluster) Release() error {
	if c.dir == "" {
		return nil
	}
	return os.RemoveAll(c.dir)
}

func (c *Cluster) remove() error {
	// Docker tells of a container that is being created, and knows none of its name
	// when it is to be removed: that is no error, and the container comes about.
	err := wait.PollUntilContextTimeout(context.Background(), deleteAgain, goneLimit, true, func(context.Context) (bool, error) {
		if err := c.deleteNodes(); err != nil {
			return false, err
		}
		names, err := c.list()
		return !slices.Contains(names, c.name), err
	})
	if wait.Interrupted(err) {
		err = fmt.Errorf("its nodes are still there after %s", goneLimit)
	}
	return errors.Join(err, c.Release())
}

func (c *Cluster) deleteNodes() error {
	// Without a path kind would edit the user's kubeconfig.
	path := c.ownKubeconfig()
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "admissiontest-kind-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		path = filepath.Join(dir, "kubeconfig")
	}
	return told(c.provider.Delete(c.name, path))
}

// lastLines is how much of a failed command's output an error has.
const lastLines = 12

// told returns kind's error with what the command that failed printed last.
func told(err error) error {
	run := kindexec.RunErrorForError(err)
	if run == nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(run.Output)), "\n")
	lines = lines[max(0, len(lines)-lastLines):]
	if said := strings.Join(lines, "\n"); said != "" {
		return fmt.Errorf("%w:\n%s", err, said)
	}
	return err
}
