//go:build unix

package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damages returns ways to damage an entry of the cache.
func damages() map[string]func(t *testing.T, dir string) {
	return map[string]func(t *testing.T, dir string){
		"a file missing": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, etcdName))) },
		"mode lost":      func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, apiserverName), 0o600)) },
		"manifest cut": func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, manifestName), 20))
		},
		"manifest missing": func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, manifestName)))
		},
		"manifest of another version": func(t *testing.T, dir string) {
			must(t, (&manifest{Version: "1.2.3"}).write(dir))
		},
		"another version of admissiontest": func(t *testing.T, dir string) {
			must(t, (&manifest{Version: DefaultVersion, Main: "another"}).write(dir))
		},
		"everything missing": func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir), os.Mkdir(dir, 0o755))
		},
	}
}

// must ends the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsNoticedAndRepaired(t *testing.T) {
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			p := newProgress()
			o := Options{CacheDir: t.TempDir(), Progress: p.add, env: quiet(t), goCommand: fakeGo{}.write(t)}
			made, err := Ensure(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			damage(t, made.Dir)
			if _, err := Find(t.Context(), o); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "admissiontest assets build") {
				t.Errorf("Find = %v; want ErrDamaged and the command that repairs it", err)
			}
			again, err := Ensure(t.Context(), o)
			if err != nil || again.Source != SourceBuilt {
				t.Errorf("Ensure = %v, %v; want it built", again, err)
			}
			p.want(t, "replacing the cached control plane 1.37.2")
			if again, err = Find(t.Context(), o); err != nil || again.Source != SourceCache {
				t.Errorf("Find after the repair = %v, %v", again, err)
			}
			wantOnly(t, o.CacheDir, version(DefaultVersion).dirName())
			o.Dir = again.Dir
			if given, err := Find(t.Context(), o); err != nil || given.Source != SourceDir || !given.ObservesPlugins {
				t.Errorf("Find of its directory = %v, %v; want that it records the calls of plugins", given, err)
			}
		})
	}
}
