package kind

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

var (
	// ErrNoRuntime means: no container runtime that kind supports responds on this machine.
	ErrNoRuntime = errors.New("no container runtime that kind can use")
	// ErrNoCluster means: kind has no such cluster on this machine.
	ErrNoCluster = errors.New("the kind cluster does not exist")
)

// RunPrefix is the prefix of the names that Create generates. RunClusters finds clusters by it.
const RunPrefix = "admissiontest-run-"

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
	// NodeImage is the image of the node. Empty means kind's default.
	NodeImage string
	// Progress receives one line for each step. Nil discards the lines.
	Progress func(string)
}

// Cluster is a kind cluster. It is safe for use by several goroutines.
type Cluster struct {
	name       string
	provider   *kindcluster.Provider
	kubeconfig string
}

// Create creates a cluster and waits until its control plane is ready. Without a container
// runtime the error is an ErrNoRuntime; otherwise it is the error of kind. If Create fails or
// ctx is cancelled, it removes the cluster; see "Not promised".
func Create(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{name: options.Name}
	if c.name == "" {
		c.name = RunPrefix + strings.ToLower(rand.Text()[:5])
	}
	var names []string
	var err error
	if c.provider, names, err = open(ctx, options.Progress); err != nil {
		return nil, fmt.Errorf("create kind cluster %s: %w", c.name, err)
	}
	if slices.Contains(names, c.name) {
		return nil, fmt.Errorf("create kind cluster %s: a cluster of that name exists already; delete it, or choose another name", c.name)
	}
	if err := c.create(ctx, options.NodeImage); err != nil {
		return nil, fmt.Errorf("create kind cluster %s: %w", c.name, err)
	}
	return c, nil
}

// open finds the container runtime, as kind's command does, and returns the names of all kind clusters.
func open(ctx context.Context, progress func(string)) (provider *kindcluster.Provider, names []string, err error) {
	runtime, err := detect(ctx)
	if err != nil {
		return nil, nil, err
	}
	provider = kindcluster.NewProvider(runtime.option, kindcluster.ProviderWithLogger(logger{progress}))
	var found []string
	err = within(ctx, func() (err error) {
		found, err = provider.List()
		return err
	})
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return provider, found, err
}

// create runs kind. If that fails, it removes the cluster.
func (c *Cluster) create(ctx context.Context, image string) error {
	dir, err := userfile.MkdirTemp("admissiontest-kind-") // kind would write into the user's kubeconfig
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := withOutput(c.provider.Create(c.name, kindcluster.CreateWithNodeImage(image),
			kindcluster.CreateWithKubeconfigPath(filepath.Join(dir, "kubeconfig")), kindcluster.CreateWithWaitForReady(readyLimit)))
		done <- errors.Join(err, os.RemoveAll(dir))
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), c.abandon(done))
	}
	if err == nil {
		err = c.readKubeconfig()
	}
	if err != nil {
		return errors.Join(err, c.remove())
	}
	return nil
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
	provider, names, err := open(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("use kind cluster %s: %w", name, err)
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("use kind cluster %s: %w%s", name, ErrNoCluster, suggest.DidYouMean(name, names))
	}
	c := &Cluster{name: name, provider: provider}
	if err := c.readKubeconfig(); err != nil {
		return nil, fmt.Errorf("use kind cluster %s: %w", name, err)
	}
	return c, nil
}

// RunClusters returns the clusters with names that Create generated: clusters of killed runs, and
// of runs that are still active. The error is an ErrNoRuntime, or that of kind.
func RunClusters(ctx context.Context) ([]*Cluster, error) {
	provider, names, err := open(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("list kind clusters: %w", err)
	}
	var found []*Cluster
	for _, name := range names {
		if strings.HasPrefix(name, RunPrefix) {
			found = append(found, &Cluster{name: name, provider: provider})
		}
	}
	return found, nil
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
	theirs := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(theirs); err != nil || !bytes.Equal(bytes.TrimSpace(own.CAData), bytes.TrimSpace(theirs.CAData)) {
		return nil, fmt.Errorf("find the kind cluster of node %q: %w on this machine: the cluster %s here has another certificate authority", providerID, ErrNoCluster, c.name)
	}
	return c, nil
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

// LoadImage loads an image archive, in the format of docker save, into all nodes.
func (c *Cluster) LoadImage(ctx context.Context, archive string) error {
	err := within(ctx, func() error {
		list, err := c.provider.ListInternalNodes(c.name)
		if err != nil || len(list) == 0 {
			return cmp.Or(err, ErrNoCluster)
		}
		var g errgroup.Group
		for _, node := range list {
			g.Go(func() error {
				file, err := os.Open(archive)
				if err != nil {
					return err
				}
				defer func() { _ = file.Close() }()
				return nodeutils.LoadImageArchive(node, file)
			})
		}
		return g.Wait()
	})
	if err != nil {
		return fmt.Errorf("load image into kind cluster %s: %w", c.name, err)
	}
	return nil
}

// Delete deletes the cluster. It is not an error if the cluster does not exist. Delete ignores
// the end of its context, so that it does not leave a part of the cluster.
func (c *Cluster) Delete(context.Context) error {
	if err := c.remove(); err != nil {
		return fmt.Errorf("delete kind cluster %s: %w; delete it with: kind delete cluster --name %s", c.name, err, c.name)
	}
	return nil
}

func (c *Cluster) remove() error {
	// Docker lists a container that is still being created, but cannot delete it yet and
	// returns no error. So deletion is repeated until the cluster is not listed.
	err := wait.PollUntilContextTimeout(context.Background(), deletePoll, deleteLimit, true, func(context.Context) (bool, error) {
		if err := c.deleteNodes(); err != nil {
			return false, err
		}
		names, err := c.provider.List()
		return !slices.Contains(names, c.name), withOutput(err)
	})
	if wait.Interrupted(err) {
		err = fmt.Errorf("timed out after %s waiting for its nodes to be deleted", deleteLimit)
	}
	return err
}

func (c *Cluster) deleteNodes() error {
	dir, err := userfile.MkdirTemp("admissiontest-kind-") // kind would edit the user's kubeconfig
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return withOutput(c.provider.Delete(c.name, filepath.Join(dir, "kubeconfig")))
}

// within does something for which kind takes no context. It does not wait for its end when the context ends.
func within(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return withOutput(err)
	case <-ctx.Done():
		return ctx.Err()
	}
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

// logger sends the lines of kind to a function, which can be nil.
type logger struct{ progress func(string) }

// Info sends the lines that report the begin of a step. Lines that report its end are left out.
func (l logger) Info(message string) {
	for line := range strings.Lines(message) {
		if text := strings.TrimSpace(line); text != "" && l.progress != nil && !strings.Contains(text, "✓") {
			l.progress("kind: " + text)
		}
	}
}

// Warn logs a warning.
func (l logger) Warn(message string) { l.Info("warning: " + message) }

// Warnf is Warn with a format.
func (l logger) Warnf(format string, arguments ...any) { l.Warn(fmt.Sprintf(format, arguments...)) }

// Error logs an error.
func (l logger) Error(message string) { l.Info("error: " + message) }

// Errorf is Error with a format.
func (l logger) Errorf(format string, arguments ...any) { l.Error(fmt.Sprintf(format, arguments...)) }

// Infof is Info with a format.
func (l logger) Infof(format string, arguments ...any) { l.Info(fmt.Sprintf(format, arguments...)) }

// Enabled is true: V returns another logger for debugging messages.
func (l logger) Enabled() bool { return true }

// V discards debugging messages.
func (l logger) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return l
}
