//go:build unix

package binaries

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// An entry of the cache that another user could have written is refused: it is not executed,
// not replaced, no reason to look further, and the error says what to do.
func TestUnsafeCacheIsRefused(t *testing.T) {
	const stranger = 54321
	tests := map[string]func(t *testing.T, dir string){
		"program":   func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, etcdName), 0o777)) },
		"manifest":  func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, manifestName), 0o666)) },
		"directory": func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o777)) },
		"cache":     func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Dir(dir), 0o777)) },
		"above":     func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o777)) },
		"owner": func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can change an owner")
			}
			must(t, os.Chown(filepath.Join(dir, apiserverName), stranger, -1))
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			downloadedIn(t, cache, DefaultVersion)
			dir, ran := cachedIn(t, cache, DefaultVersion), filepath.Join(t.TempDir(), "ran")
			script(t, filepath.Join(dir, etcdName), "touch "+ran+"\n")
			must(t, seal(dir, manifest{Version: string(DefaultVersion)}))
			spoil(t, dir)
			o := Options{CacheDir: cache, env: quiet(t), goCommand: fakeGo{}.write(t)}
			wantFromAll(t, o, ErrUnsafe, "--assets-dir DIR")
			if all, err := List(t.Context(), o); name != "above" && len(all) != 1 || slices.ContainsFunc(all, func(a Assets) bool { return a.Dir == dir }) || err != nil {
				t.Errorf("List = %v, %v; want only the download", all, err)
			}
			if n := builds(t, o.goCommand); n != 0 {
				t.Errorf("%d programs were built, want none", n)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the program was executed")
			}
		})
	}
}

// wantFromAll checks that all functions return no assets, and the same error, which says what to do.
func wantFromAll(t *testing.T, o Options, want error, says string) {
	t.Helper()
	for call, do := range map[string]func(context.Context, Options) (Assets, error){"Find": Find, "Ensure": Ensure, "Build": Build} {
		got, err := do(t.Context(), o)
		if !errors.Is(err, want) || !reflect.ValueOf(got).IsZero() || !strings.Contains(err.Error(), says) {
			t.Errorf("%s = %v, %v; want %v that says %s", call, got, err, want, says)
		}
	}
}

// Nothing is installed in a cache that other users can write to.
func TestUnsafeCacheGetsNothing(t *testing.T) {
	cache := t.TempDir()
	must(t, os.Chmod(cache, 0o777))
	_, err := Build(t.Context(), Options{CacheDir: cache, env: quiet(t), goCommand: fakeGo{}.write(t)})
	if !errors.Is(err, ErrUnsafe) {
		t.Errorf("Build = %v, want ErrUnsafe", err)
	}
	wantOnly(t, cache)
}

// An entry of the store of setup-envtest that another user could have written is not executed.
func TestUnsafeStoreIsSkipped(t *testing.T) {
	data, p := t.TempDir(), newProgress()
	dir := programsIn(t, filepath.Join(data, "kubebuilder-envtest", "k8s", version(DefaultVersion).dirName()), DefaultVersion)
	o := Options{CacheDir: t.TempDir(), Progress: p.add, env: quiet(t, "XDG_DATA_HOME="+data)}
	if _, err := Find(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	must(t, os.Chmod(dir, 0o777))
	if got, err := Find(t.Context(), o); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find = %v, %v; want ErrNotFound", got, err)
	}
	p.want(t, "can be written by every user")
}

// Without HOME there is no cache: that is an error, unless the user names the programs.
func TestWithoutHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"} {
		t.Setenv(name, "")
	}
	o := Options{env: []string{"PATH=" + os.Getenv("PATH")}, goCommand: fakeGo{}.write(t)}
	wantFromAll(t, o, ErrNoCache, "set HOME, or use existing binaries: --assets-dir DIR")
	o.Dir = programsIn(t, t.TempDir(), DefaultVersion)
	if got, err := Ensure(t.Context(), o); err != nil || got.Source != SourceDir {
		t.Errorf("Ensure with Options.Dir = %v, %v", got, err)
	}
	if all, err := List(t.Context(), o); err != nil || len(all) != 1 {
		t.Errorf("List = %v, %v; want the programs of Options.Dir", all, err)
	}
}
