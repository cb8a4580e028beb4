package rules_test

import (
	"fmt"
	"io"
	"maps"
	"strings"
	"sync/atomic"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// factoryMutants returns the broken plugins for configuration.go and instances.go.
func factoryMutants() map[string]mutant {
	var latest atomic.Pointer[kubernetes.Interface]
	return map[string]mutant{
		"K1": {factory: swallowing},
		"K2": {factory: forgiving},
		"K3": {build: func(p *sound) admission.Interface { return &shared{p, &latest} }},
		"K4": {
			build: func(p *sound) admission.Interface { return p },
			subject: func(s *check.Subject) {
				factory := func(config io.Reader) (admission.Interface, error) { return newSound(config) }
				s.Source = harness.FromRegister("Sound", func(plugins *admission.Plugins) {
					plugins.Register("Sound", factory)
					plugins.Register("SoundAlias", factory)
				})
			},
		},
	}
}

// swallowing ignores a configuration that it cannot parse.
func swallowing(config io.Reader) (admission.Interface, error) {
	if config == nil {
		return newSound(nil)
	}
	data, err := io.ReadAll(config)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if yaml.Unmarshal(data, new(any)) != nil {
		return newSound(nil)
	}
	return newSound(strings.NewReader(string(data)))
}

// forgiving ignores unknown fields.
func forgiving(config io.Reader) (admission.Interface, error) {
	if config == nil {
		return newSound(nil)
	}
	data, err := io.ReadAll(config)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	fields := map[string]any{}
	if yaml.Unmarshal(data, &fields) != nil || len(fields) == 0 {
		return newSound(strings.NewReader(string(data)))
	}
	maps.DeleteFunc(fields, func(name string, _ any) bool { return name != "team" && name != "tolerations" })
	known, err := yaml.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return newSound(strings.NewReader(string(known)))
}

// shared uses the client of the plugin that was built last.
type shared struct {
	*sound
	latest *atomic.Pointer[kubernetes.Interface]
}

func (p *shared) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.latest.Store(&client)
	p.sound.SetExternalKubeClientSet(sharedClient{client, p.latest})
}

type sharedClient struct {
	kubernetes.Interface
	latest *atomic.Pointer[kubernetes.Interface]
}

func (c sharedClient) CoreV1() corev1client.CoreV1Interface { return (*c.latest.Load()).CoreV1() }
