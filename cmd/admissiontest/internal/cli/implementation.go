package cli

import (
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

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
			return nil, usage("--implementation %q: want KEY=VALUE with one of the keys %s%s", setting, strings.Join(implementationKeys(), ", "), suggest.DidYouMean(key, implementationKeys()))
		case !ok || value == "":
			return nil, usage("--implementation %q: want %s=VALUE", setting, key)
		case key == "contact":
			out.Contact = append(out.Contact, value)
		case *fields[key] != "":
			return nil, usage("--implementation %q: %s is given twice", setting, key)
		default:
			*fields[key] = value
		}
	}
	return out, nil
}
