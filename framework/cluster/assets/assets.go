package assets

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// DefaultVersion is the Kubernetes version used when none is asked for.
const DefaultVersion = "1.36.3"

// EtcdVersion is the etcd that is built beside every kube-apiserver; it serves
// Kubernetes 1.34 to 1.36.
const EtcdVersion = "3.6.8"

// The places assets come from, as Assets.Source says them.
const (
	SourceDir          = "assets-dir"         // Options.Dir
	SourceEnvironment  = "KUBEBUILDER_ASSETS" // the environment variable
	SourceCache        = "cache"              // our cache
	SourceSetupEnvtest = "setup-envtest"      // the store of setup-envtest
	SourceBuilt        = "built"              // built just now, now in our cache
	SourceDownloaded   = "downloaded"         // downloaded just now, now in our cache
)

var (
	// ErrNotFound means: no place holds the version asked for.
	ErrNotFound = errors.New("control-plane binaries not found")
	// ErrDamaged means: a binary is missing, not executable, does not run, or differs
	// from what was installed.
	ErrDamaged = errors.New("control-plane binaries damaged")
	// ErrWrongVersion means: the directory given holds another version than asked for.
	ErrWrongVersion = errors.New("control-plane binaries of another version")
	// ErrBadVersion means: what was asked for is not a Kubernetes version at all.
	ErrBadVersion = errors.New("not a Kubernetes version")
	// ErrNoSuchVersion means: Kubernetes has no such version.
	ErrNoSuchVersion = errors.New("no such Kubernetes version")
	// ErrNoToolchain means: building needs a Go toolchain, and there is none, or it is
	// too old for the version asked for.
	ErrNoToolchain = errors.New("no usable Go toolchain")
	// ErrNoModules means: the Go modules to build from could not be fetched.
	ErrNoModules = errors.New("go modules not available")
	// ErrNoDownload means: the archive of the version could not be downloaded.
	ErrNoDownload = errors.New("download not possible")
	// ErrBuild means: the compiler or linker failed, or what came out does not run.
	ErrBuild = errors.New("build failed")
)

// Assets are the programs of one control plane.
type Assets struct {
	// Dir is the absolute path of the directory that holds them.
	Dir string
	// Version is that of Kubernetes, without a leading v: "1.36.3".
	Version string
	// Source says where they came from: one of the Source constants.
	Source string
}

// KubeAPIServer is the path of the kube-apiserver program.
func (a Assets) KubeAPIServer() string { return filepath.Join(a.Dir, apiserverName) }

// Etcd is the path of the etcd program.
func (a Assets) Etcd() string { return filepath.Join(a.Dir, etcdName) }

// Options says which assets are wanted and where they may be. The zero value
// asks for DefaultVersion, from the default places, in silence.
type Options struct {
	// Version is that of Kubernetes, "1.36.3" or "v1.36.3". Empty takes
	// DefaultVersion, or whatever version Dir or KUBEBUILDER_ASSETS holds.
	Version string
	// Dir, when set, is the only place looked at: a directory with
	// kube-apiserver and etcd.
	Dir string
	// CacheDir is our cache. Empty is "admissiontest" in os.UserCacheDir.
	CacheDir string
	// NoBuild makes Ensure stop where Find does.
	NoBuild bool
	// Progress, when set, gets one plain line for each event worth telling and,
	// during long work, one about every ten seconds. Calls never overlap.
	Progress func(line string)

	// What tests put in the place of the machine's own. The zero values are the
	// real environment, `go` as PATH finds it, and ten seconds.
	env       []string
	goCommand string
	heartbeat time.Duration
}

const (
	apiserverName = "kube-apiserver"
	etcdName      = "etcd"
)

// programs lists what every assets directory holds.
func programs() []string { return []string{apiserverName, etcdName} }

// seenVersions are those this package has been seen to build.
func seenVersions() []string { return []string{"1.36.3", "1.35.4", "1.34.4"} }

// Advice is the advice that ends every error about missing binaries: the three
// ways to get those of a version. Empty is DefaultVersion.
func Advice(version string) string {
	if version == "" {
		version = DefaultVersion
	}
	return fmt.Sprintf(`there are three ways out:
  1. use binaries you have: --assets-dir DIR, or KUBEBUILDER_ASSETS=DIR, where DIR holds kube-apiserver and etcd
  2. download them where the network allows it: admissiontest assets download --k8s-version %[1]s, or setup-envtest use %[1]s
  3. build them: with a Go toolchain on PATH and a Go module proxy it can reach (GOPROXY), admissiontest assets build --k8s-version %[1]s`,
		strings.TrimPrefix(version, "v"))
}
