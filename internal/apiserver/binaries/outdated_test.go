//go:build unix

package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A kube-apiserver that an older admissiontest built is not mistaken for one that records the
// calls of plugins.
func TestOutdatedServer(t *testing.T) {
	p, cache := newProgress(), t.TempDir()
	dir := cachedIn(t, cache, DefaultVersion)
	digest, err := mainDigest()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, manifestName)
	old := strings.ReplaceAll(read(t, path), digest, "another")
	if err := os.WriteFile(path, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{CacheDir: cache, Progress: p.add, env: quiet(t), goCommand: fakeGo{}.write(t)}
	if got, err := Ensure(t.Context(), o); err != nil || got.Source != SourceCache || got.ObservesPlugins {
		t.Errorf("Ensure = %+v, %v; want the old server, which records nothing", got, err)
	}
	o.ObservePlugins = true
	if got, err := Ensure(t.Context(), o); err != nil || got.Source != SourceBuilt || !got.ObservesPlugins {
		t.Errorf("Ensure with ObservePlugins = %+v, %v; want a new server", got, err)
	}
	p.want(t, "an older admissiontest built this kube-apiserver")
	if got, err := Ensure(t.Context(), o); err != nil || got.Source != SourceCache || !got.ObservesPlugins {
		t.Errorf("Ensure again = %+v, %v; want the new server from the cache", got, err)
	}
	o.Dir = got(t, o).Dir
	if found := got(t, o); !found.ObservesPlugins || found.Source != SourceDir {
		t.Errorf("Find of the directory = %+v; want a server that records", found)
	}
	o.Dir = programsIn(t, t.TempDir(), DefaultVersion)
	if found := got(t, o); found.ObservesPlugins {
		t.Errorf("Find of a directory without manifest = %+v; want a server that does not record", found)
	}
}

func got(t *testing.T, o Options) Assets {
	t.Helper()
	found, err := Find(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
