package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1alpha1 "k8s.io/apiserver/pkg/apis/apiserver/v1alpha1"
	"sigs.k8s.io/yaml"
)

// configurations reads ConfigFile as an API server does.
func (c Chain) configurations(enabled []string) (admission.ConfigProvider, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiserver.AddToScheme, apiserverv1alpha1.AddToScheme, apiserverv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("make the scheme of configuration files: %w", err)
		}
	}
	provider, err := admission.ReadAdmissionConfiguration(enabled, c.ConfigFile, scheme)
	if err != nil {
		return nil, fmt.Errorf("read Chain.ConfigFile %q: %w", c.ConfigFile, err)
	}
	return provider, c.checkPaths(enabled)
}

// checkPaths returns an error for a plugin's file that cannot be read. The API server's code ends
// the process.
func (c Chain) checkPaths(enabled []string) error {
	if c.ConfigFile == "" {
		return nil
	}
	content, err := os.ReadFile(c.ConfigFile)
	if err != nil {
		return fmt.Errorf("read Chain.ConfigFile: %w", err)
	}
	var file apiserverv1.AdmissionConfiguration // v1alpha1 has the same fields
	if err := yaml.Unmarshal(content, &file); err != nil {
		return fmt.Errorf("read Chain.ConfigFile %q: %w", c.ConfigFile, err)
	}
	for _, plugin := range file.Plugins {
		if plugin.Path == "" || plugin.Configuration != nil || !slices.Contains(enabled, plugin.Name) {
			continue
		}
		path := plugin.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(c.ConfigFile), path)
		}
		if _, err := os.ReadFile(path); err != nil {
			return fmt.Errorf("read Chain.ConfigFile %q: the configuration of plugin %q: %w", c.ConfigFile, plugin.Name, err)
		}
	}
	return nil
}
