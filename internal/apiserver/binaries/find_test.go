//go:build unix

package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A minor version is its newest patch on this machine, or else the one that is known to work.
func TestVersion(t *testing.T) {
	cache, home := t.TempDir(), t.TempDir()
	o := Options{CacheDir: cache, env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}
	store := filepath.Join(home, ".local/share/kubebuilder-envtest/k8s")
	for _, dir := range []string{
		filepath.Join(cache, "k8s", version("1.35.9").dirName()), filepath.Join(cache, "k8s", version("1.36.0-rc.1").dirName()), filepath.Join(cache, "k8s", "other"),
		filepath.Join(store, version("1.35.10").dirName()), filepath.Join(store, version("1.39.1").dirName()),
	} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	for asked, want := range map[string]string{
		"": DefaultVersion, "1.36.3": "1.36.3", "v1.34.4": "1.34.4", "1.34.0-rc.1": "1.34.0-rc.1", "1.37.0-alpha.1": "1.37.0-alpha.1",
		"1.35": "1.35.10", "v1.35": "1.35.10", "1.34": "1.34.4", "1.36": "1.36.3", "1.39": "1.39.1", "1.35.2": "1.35.2", "1.38": "1.38.0",
	} {
		o.Version = asked
		if j, err := newJob(o); err != nil || string(j.version) != want {
			t.Errorf("%q: got %v, %v; want %s", asked, j, err, want)
		}
	}
	for want, all := range map[error][]string{
		ErrBadVersion:         {"1", "1.036", "2.36", "latest", "vv1.36.3", "1.36.x", "2.0.0", "1.36.3+x", "../../etc", "-v"},
		ErrUnsupportedVersion: {"1.33", "1.20.0", "v1.33.9", "1.33.0-rc.1"},
	} {
		for _, asked := range all {
			o.Version = asked
			if got, err := Find(t.Context(), o); !errors.Is(err, want) || errors.Is(want, ErrUnsupportedVersion) && !strings.Contains(err.Error(), "the first one is 1.34.0") {
				t.Errorf("%q: got %v, %v; want %v", asked, got, err, want)
			}
		}
	}
}

func TestSetupEnvtestDir(t *testing.T) {
	env := map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/x"}
	get := func(name string) string { return env[name] }
	none := func(string) string { return "" }
	for goos, want := range map[string]string{"linux": "/x/kubebuilder-envtest", "darwin": "/h/Library/Application Support/io.kubebuilder.envtest"} {
		if got, err := setupEnvtestDir(goos, get); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", goos, got, err, want)
		}
		if got, err := setupEnvtestDir(goos, none); err == nil {
			t.Errorf("%s without environment: %q, want an error", goos, got)
		}
	}
}

func TestPlacesAreUsedInOrder(t *testing.T) {
	cache, home, named, env := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	o := Options{CacheDir: cache, env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}}
	store := filepath.Join(home, ".local/share/kubebuilder-envtest/k8s", version(DefaultVersion).dirName())
	want := func(source, dir string) {
		t.Helper()
		got, err := Find(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Assets{Dir: dir, Version: DefaultVersion, Source: source, ObservesPlugins: filepath.Dir(dir) == filepath.Join(cache, "k8s")}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if _, err := Find(t.Context(), o); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "three ways to get them") {
		t.Errorf("Find in empty places: %v, want ErrNotFound with the advice", err)
	}
	want(SourceCache, downloadedIn(t, cache, DefaultVersion))
	built := cachedIn(t, cache, DefaultVersion)
	want(SourceCache, built)
	want(SourceSetupEnvtest, programsIn(t, store, DefaultVersion))
	o.ObservePlugins = true
	want(SourceCache, built)
	o.ObservePlugins = false
	o.env = append(o.env, "KUBEBUILDER_ASSETS="+env)
	want(SourceEnvironment, programsIn(t, env, DefaultVersion))
	o.Dir = named
	want(SourceDir, programsIn(t, named, DefaultVersion))

	listed := func() (string, error) {
		all, err := List(t.Context(), o)
		var sources []string
		for _, a := range all {
			sources = append(sources, a.Source)
		}
		return strings.Join(sources, " "), err
	}
	if got, err := listed(); err != nil || got != "assets-dir KUBEBUILDER_ASSETS setup-envtest cache cache" {
		t.Errorf("List = %s, %v; want all places in their order", got, err)
	}
	o.Dir = t.TempDir() // which has no programs
	if got, err := listed(); !errors.Is(err, ErrDamaged) || got != "KUBEBUILDER_ASSETS setup-envtest cache cache" {
		t.Errorf("List = %s, %v; want the other places and ErrDamaged", got, err)
	}
}

