//go:build unix

package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParsePlugin(t *testing.T) {
	for text, want := range map[string]Plugin{
		"./pkg/owner":                {Package: "./pkg/owner"},
		"example.com/owner,last,off": {Package: "example.com/owner", Last: true, Off: true},
		"..,off":                     {Package: "..", Off: true},
	} {
		if got, err := ParsePlugin(text); err != nil || got != want || got.String() != text {
			t.Errorf("ParsePlugin(%q) = %+v, %v, which prints %q; want %+v", text, got, err, got, want)
		}
	}
	for _, text := range []string{"", ",off", "a,on", "a,before=b"} {
		if got, err := ParsePlugin(text); err == nil {
			t.Errorf("ParsePlugin(%q) = %+v; want an error", text, got)
		}
	}
}

// listing is the output of go list for a plugin in dir that imports packages of modules.
func listing(dir string, imported ...string) string {
	text := ""
	for _, one := range imported {
		path, version, _ := strings.Cut(one, "@")
		text += `{"ImportPath": "` + path + `/pkg", "Module": {"Path": "` + path + `", "Version": "` + version + `", "GoMod": "/none"}}` + "\n"
	}
	var names []string
	for _, one := range imported {
		path, _, _ := strings.Cut(one, "@")
		names = append(names, `"`+path+`/pkg"`)
	}
	return text + `{"ImportPath": "example.com/own/p", "Name": "p", "Dir": "` + dir + `", "GoFiles": ["p.go"], "Imports": [` + strings.Join(names, ", ") +
		`], "Module": {"Path": "example.com/own", "Main": true, "Dir": "` + dir + `", "GoMod": "` + filepath.Join(dir, "go.mod") + `", "GoVersion": "1.25.0"}}` + "\n"
}

// moduleOf writes a module with a plugin, and a fake `go` that lists it and builds a server.
func moduleOf(t *testing.T, mod string, imported ...string) (dir string, fake string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/own\n\ngo 1.25.0\n" + mod,
		"p.go":   "package p\n\nfunc Register() {}\n", "list.json": listing(dir, imported...),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, fakeGo{
		list: "cat " + filepath.Join(dir, "list.json"),
		build: strings.Replace(makeProgram, `printf '#!/bin/sh\necho Kubernetes`,
			`printf '#!/bin/sh\n[ -z "$ADMISSIONTEST_DESCRIBE_PLUGINS" ] || { echo "{\\"example.com/own/p\\": [\\"Own\\"]}"; exit; }\necho Kubernetes`, 1) +
			"\ncp plugins.go overlay0.mod \"$here\" 2>/dev/null || true",
		env: "case \"$*\" in *GOMOD*) echo " + filepath.Join(dir, "go.mod") + " ;; *) echo go1.26 ;; esac",
	}.write(t)
}

