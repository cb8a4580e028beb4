package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework/engine"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/suggest"
)

// ErrKubeconfig marks a kubeconfig that names no API server to use: missing,
// unreadable, malformed, or without the context.
var ErrKubeconfig = errors.New("no usable kubeconfig")

// Kubeconfig gives the API server that a kubeconfig names. It gives no server
// profile: Start returns engine.ErrNoProfiles for one.
type Kubeconfig struct {
	// Path is the file. Empty takes the files that KUBECONFIG names, or else
	// ~/.kube/config.
	Path string
	// Context is the context in it. Empty takes the current one.
	Context string
	// Transport is how the API server reaches the Hooks. The zero value takes what
	// works.
	Transport Transport
	// Progress receives one line for each longer thing that is done. Nil discards them.
	Progress func(string)

	// firstAnswer stands in for FirstAnswer in tests. 0 is FirstAnswer.
	firstAnswer time.Duration
}

// Start returns the API server as a target. Errors are those of Connect.
func (k Kubeconfig) Start(ctx context.Context, profile *scenario.Server) (engine.Target, error) {
	if profile != nil {
		return nil, engine.ErrNoProfiles
	}
	config, err := k.Connect(ctx)
	if err != nil {
		return nil, err
	}
	target, err := RESTConfig{Config: config, Transport: k.Transport, Progress: k.Progress}.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("use %s: %w", k, err)
	}
	return target, nil
}

// Connect reads the kubeconfig and waits for the first answer of its API server.
// Errors are those of Config, and ErrUnreachable where nothing answers within
// FirstAnswer.
func (k Kubeconfig) Connect(ctx context.Context) (*rest.Config, error) {
	config, err := k.Config()
	if err != nil {
		return nil, err
	}
	if err := (RESTConfig{Config: config, firstAnswer: k.firstAnswer}).knock(ctx); err != nil {
		return nil, fmt.Errorf("use %s: %w", k, err)
	}
	return config, nil
}

// Config reads the kubeconfig. It asks no server. Every error is an ErrKubeconfig.
func (k Kubeconfig) Config() (*rest.Config, error) {
	loaded, err := k.load()
	if err == nil {
		err = k.choose(loaded)
	}
	var config *rest.Config
	if err == nil {
		config, err = clientcmd.NewNonInteractiveClientConfig(*loaded, k.Context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", k, ErrKubeconfig, err)
	}
	return config, nil
}

// String names the kubeconfig as an operator would: "kubeconfig FILE, context C".
func (k Kubeconfig) String() string {
	text := "kubeconfig " + strings.Join(k.files(), string(os.PathListSeparator))
	if k.Context != "" {
		text += ", context " + k.Context
	}
	return text
}

// files are those that can make up the kubeconfig.
func (k Kubeconfig) files() []string {
	if k.Path != "" {
		return []string{k.Path}
	}
	return clientcmd.NewDefaultClientConfigLoadingRules().Precedence
}

// load reads the files that there are and merges them.
func (k Kubeconfig) load() (*api.Config, error) {
	found := 0
	for _, name := range k.files() {
		data, err := os.ReadFile(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		found++
		// clientcmd's own error for this shows Go types.
		var fields map[string]any
		if err := yaml.Unmarshal(data, &fields); err != nil {
			return nil, fmt.Errorf("%s is malformed: want a YAML or JSON mapping of kind Config: %w", name, err)
		}
	}
	if found == 0 {
		return nil, errors.New("there is no such file; give one with --kubeconfig FILE or in KUBECONFIG")
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	return rules.Load()
}

// choose checks that there is a context to use.
func (k Kubeconfig) choose(loaded *api.Config) error {
	name := k.Context
	if name == "" {
		name = loaded.CurrentContext
	}
	if chosen := loaded.Contexts[name]; chosen != nil {
		if loaded.Clusters[chosen.Cluster] == nil {
			return fmt.Errorf("its context %q is of cluster %q, which it does not describe", name, chosen.Cluster)
		}
		return nil
	}
	names := slices.Sorted(maps.Keys(loaded.Contexts))
	there := "it has no context at all"
	if len(names) > 0 {
		there = "it has the contexts " + strings.Join(names, ", ")
	}
	if name == "" {
		return fmt.Errorf("it sets no current-context, and none is asked for with --context; %s", there)
	}
	return fmt.Errorf("it has no context %q%s; %s", name, suggest.DidYouMean(name, names), there)
}
