package observe_test

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/internal/kubeapiserver/observe"
)

func registers(names ...string) func(*admission.Plugins) {
	return func(plugins *admission.Plugins) {
		for _, name := range names {
			plugins.Register(name, func(io.Reader) (admission.Interface, error) { return admission.NewHandler(admission.Create), nil })
		}
	}
}

func server() *observe.Server {
	s := &observe.Server{
		Plugins: admission.NewPlugins(), Off: sets.New("First"),
		Order: []string{"First", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "AlwaysDeny"},
	}
	registers(s.Order...)(s.Plugins)
	return s
}

func TestAdd(t *testing.T) {
	tests := map[string]struct {
		one   observe.Package
		order string
		off   bool
	}{
		"default": {order: "First Own MutatingAdmissionPolicy MutatingAdmissionWebhook AlwaysDeny"},
		"last":    {one: observe.Package{Last: true, Off: true}, order: "First MutatingAdmissionPolicy MutatingAdmissionWebhook AlwaysDeny Own", off: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := server()
			before := append([]string(nil), s.Order...)
			given := s.Order
			test.one.Path, test.one.Register = "example.com/own", registers("Own")
			names, err := observe.Add(s, []observe.Package{test.one})
			if err != nil || strings.Join(names["example.com/own"], " ") != "Own" {
				t.Fatalf("Add = %v, %v", names, err)
			}
			if got := strings.Join(s.Order, " "); got != test.order {
				t.Errorf("order %q, want %q", got, test.order)
			}
			if s.Off.Has("Own") != test.off || !s.Off.Has("First") {
				t.Errorf("off: %v", s.Off)
			}
			if diff := cmp.Diff(before, given); diff != "" {
				t.Errorf("Add wrote to the given order, -before +after:\n%s", diff)
			}
			if !strings.Contains(strings.Join(s.Plugins.Registered(), " "), "Own") {
				t.Errorf("registered: %v", s.Plugins.Registered())
			}
		})
	}
}

func TestAddFails(t *testing.T) {
	tests := map[string]struct {
		one  observe.Package
		says string
	}{
		"existing name": {observe.Package{Register: registers("Own", "First")}, "has a plugin of that name"},
		"no plugin":     {observe.Package{Register: registers()}, "registers no plugin"},
		"panic":         {observe.Package{Register: func(*admission.Plugins) { panic("no plugins") }}, "function Register panicked at github.com/admissiontest/admissiontest/internal/kubeapiserver/observe_test.TestAddFails.func1 (order_test.go:"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.one.Path = "example.com/own"
			_, err := observe.Add(server(), []observe.Package{test.one})
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "example.com/own") {
				t.Errorf("Add = %v; want an error that says %q and names the package", err, test.says)
			}
		})
	}
	s := server()
	_, err := observe.Add(s, []observe.Package{{Path: "a", Register: registers("Own")}, {Path: "b", Register: registers("Own")}})
	if err == nil || !strings.Contains(err.Error(), "b") {
		t.Errorf("two packages with the same plugin: %v; want an error", err)
	}
}
