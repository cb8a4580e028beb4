package assets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// job is one call of this package: its Options, checked and filled in.
type job struct {
	Options
	version version
	cache   string // the directory of the cache's entries
	telling *sync.Mutex
}

func newJob(o Options) (*job, error) {
	v, err := parseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	j := &job{Options: o, version: v, telling: new(sync.Mutex)}
	if j.env == nil {
		j.env = os.Environ()
	}
	if j.heartbeat == 0 {
		j.heartbeat = 10 * time.Second
	}
	root := o.CacheDir
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the cache directory: %w; set HOME, or name a directory as CacheDir", err)
		}
		root = filepath.Join(user, "admissiontest")
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, fmt.Errorf("find the cache directory: %w", err)
	}
	j.cache = filepath.Join(root, "k8s")
	return j, nil
}

// destination is the version's directory in our cache.
func (j *job) destination() string { return filepath.Join(j.cache, j.version.dirName()) }

// tell passes one line of progress on.
func (j *job) tell(format string, args ...any) {
	if j.Progress == nil {
		return
	}
	j.telling.Lock()
	defer j.telling.Unlock()
	j.Progress(fmt.Sprintf(format, args...))
}

// getenv reads the job's environment; as in a shell, the last setting counts.
func (j *job) getenv(name string) string {
	value := ""
	for _, setting := range j.env {
		if text, ok := strings.CutPrefix(setting, name+"="); ok {
			value = text
		}
	}
	return value
}

// SetupEnvtestDir is the directory that setup-envtest keeps its store in when
// it is not told another, by that tool's rule. It is an error when the
// environment variables of that rule are not set.
func SetupEnvtestDir() (string, error) { return setupEnvtestDir(runtime.GOOS, os.Getenv) }

func setupEnvtestDir(goos string, getenv func(string) string) (string, error) {
	switch goos {
	case "windows":
		if base := getenv("LocalAppData"); base != "" {
			return filepath.Join(base, "kubebuilder-envtest"), nil
		}
		return "", errors.New("find the store of setup-envtest: LocalAppData is not set")
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
