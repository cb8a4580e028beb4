package seeds

import (
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Configuration is the configuration file of the plugin.
type Configuration struct {
	// ExemptNamespaces are not checked at all. Default: kube-system.
	ExemptNamespaces []string `json:"exemptNamespaces,omitempty"`
	// ExemptUsers and ExemptGroups may do everything. Default for the groups: system:masters.
	ExemptUsers  []string `json:"exemptUsers,omitempty"`
	ExemptGroups []string `json:"exemptGroups,omitempty"`
	// MaxReplicas is the limit for tenants without one of their own; 0 forbids replicas. Default: 20.
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`
	// NodeSelector is for the pods of all tenants.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// DeprecatedRegistries give a warning.
	DeprecatedRegistries []string `json:"deprecatedRegistries,omitempty"`
	// Tolerations are added to the pods of all tenants.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// defaultMaxReplicas is the default of Configuration.MaxReplicas.
const defaultMaxReplicas int32 = 20

// sharedConfig is only used by seeded bug package-state.
var sharedConfig = &Configuration{}

func loadConfiguration(config io.Reader) (*Configuration, error) {
	c := &Configuration{}
	if bug("package-state") {
		c = sharedConfig // BUG: all instances share one configuration
	}
	if config != nil {
		data, err := io.ReadAll(config)
		if err != nil {
			return nil, fmt.Errorf("read configuration of %s: %w", PluginName, err)
		}
		unmarshal := yaml.UnmarshalStrict
		if bug("config-not-strict") {
			unmarshal = func(data []byte, into any, _ ...yaml.JSONOpt) error { return yaml.Unmarshal(data, into) } // BUG: unknown fields
		}
		if err := unmarshal(data, c); err != nil {
			return nil, fmt.Errorf("parse configuration of %s: %w", PluginName, err)
		}
	}
	if config == nil && bug("config-nil-no-defaults") {
		return c, nil // BUG: no defaults without a file
	}
	c.setDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", PluginName, err)
	}
	return c, nil
}

func (c *Configuration) setDefaults() {
	if c.ExemptNamespaces == nil {
		c.ExemptNamespaces = []string{"kube-system"}
	}
	if c.ExemptGroups == nil {
		c.ExemptGroups = []string{"system:masters"}
	}
	if c.MaxReplicas == nil {
		limit := defaultMaxReplicas
		c.MaxReplicas = &limit
	}
}

func (c *Configuration) validate() error {
	if *c.MaxReplicas < 0 && !bug("config-negative") { // BUG: not validated
		return fmt.Errorf("maxReplicas: %d is negative", *c.MaxReplicas)
	}
	lists := []struct {
		field  string
		values []string
	}{
		{"exemptNamespaces", c.ExemptNamespaces}, {"exemptUsers", c.ExemptUsers},
		{"exemptGroups", c.ExemptGroups}, {"deprecatedRegistries", c.DeprecatedRegistries},
	}
	for _, list := range lists {
		seen := sets.New[string]()
		for i, value := range list.values {
			if strings.TrimSpace(value) == "" {
				return fmt.Errorf("%s[%d]: empty", list.field, i)
			}
			if seen.Has(value) {
				return fmt.Errorf("%s[%d]: duplicate %q", list.field, i, value)
			}
			seen.Insert(value)
		}
	}
	for _, namespace := range c.ExemptNamespaces {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("exemptNamespaces: %q: %s", namespace, strings.Join(problems, ", "))
		}
	}
	for key, value := range c.NodeSelector {
		if problems := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(problems) > 0 {
			return fmt.Errorf("nodeSelector[%s]: %s", key, strings.Join(problems, ", "))
		}
	}
	for i, toleration := range c.Tolerations {
		if toleration.Key == "" {
			return fmt.Errorf("tolerations[%d].key: required", i)
		}
	}
	return nil
}
