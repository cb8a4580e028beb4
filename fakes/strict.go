package fakes

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/internal/minor"
	"github.com/admissiontest/admissiontest/internal/suggest"
	"k8s.io/apiserver/pkg/admission"
)

// findings returns the errors that Strict adds, for the plugins in the order of their
// initialization. The caller must hold the lock.
func (i *Initializer) findings() []error {
	if len(i.plugins) == 0 {
		return []error{errors.New("initialize plugins: none was initialized: call Initialize, or give this Initializer to admission.Plugins")}
	}
	var found []error
	for _, state := range i.plugins {
		if state.times > 1 {
			found = append(found, fmt.Errorf("initialize %T: it was initialized %d times: an API server does it once for each plugin", state.plugin, state.times))
			continue // its setters were called twice, too
		}
		for _, method := range settersOfPlugin(state.plugin) {
			if err := i.judge(state, method); err != nil {
				found = append(found, fmt.Errorf("initialize %T: %w", state.plugin, err))
			}
		}
	}
	return append(found, i.unwanted()...)
}

// judge returns an error if a setter was not called once.
func (i *Initializer) judge(state *initialized, method reflect.Method) error {
	names := state.calls[method.Name]
	switch {
	case len(names) > 1:
		return fmt.Errorf("%s was called %d times, by %s: give the second the name of the first, which it then replaces",
			method.Name, len(names), strings.Join(names, " and by "))
	case len(names) == 1 || state.failed[method.Name] || i.excused(method.Name):
		return nil
	}
	return fmt.Errorf("%s was not called: %s", method.Name, i.why(state.plugin, method))
}

// excused reports whether Skip named the injection of a method.
func (i *Initializer) excused(method string) bool {
	return slices.ContainsFunc(i.steps, func(s step) bool {
		return i.skipped[s.name] && slices.Contains(s.methods, method)
	})
}

// why returns why a setter was not called, and what to do.
func (i *Initializer) why(plugin admission.Interface, method reflect.Method) string {
	for _, trap := range minor.NeverInjected() {
		if trap.Method == method.Name {
			return fmt.Sprintf("Kubernetes declares %s, and no API server injects it: have the plugin get it another way, or add fakes.Inject(%q, ...) to NewInitializer and the same to your API server",
				trap.Interface, trap.Interface)
		}
	}
	var known []string
	for _, wants := range minor.Table() {
		known = append(known, wants.Method)
		if wants.Method != method.Name {
			continue
		}
		if i.replaced(wants.Interface) {
			return fmt.Sprintf("the Injector that replaces %s is for another interface: give it one that has this method", wants.Interface)
		}
		if _, err := wants.Setter(plugin); err != nil {
			return err.Error()
		}
	}
	return fmt.Sprintf("no API server calls it%s; add fakes.Inject(name, func(p interface{ %s%s }) { ... }) to NewInitializer, or unexport it",
		suggest.DidYouMean(method.Name, known), method.Name, strings.TrimPrefix(method.Type.String(), "func"))
}

// replaced reports whether an Injector replaces Kubernetes' own one.
func (i *Initializer) replaced(name string) bool {
	return slices.ContainsFunc(i.steps, func(s step) bool { return s.name == name && s.replaces })
}

// unwanted returns an error for each extra Injector that no plugin wanted, or whose setters are not
// known.
func (i *Initializer) unwanted() []error {
	wanted := map[string]bool{}
	for _, state := range i.plugins {
		for _, names := range slices.Collect(maps.Values(state.calls)) {
			for _, name := range names {
				wanted[name] = true
			}
		}
	}
	if wanted["WantsUnconditionalAuthorizer"] {
		wanted["WantsAuthorizer"] = true // one value for both
	}
	var found []error
	for _, s := range i.steps {
		switch {
		case s.extra && !wanted[s.name] && !i.skipped[s.name]:
			found = append(found, fmt.Errorf("inject %s: no plugin wanted it: the plugin does not implement its interface, or no longer needs it", s.name))
		case s.concrete != "":
			found = append(found, fmt.Errorf("inject %s: it is for the type %s, so which setters it calls is not known: give Inject an interface that has the setter", s.name, s.concrete))
		}
	}
	return found
}

// settersOfPlugin returns the exported methods with the name of a setter, except methods of
// admission.Handler, which plugins embed and call themselves. The function types have no receiver.
func settersOfPlugin(plugin admission.Interface) []reflect.Method {
	handler := reflect.TypeFor[*admission.Handler]()
	t, v := reflect.TypeOf(plugin), reflect.ValueOf(plugin)
	var setters []reflect.Method
	for n := range t.NumMethod() {
		method := t.Method(n)
		method.Type = v.Method(n).Type()
		if !injects(method.Name) {
			continue
		}
		if own, ok := handler.MethodByName(method.Name); ok && own.Type.NumIn() == method.Type.NumIn()+1 {
			continue
		}
		setters = append(setters, method)
	}
	return setters
}

// same reports whether two plugins are the same pointer. Pointers to structs without fields
// are not compared, since they can be equal for different plugins.
func same(a, b admission.Interface) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if va.Kind() != reflect.Pointer || vb.Kind() != reflect.Pointer || va.Type() != vb.Type() {
		return false
	}
	return va.Type().Elem().Size() > 0 && va.Pointer() == vb.Pointer()
}
