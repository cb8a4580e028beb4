package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
)

// Chain describes the admission plugins of an API server, and which of them are on. The fields have
// the same meaning as in AdmissionOptions of package k8s.io/apiserver/pkg/server/options.
type Chain struct {
	// Plugins are the plugins in the order in which the API server calls them. Each has a name:
	// use FromRegister, or Named for a Source of FromFactory. Required.
	Plugins []Source
	// DefaultOffPlugins are the names of the plugins that are off unless EnablePlugins names them.
	DefaultOffPlugins []string
	// EnablePlugins and DisablePlugins are the names in --enable-admission-plugins and
	// --disable-admission-plugins. No plugin can be in both.
	EnablePlugins, DisablePlugins []string
	// ConfigFile is the path in --admission-control-config-file. Empty means that no plugin has a
	// configuration.
	ConfigFile string
	// Decorators wrap each plugin after its initialization. The first decorator is the innermost of
	// them. Inside all of them is the API server's own decorator, which counts the calls of the
	// plugin in metrics.
	Decorators admission.Decorators
}

// NewChain is [New] for several plugins. It builds and initializes the plugins with the code of an
// API server, [admission.Plugins.NewFromPlugins], and wraps them for reinvocation. [Harness.Plugin]
// returns the whole chain, and the Trace of a Result has the calls of all plugins. The options
// [WithConfig] and [WithForeignMutation] are errors here: use Chain.ConfigFile, and a plugin that
// changes the object.
func NewChain(t framework.T, chain Chain, options ...Option) *Harness {
	t.Helper()
	h, err := BuildChain(t, chain, options...)
	return closeAfter(t, h, err)
}

// BuildChain is [Build] for several plugins: see [NewChain].
func BuildChain(t framework.T, chain Chain, options ...Option) (*Harness, error) {
	return build(t, options, func(h *Harness, settings *config) error {
		switch {
		case settings.yaml != nil:
			return errors.New("build chain: WithConfig is for one plugin: write a file and set ConfigFile of the Chain")
		case settings.foreign != nil:
			return errors.New("build chain: WithForeignMutation is for one plugin: add a plugin that changes the object to Plugins of the Chain")
		}
		if err := h.startChain(chain); err != nil {
			return fmt.Errorf("build chain: %w", err)
		}
		return nil
	})
}

// startChain builds and initializes the enabled plugins.
func (h *Harness) startChain(chain Chain) error {
	defer h.own.Set(context.Background())()
	if err := chain.check(); err != nil {
		return err
	}
	enabled := chain.enabled()
	configurations, err := chain.configurations(enabled)
	if err != nil {
		return err
	}
	var current string // the plugin that is being built
	var unbuilt error  // NewFromPlugins does not wrap it
	var built []admission.Interface
	registry := admission.NewPlugins()
	for _, source := range chain.Plugins {
		registry.Register(source.name, func(config io.Reader) (plugin admission.Interface, err error) {
			current = source.name
			plugin, unbuilt = source.Plugin(config)
			built = append(built, plugin)
			return plugin, unbuilt
		})
	}
	h.chained = true
	// The recorder is the one of the kube-apiserver that admissiontest builds.
	decorators := append(admission.Decorators{new(observe.Recorder), admission.DecoratorFunc(admissionmetrics.WithControllerMetrics)}, chain.Decorators...)
	err = guard("the initialization", func() error {
		made, err := registry.NewFromPlugins(enabled, configurations, h.initializer, decorators)
		if err == nil {
			h.plugin = admissionmetrics.WithStepMetrics(made)
		}
		return err
	})
	var panicked *PanicError
	switch misused := h.initializer.Err(); {
	case unbuilt != nil:
		return unbuilt
	case errors.As(err, &panicked):
		panicked.In += " of plugin " + fmt.Sprintf("%q", current)
		return err
	case misused != nil:
		return fmt.Errorf("initialize plugins: %w", misused)
	case err != nil:
		return fmt.Errorf("%w: give what the plugin misses with harness.WithWorld or harness.WithInjectors, or its configuration with ConfigFile", err)
	}
	h.findInformers(context.Background(), built...)
	return nil
}

