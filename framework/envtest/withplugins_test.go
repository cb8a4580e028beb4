package envtest_test

import (
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// A server has the plugins of its options. One without them does not know their names.
func TestWithPlugins(t *testing.T) {
	off := envtest.Profile{Flags: map[string]string{"disable-admission-plugins": "Owner"}}
	server, err := envtest.Start(t.Context(), envtest.Options{
		Plugins:        []envtest.Plugin{{Package: "../../examples/plugin"}},
		Profile:        off,
		ObservePlugins: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	server, err = envtest.Start(t.Context(), envtest.Options{Profile: off})
	if err == nil {
		t.Fatalf("a server without the plugin Owner accepted its name; stopped with %v", server.Stop())
	}
	if !strings.Contains(err.Error(), "Owner") {
		t.Errorf("got error %q, want one that names Owner", err)
	}
	_, err = envtest.Start(t.Context(), envtest.Options{Plugins: []envtest.Plugin{{Package: "./no-such-package"}}})
	if err == nil || !strings.Contains(err.Error(), "no-such-package") {
		t.Errorf("got error %v, want one that names the package", err)
	}
}
