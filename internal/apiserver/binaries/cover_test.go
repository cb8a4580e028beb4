//go:build unix

package binaries

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestCoverHasAPartOfTheCacheForItself(t *testing.T) {
	fake, cache := fakeGo{}.write(t), t.TempDir()
	plain := Options{CacheDir: cache, goCommand: fake, env: quiet(t)}
	cover := plain
	cover.Cover = []string{"k8s.io/b/...", "k8s.io/a"}
	// What these name is another kube-apiserver, without coverage.
	cover.Dir = programsIn(t, t.TempDir(), DefaultVersion)
	cover.env = append(cover.env, "KUBEBUILDER_ASSETS="+cover.Dir)
	if got, err := Find(t.Context(), cover); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find before the build = %+v, %v; want ErrNotFound", got, err)
	}
	made, err := Ensure(t.Context(), cover)
	if err != nil || made.Source != SourceBuilt || !made.ObservesPlugins {
		t.Fatalf("Ensure = %+v, %v", made, err)
	}
	if folder := filepath.Dir(made.Dir); folder != filepath.Join(cache, "coverage") {
		t.Errorf("the server with coverage is in %s", folder)
	}
	const flags = "-cover -covermode=set -coverpkg=admissiontest.dev/temporary,k8s.io/a,k8s.io/b/... "
	calls := strings.Split(read(t, filepath.Join(filepath.Dir(fake), "calls")), "\n")
	for _, call := range calls {
		if strings.HasPrefix(call, "build ") && strings.Contains(call, flags+".") == strings.Contains(call, "etcd") {
			t.Errorf("go %s: want coverage of kube-apiserver, and of nothing else", call)
		}
	}
	wantOnly(t, cache)

	// The order of the packages does not matter, which packages does.
	again := cover
	again.Cover = []string{"k8s.io/a", "k8s.io/b/...", "k8s.io/a"}
	if got, err := Ensure(t.Context(), again); err != nil || got.Source != SourceCache || got.Dir != made.Dir {
		t.Errorf("Ensure again = %+v, %v; want that of the cache, %s", got, err, made.Dir)
	}
	other := cover
	other.Cover = []string{"k8s.io/a"}
	if got, err := Ensure(t.Context(), other); err != nil || got.Source != SourceBuilt || got.Dir == made.Dir {
		t.Errorf("Ensure with other packages = %+v, %v; want another server", got, err)
	}

	// A normal run does not use it.
	if got, err := Find(t.Context(), plain); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find without Cover = %+v, %v; want ErrNotFound", got, err)
	}
	if got, err := List(t.Context(), plain); err != nil || len(got) != 0 {
		t.Errorf("List = %+v, %v; want no assets", got, err)
	}
	if got, err := Ensure(t.Context(), plain); err != nil || got.Source != SourceBuilt {
		t.Errorf("Ensure without Cover = %+v, %v; want another server", got, err)
	}
	if calls := read(t, filepath.Join(filepath.Dir(fake), "calls")); strings.Count(calls, "-coverpkg") != 2 {
		t.Errorf("the calls of go, want coverage in two of them:\n%s", calls)
	}
	wantOnly(t, cache, version(DefaultVersion).dirName())
	if got, err := Ensure(t.Context(), cover); err != nil || got.Dir != made.Dir {
		t.Errorf("Ensure with Cover = %+v, %v; want %s", got, err, made.Dir)
	}
}

func TestCoverWithPlugins(t *testing.T) {
	o := Options{CacheDir: t.TempDir(), Cover: []string{"k8s.io/a"}, Plugins: []Plugin{{Package: "./owner"}}, env: quiet(t), goCommand: fakeGo{}.write(t)}
	if _, err := Ensure(t.Context(), o); !errors.Is(err, errCoverPlugins) {
		t.Errorf("Ensure = %v; want %v", err, errCoverPlugins)
	}
}

// A program that is asked for its version is not a server that is measured.
func TestProbeWritesNoCoverage(t *testing.T) {
	t.Setenv("GOCOVERDIR", t.TempDir())
	dir := t.TempDir()
	script(t, filepath.Join(dir, apiserverName), `[ -z "$GOCOVERDIR" ] && echo Kubernetes v1.36.3`)
	script(t, filepath.Join(dir, etcdName), `[ -z "$GOCOVERDIR" ] && echo etcd Version: 3`)
	if got, err := probe(t.Context(), dir); err != nil || got != "1.36.3" {
		t.Errorf("probe = %q, %v", got, err)
	}
}
