package fakes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/fakes/effectiveversion"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/component-base/compatibility"
)

// base is what a plugin has at least.
type base struct{ *admission.Handler }

func (base) ValidateInitialization() error { return nil }

func (base) Settle() {} // no setter: its name only begins so

// Each of these is wrong in one way.
type (
	wantsNothing   struct{ base }
	wantsSchemas   struct{ base }
	wantsVersion   struct{ base }
	misspelt       struct{ base }
	ownSetter      struct{ base }
	wrongParameter struct{ base }
	panics         struct{ base }
	authorized     struct{ base }
	noValidator    struct{ *admission.Handler }
)

func (*wantsSchemas) SetSchemaResolver(resolver.SchemaResolver)              {}
func (*wantsVersion) InspectEffectiveVersion(compatibility.EffectiveVersion) {}
func (*misspelt) SetExternalKubeClientset(any)                               {}
func (*ownSetter) SetColour(red, green int) error                            { return nil }
func (*wrongParameter) SetRESTMapper(*meta.DefaultRESTMapper)                {}
func (*panics) SetAuthorizer(authorizer.Authorizer)                          { explode() }
func (*panics) SetRESTMapper(meta.RESTMapper)                                {}
func (*authorized) SetAuthorizer(authorizer.Authorizer)                      {}
func (*noValidator) SetAuthorizer(authorizer.Authorizer)                     {}

func explode() { none()["a"] = 1 }

func none() map[string]int { return nil }

// gardenerWants is Kubernetes' WantsAuthorizer under another name.
type gardenerWants interface {
	SetAuthorizer(authorizer.Authorizer)
	admission.InitializationValidator
}

func gardener(name string) fakes.Injector {
	return fakes.Inject(name, func(p gardenerWants) { p.SetAuthorizer(fakes.Allow()) })
}

