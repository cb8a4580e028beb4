package binaries

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/semver"
)

// job is one call of this package, with checked Options and their defaults.
type job struct {
	Options
	version version
	// anyPatch is true if Options.Version is a minor version or empty.
	anyPatch bool
	// absent is true if no patch of the minor version is on this machine.
	absent  bool
	archive string // the digest of the archive to download; empty for a build
	source  string // of what install makes; empty means SourceBuilt
	cache   string // the directory with the entries of the cache; empty if noCache is set
	entry   string // the name of the entry; empty means that of the version
	noCache error  // an ErrNoCache
	lines   *sync.Mutex
	// pluginNames are the names of the plugins in a server that was just built.
	pluginNames []string
}

func newJob(o Options) (*job, error) {
	if err := checkPlatform(runtime.GOOS); err != nil {
		return nil, err
	}
	j := &job{Options: o, lines: new(sync.Mutex)}
	if j.env == nil {
		j.env = os.Environ()
	}
	if j.heartbeat == 0 {
		j.heartbeat = 10 * time.Second
	}
	err := j.findCache()
	if err != nil {
		return nil, err
	}
	asked := cmp.Or(o.Version, semver.MajorMinor("v"+DefaultVersion))
	if minor := minorVersion.FindStringSubmatch(asked); minor != nil {
		j.anyPatch = true
		err = j.newest(minor[1])
	} else {
		j.version, err = parseVersion(asked)
	}
	return j, err
}

// findCache sets cache or noCache.
func (j *job) findCache() error {
	root := j.CacheDir
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			j.noCache = fmt.Errorf("find control plane %s: %w: %w; set HOME, or use existing binaries: --assets-dir DIR, or KUBEBUILDER_ASSETS=DIR",
				cmp.Or(strings.TrimPrefix(j.Version, "v"), DefaultVersion), ErrNoCache, err)
			return nil
		}
		root = filepath.Join(user, "admissiontest")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("find the cache directory: %w", err)
	}
	j.cache = filepath.Join(root, "k8s")
	return nil
}

// entryName returns the name of the entry of the cache.
func (j *job) entryName() string { return cmp.Or(j.entry, j.version.dirName()) }

// cacheRoot returns the directory of all caches of this package.
func (j *job) cacheRoot() string { return filepath.Dir(j.cache) }

// downloads returns the directory with the entries that were downloaded.
func (j *job) downloads() string { return filepath.Join(j.cacheRoot(), "downloaded") }

// destination returns the directory of the entry in the cache.
func (j *job) destination() string { return filepath.Join(j.cache, j.entryName()) }

// report sends a line to Progress.
func (j *job) report(format string, args ...any) {
	if j.Progress == nil {
		return
	}
	j.lines.Lock()
	defer j.lines.Unlock()
	j.Progress(fmt.Sprintf(format, args...))
}

// getenv returns a variable of the job's environment. The last setting counts, as in a shell.
func (j *job) getenv(name string) string {
	value := ""
	for _, setting := range j.env {
		if text, ok := strings.CutPrefix(setting, name+"="); ok {
			value = text
		}
	}
	return value
}

// setupEnvtestDir returns the default directory of the store of setup-envtest. The error
// names the environment variable that is needed and not set.
func setupEnvtestDir(goos string, getenv func(string) string) (string, error) {
	switch goos {
	case "darwin", "ios":
		if home := getenv("HOME"); home != "" {
			return filepath.Join(home, "Library", "Application Support", "io.kubebuilder.envtest"), nil
		}
		return "", errors.New("find the store of setup-envtest: HOME is not set")
	}
	if base := getenv("XDG_DATA_HOME"); base != "" {
		return filepath.Join(base, "kubebuilder-envtest"), nil
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "kubebuilder-envtest"), nil
	}
	return "", errors.New("find the store of setup-envtest: neither XDG_DATA_HOME nor HOME is set")
}
