package observe

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
)

// firstOfTheEnd is the plugin before which Kubernetes puts new plugins
// (k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go): webhooks, policies, quota and
// AlwaysDeny are at the end.
const firstOfTheEnd = "MutatingAdmissionPolicy"

// Package is a package with plugins.
type Package struct {
	// Path is its import path.
	Path string
	// Register is its function of that name.
	Register func(*admission.Plugins)
	// Last means that the plugins of this package are called after all others. Otherwise they are called where
	// Kubernetes adds new plugins.
	Last bool
	// Off means that the plugins are off unless a flag turns them on.
	Off bool
}

// Server is the part of the AdmissionOptions of an API server
// (k8s.io/apiserver/pkg/server/options) that Add changes.
type Server struct {
	// Plugins are the registered plugins.
	Plugins *admission.Plugins
	// Order is the order of the plugins. Add does not write to the slice: it can be a variable
	// of another package.
	Order []string
	// Off has the names of the plugins that are off by default.
	Off sets.Set[string]
}

// Add registers the plugins of the packages, in their order, and returns their names by package. It
// returns an error for a plugin whose name exists already.
func Add(s *Server, packages []Package) (map[string][]string, error) {
	names := map[string][]string{}
	var errs []error
	for _, p := range packages {
		added, err := add(s, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("plugin package %s: %w", p.Path, err))
		}
		names[p.Path] = added
	}
	return names, errors.Join(errs...)
}

func add(s *Server, p Package) ([]string, error) {
	own := admission.NewPlugins()
	if err := p.register(own); err != nil {
		return nil, err
	}
	names := own.Registered()
	if len(names) == 0 {
		return nil, errors.New("function Register registers no plugin")
	}
	for _, name := range names {
		if slices.Contains(s.Plugins.Registered(), name) {
			return nil, fmt.Errorf("function Register registers %s, and kube-apiserver has a plugin of that name: choose another one", name)
		}
	}
	if err := p.register(s.Plugins); err != nil {
		return nil, err
	}
	at := slices.Index(s.Order, firstOfTheEnd)
	if p.Last || at < 0 {
		at = len(s.Order)
	}
	s.Order = slices.Insert(slices.Clone(s.Order), at, names...)
	if p.Off {
		s.Off = s.Off.Clone().Insert(names...)
	}
	return names, nil
}

// register calls Register. A panic is an error.
func (p Package) register(plugins *admission.Plugins) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("function Register panicked at %s: %v", PanicPosition(), cause)
		}
	}()
	p.Register(plugins)
	return nil
}
