package flags

import (
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/cmd/admissiontest/internal/exit"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// ImplementationKeys are the keys of --implementation.
func ImplementationKeys() []string {
	return []string{"organization", "project", "version", "url", "contact"}
}

// ParseImplementation reads the values of --implementation, KEY=VALUE each. Contact can
// occur several times.
func ParseImplementation(settings []string) (*framework.Implementation, error) {
	if len(settings) == 0 {
		return nil, nil //nolint:nilnil // the flag is not given
	}
	out := &framework.Implementation{}
	fields := map[string]*string{"organization": &out.Organization, "project": &out.Project, "version": &out.Version, "url": &out.URL}
	for _, setting := range settings {
		key, value, ok := strings.Cut(setting, "=")
		switch {
		case !slices.Contains(ImplementationKeys(), key):
			return nil, exit.Usagef("--implementation %q: want KEY=VALUE with one of the keys %s%s", setting, strings.Join(ImplementationKeys(), ", "), suggest.DidYouMean(key, ImplementationKeys()))
		case !ok || value == "":
			return nil, exit.Usagef("--implementation %q: want %s=VALUE", setting, key)
		case key == "contact":
			out.Contact = append(out.Contact, value)
		case *fields[key] != "":
			return nil, exit.Usagef("--implementation %q: %s is given twice", setting, key)
		default:
			*fields[key] = value
		}
	}
	return out, nil
}