func TestGivenDirectoryIsNeverIgnored(t *testing.T) {
	tests := map[string]struct {
		spoil   func(dir string) error
		version string
		is      error
		says    string
	}{
		"no etcd":        {spoil: func(d string) error { return os.Remove(filepath.Join(d, etcdName)) }, is: ErrDamaged, says: "etcd is missing"},
		"no directory":   {spoil: os.RemoveAll, is: ErrDamaged, says: "kube-apiserver is missing"},
		"not executable": {spoil: func(d string) error { return os.Chmod(filepath.Join(d, apiserverName), 0o644) }, is: ErrDamaged, says: "chmod +x"},
		"does not run": {
			spoil: func(d string) error { return os.WriteFile(filepath.Join(d, etcdName), []byte("\x7fELFjunk"), 0o755) },
			is:    ErrDamaged, says: "does not run",
		},
		"prints something else": {
			spoil: func(d string) error {
				return os.WriteFile(filepath.Join(d, apiserverName), []byte("#!/bin/sh\necho hello\n"), 0o755)
			},
			is: ErrDamaged, says: `printed "hello\n"`,
		},
		"a directory instead": {
			spoil: func(d string) error {
				p := filepath.Join(d, etcdName)
				return errors.Join(os.Remove(p), os.Mkdir(p, 0o755))
			},
			is: ErrDamaged, says: "not a file",
		},
		"another version": {spoil: func(string) error { return nil }, version: "1.35.4", is: ErrWrongVersion, says: "got 1.34.4, want 1.35.4"},
		"another minor":   {spoil: func(string) error { return nil }, version: "1.35", is: ErrWrongVersion, says: "got 1.34.4, want 1.35;"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir, cache := programsIn(t, t.TempDir(), "1.34.4"), t.TempDir()
			cachedIn(t, cache, "1.35.4") // which must not be used
			if err := test.spoil(dir); err != nil {
				t.Fatal(err)
			}
			for source, o := range map[string]Options{
				SourceDir:         {Dir: dir, env: quiet(t)},
				SourceEnvironment: {env: quiet(t, "KUBEBUILDER_ASSETS="+dir)},
			} {
				t.Run(source, func(t *testing.T) {
					o.Version, o.CacheDir, o.goCommand = test.version, cache, fakeGo{}.write(t)
					got, err := Ensure(t.Context(), o)
					if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), source) {
						t.Errorf("Ensure = %v, %v; want %v saying %q and %q", got, err, test.is, test.says, source)
					}
					if n := builds(t, o.goCommand); n != 0 {
						t.Errorf("%d programs were built, want none", n)
					}
				})
			}
		})
	}
}

func TestGivenDirectoryDecidesTheVersion(t *testing.T) {
	dir := programsIn(t, t.TempDir(), "1.34.4+vendor.1")
	for _, asked := range []string{"", "v1.34.4", "1.34"} {
		t.Run(asked, func(t *testing.T) {
			got, err := Find(t.Context(), Options{Version: asked, Dir: dir, env: quiet(t)})
			if err != nil || got.Version != "1.34.4+vendor.1" {
				t.Errorf("asked for %q: %v, %v; want 1.34.4+vendor.1", asked, got, err)
			}
		})
	}
}

func TestBrokenStoreEntryIsIgnored(t *testing.T) {
	home, p := t.TempDir(), newProgress()
	store := filepath.Join(home, "kubebuilder-envtest", "k8s")
	programsIn(t, filepath.Join(store, version("1.35.4").dirName()), "1.35.4")
	programsIn(t, filepath.Join(store, version("1.34.4").dirName()), "1.33.0") // not the version of the directory
	programsIn(t, filepath.Join(store, version("1.36.3").dirName()), "1.36.3")
	programsIn(t, filepath.Join(store, "not-a-version"), "1.36.3")
	o := Options{Version: "1.34.4", CacheDir: t.TempDir(), Progress: p.add, env: quiet(t, "XDG_DATA_HOME="+home)}
	if got, err := Find(t.Context(), o); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find = %v, %v; want ErrNotFound", got, err)
	}
	p.want(t, "ignoring the control plane 1.34.4 in the store of setup-envtest")
	p.want(t, "--version printed 1.33.0, want 1.34.4")

	all, err := List(t.Context(), o)
	var versions []string
	for _, a := range all {
		versions = append(versions, a.Version)
	}
	if diff := cmp.Diff([]string{"1.36.3", "1.35.4"}, versions); diff != "" || err != nil {
		t.Errorf("List: %v, -want +got:\n%s", err, diff)
	}
}

// The module file with which the command is built has the libraries of the kube-apiserver that it builds by default, so
// that Go compiles them once.
func TestLibrariesOfTheDefaultVersion(t *testing.T) {
	minor, patch, _ := strings.Cut(strings.TrimPrefix(DefaultVersion, "1."), ".")
	module, err := os.ReadFile("../../../hack/minors/1." + minor + ".mod")
	if want := "\tk8s.io/apiserver v0." + minor + "." + patch + "\n"; err != nil || !strings.Contains(string(module), want) {
		t.Errorf("hack/minors/1.%s.mod, %v: want %q, as Kubernetes %s has it: run make minors-mod", minor, err, want, DefaultVersion)
	}
}
