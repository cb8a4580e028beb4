package binaries

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// errCoverPlugins means: both Options.Cover and Options.Plugins are set.
var errCoverPlugins = errors.New("choose the packages that are compiled with coverage, or plugins that are compiled into kube-apiserver, not both")

// cover makes the job one for the servers with coverage, which have a part of the cache for
// themselves. Each list of packages has its own entry there.
func (j *job) cover() error {
	if len(j.Plugins) > 0 {
		return errCoverPlugins
	}
	packages := slices.Compact(slices.Sorted(slices.Values(j.Cover)))
	key := digestOfFiles(map[string]string{"packages": strings.Join(packages, "\n")})[:16]
	j.Cover, j.ObservePlugins = packages, true // an older main package is another server
	j.cache, j.entry = filepath.Join(j.cacheRoot(), "coverage"), j.version.dirName()+"-"+key
	return nil
}

// coverFlags returns the flags of `go build` for kube-apiserver.
func (j *job) coverFlags() []string {
	if len(j.Cover) == 0 {
		return nil
	}
	// Without the main package, Go writes nothing.
	packages := append([]string{temporaryPath}, j.Cover...)
	return []string{"-cover", "-covermode=set", "-coverpkg=" + strings.Join(packages, ",")}
}

// covering returns what the progress lines add.
func (j *job) covering() string {
	if len(j.Cover) == 0 {
		return ""
	}
	return " with coverage"
}
