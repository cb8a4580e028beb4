package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"github.com/admissiontest/admissiontest/internal/userfile"
)

// readKnownFailing reads the file of --known-failing: a YAML mapping from the name of a
// scenario, an area or a pattern to the reason. It returns the reasons by the names of
// scenarios.
func readKnownFailing(file string, all []scenario.Scenario) (map[string]string, error) {
	content, err := userfile.Read(file)
	if err != nil {
		return nil, usagef("--known-failing: %w", err)
	}
	var listed map[string]string
	if err := yaml.UnmarshalStrict(content, &listed); err != nil {
		return nil, usagef("--known-failing: %s: want a map, NAME: reason: %w", file, err)
	}
	reasons := map[string]string{}
	for _, pattern := range slices.Sorted(maps.Keys(listed)) {
		names, err := engine.Match(all, pattern)
		if err == nil && strings.TrimSpace(listed[pattern]) == "" {
			err = fmt.Errorf("%q has no reason; want NAME: reason", pattern)
		}
		if err != nil {
			return nil, usagef("--known-failing: %s: %w", file, err)
		}
		for _, name := range names {
			if reasons[name] != "" {
				return nil, usagef("--known-failing: %s: scenario %s is listed twice, also by %q", file, name, pattern)
			}
			reasons[name] = listed[pattern]
		}
	}
	return reasons, nil
}

// implementationKeys are the keys of --implementation.
func implementationKeys() []string {
	return []string{"organization", "project", "version", "url", "contact"}
}

// parseImplementation reads the values of --implementation, KEY=VALUE each. Contact can
// occur several times.
func parseImplementation(settings []string) (*framework.Implementation, error) {
	if len(settings) == 0 {
		return nil, nil //nolint:nilnil // the flag is not given
	}
	out := &framework.Implementation{}
	fields := map[string]*string{"organization": &out.Organization, "project": &out.Project, "version": &out.Version, "url": &out.URL}
	for _, setting := range settings {
		key, value, ok := strings.Cut(setting, "=")
		switch {
		case !slices.Contains(implementationKeys(), key):
			return nil, usagef("--implementation %q: want KEY=VALUE with one of the keys %s%s", setting, strings.Join(implementationKeys(), ", "), suggest.DidYouMean(key, implementationKeys()))
		case !ok || value == "":
			return nil, usagef("--implementation %q: want %s=VALUE", setting, key)
		case key == "contact":
			out.Contact = append(out.Contact, value)
		case *fields[key] != "":
			return nil, usagef("--implementation %q: %s is given twice", setting, key)
		default:
			*fields[key] = value
		}
	}
	return out, nil
}
