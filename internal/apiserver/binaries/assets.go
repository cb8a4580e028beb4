package binaries

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/internal/userfile"
)

// DefaultVersion is the Kubernetes version whose minor version an empty Options.Version means.
const DefaultVersion = "1.37.2"

// EtcdVersion is the version of etcd that Build builds for every kube-apiserver. It works
// with Kubernetes 1.34 to 1.37.
const EtcdVersion = "3.6.8"

// The values of Assets.Source.
const (
	SourceDir          = "assets-dir"         // Options.Dir
	SourceEnvironment  = "KUBEBUILDER_ASSETS" // the environment variable
	SourceCache        = "cache"              // the cache
	SourceSetupEnvtest = "setup-envtest"      // the store of setup-envtest
	SourceDownloaded   = "downloaded"         // this call downloaded them into the cache
	SourceBuilt        = "built"              // this call built them into the cache
)

var (
	// ErrNotFound means: the version is in none of the places, and must not be built.
	ErrNotFound = errors.New("the control-plane binaries were not found")
	// ErrDamaged means: a program is missing, not executable, or does not run, or another version of this package built
	// it into the cache.
	ErrDamaged = errors.New("the control-plane binaries are damaged")
	// ErrUnsafe means: another user could have written the programs in the cache.
	ErrUnsafe = userfile.ErrUnsafe
	// ErrNoCache means: no directory for the cache is known, because neither
	// Options.CacheDir nor HOME is set.
	ErrNoCache = errors.New("there is no cache directory")
	// ErrWrongVersion means: Options.Dir or KUBEBUILDER_ASSETS has another version than
	// Options.Version.
	ErrWrongVersion = errors.New("the control-plane binaries have another version")
	// ErrBadIndex means: Options.IndexURL, or ADMISSIONTEST_ASSETS_INDEX, is not a URL with https.
	ErrBadIndex = errors.New("not the URL of an index")
	// ErrBadVersion means: Options.Version is not a version of Kubernetes.
	ErrBadVersion = errors.New("not a Kubernetes version")
	// ErrUnsupportedVersion means: Options.Version is older than the first version of Kubernetes
	// that is supported.
	ErrUnsupportedVersion = errors.New("the version is not supported")
	// ErrNoSuchVersion means: Kubernetes has no such version.
	ErrNoSuchVersion = errors.New("the Kubernetes version does not exist")
	// ErrNoToolchain means: there is no Go toolchain to build with, or it is too old for
	// the version.
	ErrNoToolchain = errors.New("there is no usable Go toolchain")
	// ErrNoModules means: the Go modules to build from could not be downloaded.
	ErrNoModules = errors.New("the Go modules are not available")
	// ErrBuild means: the compiler or linker failed.
	ErrBuild = errors.New("the build failed")
)

// Assets are the programs of one control plane.
type Assets struct {
	// Dir is the absolute path of the directory with the programs.
	Dir string
	// Version is the Kubernetes version without a leading v, "1.36.3".
	Version string
	// Source is one of the Source constants.
	Source string
	// ObservesPlugins is true if kube-apiserver can record the calls of its admission plugins:
	// this version of this package built it.
	ObservesPlugins bool
	// Plugins are the names of the admission plugins of Options.Plugins that kube-apiserver has.
	Plugins []string
}

// KubeAPIServer returns the path of kube-apiserver.
func (a Assets) KubeAPIServer() string { return filepath.Join(a.Dir, apiserverName) }

// Etcd returns the path of etcd.
func (a Assets) Etcd() string { return filepath.Join(a.Dir, etcdName) }

// Options choose a version and the places to look in. The zero value means the default minor
// version, the default places, and no progress lines.
type Options struct {
	// Version is a Kubernetes version, "1.36.3" or "v1.36.3", or a minor version, "1.36": its newest patch on this machine,
	// else the newest in the index, else the one that is known to build; no pre-release. Empty means the version in Dir or
	// KUBEBUILDER_ASSETS if one of them is set, otherwise the minor version of DefaultVersion. For Build it means DefaultVersion.
	Version string
	// Dir is a directory with kube-apiserver and etcd. If it is set, no other place is
	// used. Empty means the other places.
	Dir string
	// CacheDir is the cache. Empty means the directory "admissiontest" in os.UserCacheDir.
	CacheDir string
	// Plugins are compiled into kube-apiserver. Dir and KUBEBUILDER_ASSETS are then only used for
	// etcd. An empty Version means DefaultVersion.
	Plugins []Plugin
	// ObservePlugins asks for a kube-apiserver that can record the calls of its admission plugins: one that was built.
	// Dir and KUBEBUILDER_ASSETS are used in any case. False means that each one will do.
	ObservePlugins bool
	// IndexURL is the index of envtest releases to download from, in the format of DefaultIndexURL. Empty means the environment
	// variable ADMISSIONTEST_ASSETS_INDEX, and without it DefaultIndexURL. "off" means NoDownload.
	IndexURL string
	// NoDownload means that Ensure downloads nothing, NoBuild that it returns an ErrNotFound instead of compiling.
	NoDownload, NoBuild bool
	// Progress receives one line for each event, and during long work about one line in
	// ten seconds. Calls do not overlap. Nil discards the lines.
	Progress func(line string)

	// Tests set these. The zero values are the environment of the process, `go` in PATH,
	// ten seconds, the certificate authorities of this machine, and the limits of download.go.
	env       []string
	goCommand string
	heartbeat time.Duration
	roots     *x509.CertPool
	patience  time.Duration
}

const (
	apiserverName = "kube-apiserver"
	etcdName      = "etcd"
)

// programs returns the names of the programs in a directory of assets.
func programs() []string { return []string{apiserverName, etcdName} }

// oldestVersion is the first version of Kubernetes that is supported.
const oldestVersion = "1.34.0"

// testedVersions returns the versions for which Build is known to work.
func testedVersions() []string { return []string{"1.37.2", "1.36.3", "1.35.4", "1.34.4"} }

// Advice returns the last part of every error about missing programs: the three ways to get
// the programs of a version, building last. Empty means DefaultVersion. The index has some patches of each minor
// version only.
func Advice(asked string) string {
	v := version(cmp.Or(strings.TrimPrefix(asked, "v"), DefaultVersion))
	return fmt.Sprintf(`there are three ways to get them:
  1. use existing binaries: --assets-dir DIR, or KUBEBUILDER_ASSETS=DIR, where DIR has kube-apiserver and etcd
  2. let run download %[2]s, without --no-download, from %[3]s, or from a mirror: --assets-index URL, or ADMISSIONTEST_ASSETS_INDEX=URL
  3. build them, with Go in PATH and a module proxy that it can reach (GOPROXY): admissiontest assets build --k8s-version %[1]s`,
		v, "1."+v.minor(), DefaultIndexURL)
}