// TestErr has a plugin or an Initializer that is wrong in one way, and the text for it.
func TestErr(t *testing.T) {
	for _, test := range []struct {
		name   string
		plugin admission.Interface
		make   func(w *fakes.World) *fakes.Initializer
		strict string
		lax    string
	}{
		{name: "nothing", plugin: &wantsNothing{}},
		{name: "schema resolver", plugin: &wantsSchemas{},
			strict: `initialize *fakes_test.wantsSchemas: SetSchemaResolver was not called: Kubernetes declares WantsSchemaResolver, and no API server injects it: have the plugin get it another way, or add fakes.Inject("WantsSchemaResolver", ...) to NewInitializer and the same to your API server`},
		{name: "effective version", plugin: &wantsVersion{},
			strict: `initialize *fakes_test.wantsVersion: call InspectEffectiveVersion of WantsEffectiveVersion: there is no value to give, so it was not called: add effectiveversion.Inject(effectiveversion.New(t, "1.36", "1.36")), of package fakes/effectiveversion, to NewInitializer`, lax: "same"},
		{name: "misspelt", plugin: &misspelt{},
			strict: `initialize *fakes_test.misspelt: SetExternalKubeClientset was not called: no API server calls it; did you mean "SetExternalKubeClientSet"?; add fakes.Inject(name, func(p interface{ SetExternalKubeClientset(interface {}) }) { ... }) to NewInitializer, or unexport it`},
		{name: "own setter", plugin: &ownSetter{},
			strict: `initialize *fakes_test.ownSetter: SetColour was not called: no API server calls it; add fakes.Inject(name, func(p interface{ SetColour(int, int) error }) { ... }) to NewInitializer, or unexport it`},
		{name: "wrong parameter", plugin: &wrongParameter{},
			strict: `initialize *fakes_test.wrongParameter: SetRESTMapper was not called: its type is func(*meta.DefaultRESTMapper), that of WantsRESTMapper is func(k8s.io/apimachinery/pkg/api/meta.RESTMapper): give it that type`},
		{name: "no validator", plugin: &noValidator{},
			strict: `initialize *fakes_test.noValidator: SetAuthorizer was not called: the plugin has no method ValidateInitialization() error, which is part of WantsAuthorizer: add it`},
		{name: "called twice", plugin: &authorized{},
			make:   func(w *fakes.World) *fakes.Initializer { return fakes.NewInitializer(w, gardener("gardener")) },
			strict: `initialize *fakes_test.authorized: SetAuthorizer was called 2 times, by WantsAuthorizer and by gardener: give the second the name of the first, which it then replaces`},
		{name: "in its place", plugin: &authorized{},
			make: func(w *fakes.World) *fakes.Initializer { return fakes.NewInitializer(w, gardener("WantsAuthorizer")) }},
		{name: "another interface in its place", plugin: &authorized{},
			make: func(w *fakes.World) *fakes.Initializer {
				return fakes.NewInitializer(w, fakes.Inject("WantsAuthorizer", func(kcpWants) {}))
			},
			strict: `initialize *fakes_test.authorized: SetAuthorizer was not called: the Injector that replaces WantsAuthorizer is for another interface: give it one that has this method
inject WantsAuthorizer: no plugin wanted it: the plugin does not implement its interface, or no longer needs it`},
		{name: "unwanted", plugin: &wantsNothing{},
			make: func(w *fakes.World) *fakes.Initializer {
				return fakes.NewInitializer(w, fakes.InjectAuthorizer(fakes.Deny()))
			},
			strict: `inject WantsAuthorizer: no plugin wanted it: the plugin does not implement its interface, or no longer needs it`},
		{name: "unwanted, and skipped", plugin: &wantsNothing{},
			make: func(w *fakes.World) *fakes.Initializer {
				return fakes.NewInitializer(w, gardener("gardener")).Skip("gardener")
			}},
		{name: "no interface", plugin: &ownSetter{},
			make: func(w *fakes.World) *fakes.Initializer {
				return fakes.NewInitializer(w, fakes.Inject("colour", func(p *ownSetter) { _ = p.SetColour(1, 2) }))
			},
			strict: `initialize *fakes_test.ownSetter: SetColour was not called: no API server calls it; add fakes.Inject(name, func(p interface{ SetColour(int, int) error }) { ... }) to NewInitializer, or unexport it
inject colour: it is for the type *fakes_test.ownSetter, so which setters it calls is not known: give Inject an interface that has the setter`},
		{name: "unknown name", plugin: &wantsNothing{},
			make:   func(w *fakes.World) *fakes.Initializer { return fakes.NewInitializer(w).Skip("WantsAuthoriser") },
			strict: `skip "WantsAuthoriser": no injection has this name; did you mean "WantsAuthorizer"?`, lax: "same"},
		{name: "order", plugin: &wantsNothing{},
			make: func(w *fakes.World) *fakes.Initializer {
				return fakes.NewInitializer(w).InOrder(func([]string) []string { return []string{"a"} })
			},
			strict: `order injections: the Order must return each of the 15 names once, it returned ["a"]`, lax: "same"},
		{name: "nil value", plugin: &authorized{},
			make:   func(w *fakes.World) *fakes.Initializer { return fakes.NewInitializer(w, fakes.InjectAuthorizer(nil)) },
			strict: `read Injector 1 of NewInitializer: WantsAuthorizer: the value is nil: give one, leave the Injector out, or Skip the injection`, lax: "same"},
		{name: "nil version", plugin: &wantsNothing{},
			make:   func(w *fakes.World) *fakes.Initializer { return fakes.NewInitializer(w, effectiveversion.Inject(nil)) },
			strict: `read Injector 1 of NewInitializer: WantsEffectiveVersion: it has nothing to inject: the function given to Inject is nil`, lax: "same"},
		{name: "empty Injector", plugin: &wantsNothing{},
			make:   func(w *fakes.World) *fakes.Initializer { return fakes.NewInitializer(w, fakes.Injector{}) },
			strict: `read Injector 1 of NewInitializer: it has no name: make it with fakes.Inject and a name`, lax: "same"},
		{name: "two of one name", plugin: &kcpPlugin{},
			make: func(w *fakes.World) *fakes.Initializer {
				one := fakes.Inject("kcp", func(kcpWants) {})
				return fakes.NewInitializer(w, one, one)
			},
			strict: `read Injector 2 of NewInitializer: another one is called "kcp" too: give each another name`, lax: "same"},
		{name: "no World", plugin: &panics{},
			make:   func(*fakes.World) *fakes.Initializer { return fakes.NewInitializer(nil).Skip("WantsAuthorizer") },
			strict: `initialize *fakes_test.panics: call SetRESTMapper of WantsRESTMapper: there is no World to take it from, so it was not called: give NewInitializer a World`, lax: "same"},
		{name: "nil plugin",
			strict: "initialize plugin: it is nil: give Initialize what the plugin's factory returned\n" +
				"initialize plugins: none was initialized: call Initialize, or give this Initializer to admission.Plugins",
			lax: "initialize plugin: it is nil: give Initialize what the plugin's factory returned"},
		{name: "no Initializer", plugin: &wantsNothing{},
			make:   func(*fakes.World) *fakes.Initializer { return &fakes.Initializer{} },
			strict: "initialize plugins: this Initializer is empty: make it with NewInitializer", lax: "same"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.lax == "same" {
				test.lax = test.strict
			}
			if test.make == nil {
				test.make = func(w *fakes.World) *fakes.Initializer { return fakes.NewInitializer(w) }
			}
			w := fakes.NewWorld(t)
			strict, lax := test.make(w).Strict(), test.make(w)
			strict.Initialize(test.plugin)
			lax.Initialize(test.plugin)
			if diff := cmp.Diff(test.strict, text(strict.Err())); diff != "" {
				t.Errorf("strict: - want, + got:\n%s", diff)
			}
			if diff := cmp.Diff(test.lax, text(lax.Err())); diff != "" {
				t.Errorf("lax: - want, + got:\n%s", diff)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrOfAPanic(t *testing.T) {
	i := fakes.NewInitializer(fakes.NewWorld(t)).Strict()
	i.Initialize(&panics{})
	lines := strings.Split(text(i.Err()), "\n")
	want := []string{
		"initialize *fakes_test.panics: call SetAuthorizer of WantsAuthorizer: it panicked: assignment to entry in nil map",
		"\tat github.com/admissiontest/admissiontest/fakes_test.explode (strict_test.go:",
	}
	if len(lines) < len(want) {
		t.Fatalf("got %q", lines)
	}
	for n := range want {
		if !strings.HasPrefix(lines[n], want[n]) {
			t.Errorf("line %d: %q, want %q", n, lines[n], want[n])
		}
	}
	if got := fmt.Sprint(methods(i.Log())); got != "[SetAuthorizer SetRESTMapper]" {
		t.Errorf("after the panic: %s", got)
	}
	var typedNil *authorized
	j := fakes.NewInitializer(nil, fakes.Inject("own", func(p gardenerWants) { p.(*authorized).base.Handler.SetReadyFunc(nil) })).Skip("WantsAuthorizer")
	j.Initialize(typedNil)
	if got := text(j.Err()); !strings.HasPrefix(got, "initialize *fakes_test.authorized: call SetAuthorizer of own: it panicked: runtime error: invalid memory address or nil pointer dereference\n\tat ") {
		t.Errorf("typed nil: %s", got)
	}
}

func TestErrOfTwice(t *testing.T) {
	i := fakes.NewInitializer(fakes.NewWorld(t)).Strict()
	plugin := &wantsNothing{base{admission.NewHandler(admission.Create)}}
	i.Initialize(plugin)
	if err := i.Err(); err != nil {
		t.Error(err)
	}
	i.Initialize(&wantsNothing{base{admission.NewHandler(admission.Create)}})
	if err := i.Err(); err != nil {
		t.Errorf("two plugins: %v", err)
	}
	i.Initialize(plugin)
	want := "initialize *fakes_test.wantsNothing: it was initialized 2 times: an API server does it once for each plugin"
	if got := text(i.Err()); got != want {
		t.Errorf("got %q", got)
	}
	never := fakes.NewInitializer(fakes.NewWorld(t)).Strict()
	if never.Err() == nil {
		t.Error("no plugin was initialized: got no error")
	}
}