// check returns an error for wrong names in a Chain. An API server would end its process for a name
// that occurs twice.
func (c Chain) check() error {
	if len(c.Plugins) == 0 {
		return errors.New("Chain.Plugins is empty: give the plugins in their order")
	}
	var wrong []error
	numbers := map[string]int{}
	var names []string
	for at, source := range c.Plugins {
		number := at + 1
		if err := source.checkName(); err != nil {
			wrong = append(wrong, fmt.Errorf("plugin %d of Chain.Plugins: %w", number, err))
			continue
		}
		if earlier, twice := numbers[source.name]; twice {
			wrong = append(wrong, fmt.Errorf("plugins %d and %d of Chain.Plugins have the name %q: a plugin can be in a chain only once", earlier, number, source.name))
		}
		numbers[source.name] = number
		names = append(names, source.name)
	}
	for _, of := range []struct {
		field string
		names []string
	}{{"DefaultOffPlugins", c.DefaultOffPlugins}, {"EnablePlugins", c.EnablePlugins}, {"DisablePlugins", c.DisablePlugins}} {
		for _, name := range of.names {
			if !contains(names, name) {
				wrong = append(wrong, fmt.Errorf("field %s of the Chain has %q, and Plugins has only %s%s", of.field, name, list(names), suggest.DidYouMean(name, names)))
			}
		}
	}
	for _, name := range c.EnablePlugins {
		if contains(c.DisablePlugins, name) {
			wrong = append(wrong, fmt.Errorf("plugin %q is in Chain.EnablePlugins and in Chain.DisablePlugins: an API server does not start with both", name))
		}
	}
	return errors.Join(wrong...)
}

// checkName returns why a Source cannot be in a chain, or nil.
func (s Source) checkName() error {
	switch {
	case s.wrong != nil:
		return s.wrong
	case s.factory == nil:
		return errors.New("the Source is empty: use harness.FromRegister or harness.FromFactory")
	case s.name == "":
		return errors.New("it has no name: use harness.FromRegister, or Named")
	}
	// A plugin that is off is not built, so its name is checked here.
	registered, ok, err := s.Registered()
	if err == nil && ok && !contains(registered, s.name) {
		return fmt.Errorf("plugin %q is not registered: register registers %s%s", s.name, list(registered), suggest.DidYouMean(s.name, registered))
	}
	return err
}

// enabled returns the names of the enabled plugins in their order.
func (c Chain) enabled() []string {
	var names []string
	for _, source := range c.Plugins {
		off := slices.Contains(c.DefaultOffPlugins, source.name) || slices.Contains(c.DisablePlugins, source.name)
		if !off || slices.Contains(c.EnablePlugins, source.name) {
			names = append(names, source.name)
		}
	}
	return names
}

// calls returns the lines about calls of plugins in the text of a failure.
func calls(trace framework.Trace) []string {
	lines := make([]string, 0, len(trace))
	for _, call := range trace {
		if call.Plugin == nil {
			continue
		}
		text := fmt.Sprintf("%s round %d  %s: ", call.Phase, call.Plugin.Round, call.Plugin.Name)
		switch {
		case !call.Plugin.Handled:
			text += "not called, does not handle " + call.Plugin.Operation
		case call.Plugin.Refused != nil:
			text += fmt.Sprintf("refused with %d %s", call.Plugin.Refused.Code, cmp.Or(call.Plugin.Refused.Reason, "Unknown"))
		case len(call.Plugin.Changed) > 0:
			text += "changed " + strings.Join(call.Plugin.Changed, ", ")
			if call.Plugin.MoreChanged > 0 {
				text += fmt.Sprintf(" and %d more", call.Plugin.MoreChanged)
			}
		case call.Plugin.NotComparable != "":
			text += "what it changed is not known: " + call.Plugin.NotComparable
		default:
			text += "admitted"
		}
		lines = append(lines, text)
	}
	return lines
}