// A server with plugins is built once for each content of the plugin.
func TestServerWithPlugins(t *testing.T) {
	dir, fake := moduleOf(t, "\nrequire (\n\tgithub.com/x/y v1.2.3\n\texample.com/extra v1.0.0\n\tgithub.com/x/test v1.99.0\n)\nreplace example.com/extra => ./extra\n", "github.com/x/y@v1.2.3")
	o := Options{Plugins: []Plugin{{Package: dir, Last: true}}, CacheDir: t.TempDir(), env: quiet(t), goCommand: fake}
	server := func(source string, count int) Assets {
		t.Helper()
		got, err := Ensure(t.Context(), o)
		if err != nil || got.Source != source || !got.ObservesPlugins || strings.Join(got.Plugins, " ") != "Own" {
			t.Fatalf("Ensure = %+v, %v; want a server of source %s with plugin Own", got, err, source)
		}
		if n := builds(t, fake); n != count {
			t.Errorf("%d programs were built, want %d", n, count)
		}
		return got
	}
	first := server(SourceBuilt, 3) // and the plain programs, because there are none
	if again := server(SourceCache, 3); again.Dir != first.Dir {
		t.Errorf("the same plugin is in %s and %s", first.Dir, again.Dir)
	}
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte("package p\n\nfunc Register() { /* changed */ }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	server(SourceBuilt, 4) // etcd is copied
	o.Plugins[0].Off = true
	server(SourceBuilt, 5)
	o.env = append(o.env, "GOCOVERDIR=/somewhere")
	server(SourceBuilt, 6)
	calls := read(t, filepath.Join(filepath.Dir(fake), "calls"))
	if !strings.Contains(calls, "-cover -coverpkg=admissiontest.dev/temporary,example.com/own/p") || !strings.Contains(calls, "-overlay ") {
		t.Errorf("the calls of go lack coverage or the overlay:\n%s", calls)
	}
	mod := read(t, filepath.Join(filepath.Dir(fake), "kube-apiserver.mod"))
	for _, part := range []string{
		"example.com/own v0.0.0", "example.com/own => " + dir, "github.com/x/y => github.com/x/y v1.2.3",
		"k8s.io/api => k8s.io/api v0.37.2", "k8s.io/kubernetes => k8s.io/kubernetes v1.37.2", "example.com/extra => " + filepath.Join(dir, "extra"),
	} {
		if !strings.Contains(mod, part) {
			t.Errorf("go.mod lacks %q:\n%s", part, mod)
		}
	}
	if strings.Contains(mod, "github.com/x/test") {
		t.Errorf("go.mod requires a module that the plugin does not import:\n%s", mod)
	}
	if text := read(t, filepath.Join(filepath.Dir(fake), "overlay0.mod")); text != "module example.com/own\n\ngo 1.25.0\n" {
		t.Errorf("the go.mod of the plugin in the overlay is %q", text)
	}
	if text := read(t, filepath.Join(filepath.Dir(fake), "plugins.go")); !strings.Contains(text, `Register: plugin1.Register, Last: true, Off: true`) {
		t.Errorf("the generated file is\n%s", text)
	}
}

// Beside a server with plugins no etcd is built if one was downloaded.
func TestPluginsUseDownloadedEtcd(t *testing.T) {
	dir, fake := moduleOf(t, "", "github.com/x/y@v1.2.3")
	o := Options{Plugins: []Plugin{{Package: dir}}, ObservePlugins: true, CacheDir: t.TempDir(), env: quiet(t), goCommand: fake}
	downloadedIn(t, o.CacheDir, DefaultVersion)
	if _, err := Ensure(t.Context(), o); err != nil || builds(t, fake) != 1 {
		t.Errorf("%d programs were built (%v), want the server alone", builds(t, fake), err)
	}
}

// If a plugin does not compile, the error names the version that its go.mod has.
func TestPluginOfAnotherVersion(t *testing.T) {
	dir, fake := moduleOf(t, "", "k8s.io/apiserver@v0.36.1")
	script := strings.Replace(read(t, fake), "cp plugins.go", "[ ! -f plugins.go ] || { echo 'p.go:3: undefined: x' >&2; exit 1; }\ncp plugins.go", 1)
	must(t, os.WriteFile(fake, []byte(script), 0o755)) //nolint:gosec // it is a program
	_, err := Ensure(t.Context(), Options{Plugins: []Plugin{{Package: dir}}, CacheDir: t.TempDir(), env: quiet(t), goCommand: fake})
	if want := "has k8s.io/apiserver v0.36.1, and this one is built with v0.37.2: for its own version, use --k8s-version 1.36.1"; !errors.Is(err, ErrBadPlugin) || !strings.Contains(err.Error(), want) {
		t.Errorf("Ensure = %v; want an ErrBadPlugin with %q", err, want)
	}
}

// A library of Kubernetes that the plugin imports must not be newer than Kubernetes.
func TestVersionConflicts(t *testing.T) {
	for name, test := range map[string]struct {
		module string // as go list prints it, without the path
		says   string // empty if there is no conflict
	}{
		"same":                 {`"Version": "v0.37.2"`, ""},
		"older":                {`"Version": "v0.36.0"`, ""},
		"newer":                {`"Version": "v0.37.9"`, "its module requires k8s.io/api v0.37.9; Kubernetes v1.37.2 has v0.37.2, and the plugin must be built with that: require at most that version"},
		"replaced by newer":    {`"Version": "v0.36.0", "Replace": {"Path": "k8s.io/api", "Version": "v0.38.0"}`, "v0.38.0"},
		"replaced by older":    {`"Version": "v0.38.0", "Replace": {"Path": "k8s.io/api", "Version": "v0.36.0"}`, ""},
		"replaced by a folder": {`"Version": "v0.37.2", "Replace": {"Path": "../y"}`, "replaced by ../y"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, fake := moduleOf(t, "", "github.com/x/y@v9.9.9", "k8s.io/api@v0.37.2")
			listed := strings.Replace(read(t, filepath.Join(dir, "list.json")), `"Version": "v0.37.2"`, test.module, 1)
			listed = strings.ReplaceAll(listed, "/none", filepath.Join(dir, "go.mod"))
			must(t, os.WriteFile(filepath.Join(dir, "list.json"), []byte(listed), 0o644))
			o := Options{Plugins: []Plugin{{Package: dir}}, CacheDir: t.TempDir(), env: quiet(t), goCommand: fake}
			_, err := Ensure(t.Context(), o)
			if test.says == "" && err != nil || test.says != "" && (!errors.Is(err, ErrBadPlugin) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("Ensure = %v; want an ErrBadPlugin with %q, or no error if that is empty", err, test.says)
			}
		})
	}
}
