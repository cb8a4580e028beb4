package reference

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/scheme"
)

// calls has the names and configurations of the plugins that were called.
type calls []string

// factory returns the factory of a plugin that notes its calls.
func (c *calls) factory(name string) admission.Factory {
	return func(config io.Reader) (admission.Interface, error) {
		note := name
		if config != nil {
			text, err := io.ReadAll(config)
			if err != nil {
				return nil, err
			}
			note += " " + string(text)
		}
		return noting{admission.NewHandler(admission.Create), func() { *c = append(*c, note) }}, nil
	}
}

type noting struct {
	*admission.Handler
	note func()
}

func (n noting) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	n.note()
	return nil
}

// ordered are the plugins of TestSwitchesAreThoseOfTheAPIServer in their order; off is the one
// that is off by default.
var ordered = []string{"C", "A", "D", "B"}

const off = "D"

// byOptions calls the chain that the options of an API server make.
func byOptions(t *testing.T, w *fakes.World, enable, disable []string, file string) calls {
	t.Helper()
	var called calls
	made := &options.AdmissionOptions{
		RecommendedPluginOrder: ordered, DefaultOffPlugins: sets.New(off), Plugins: admission.NewPlugins(),
		EnablePlugins: enable, DisablePlugins: disable, ConfigFile: file,
	}
	for _, name := range ordered {
		made.Plugins.Register(name, called.factory(name))
	}
	config := server.NewConfig(scheme.Codecs)
	if err := made.ApplyTo(config, w.Informers(), w.Client(), w.Dynamic(), utilfeature.DefaultFeatureGate, compatibility.DefaultBuildEffectiveVersion()); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "test"}}
	attributes := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "test", "p", corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil)
	if err := config.AdmissionControl.(admission.MutationInterface).Admit(t.Context(), attributes, nil); err != nil {
		t.Fatal(err)
	}
	return called
}

// byChain calls a chain of the unit tier.
func byChain(t *testing.T, w *fakes.World, enable, disable []string, file string) calls {
	t.Helper()
	var called calls
	chain := harness.Chain{DefaultOffPlugins: []string{off}, EnablePlugins: enable, DisablePlugins: disable, ConfigFile: file}
	for _, name := range ordered {
		chain.Plugins = append(chain.Plugins, harness.FromFactory(called.factory(name)).Named(name))
	}
	h := harness.NewChain(t, chain, harness.WithWorld(w))
	h.Admit(framework.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "test"}}))
	return called
}

// TestSwitchesAreThoseOfTheAPIServer: for each pair of switches that an API server accepts, and
// with its configuration file, a chain calls the plugins that the API server's own options call.
func TestSwitchesAreThoseOfTheAPIServer(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "admission.yaml")
	for path, text := range map[string]string{
		file: "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n" +
			"- {name: A, configuration: {inline: true}}\n- {name: D, path: d.yaml}\n",
		filepath.Join(folder, "d.yaml"): "of a file",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := fakes.NewWorld(t)
	compared := 0
	for number := range 81 { // for each of the four plugins: in neither list, enabled, disabled
		var enable, disable []string
		for at, left := 0, number; at < len(ordered); at, left = at+1, left/3 {
			switch left % 3 {
			case 1:
				enable = append([]string{ordered[at]}, enable...) // the order of the flag does not matter
			case 2:
				disable = append(disable, ordered[at])
			}
		}
		config := ""
		if number%2 == 1 {
			config = file
		}
		want, got := byOptions(t, w, enable, disable, config), byChain(t, w, enable, disable, config)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("enabled %q, disabled %q, file %q: -API server +chain:\n%s", enable, disable, config, diff)
		}
		compared += len(want)
	}
	if want := 3*54 + 27; compared != want { // the plugin that is off by default is called in 27 cases
		t.Errorf("%d calls were compared, want %d", compared, want)
	}
}
