package envtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// Profile is a change of the default configuration of an API server. The zero value changes
// nothing.
type Profile struct {
	// Flags of kube-apiserver, without the dashes. "$(files)" in a value is replaced by
	// the folder of Files. The serving certificate of kube-apiserver and its key are in
	// this folder: kube-apiserver/apiserver.crt and apiserver.key.
	Flags map[string]string
	// FeatureGates by name.
	FeatureGates map[string]bool
	// Files are written before the server starts, by name: a relative path, which can
	// have folders ("static/a.yaml"). "$(files)" is also replaced in their content.
	Files map[string]string
}

// Plugin is a Go package with admission plugins, which Start compiles into kube-apiserver. The package has a function
// Register(*admission.Plugins), as the plugins of Kubernetes have; all plugins that it registers are added. The
// fields are:
//
//	Package        an import path, or a folder: an absolute path, or one that begins with a dot; required
//	Dir            the folder that relative folders begin at, and in whose module an import path is
//	               found; empty means the working directory
//	Last           true calls them after all others, and not where Kubernetes puts new plugins
//	Off            true means that they are off unless --enable-admission-plugins turns them on
//
// The package is compiled with the versions of modules that Kubernetes has, and otherwise with the requirements and
// replacements in the go.mod of its module. A workspace (go.work) and a vendor directory are not used.
type Plugin = binaries.Plugin

// Options configure a server. The zero value starts one of the default version of Kubernetes.
type Options struct {
	// Version is a version of Kubernetes, "1.36.3", or a minor version, "1.36". Empty means the version in
	// BinaryAssetsDirectory or KUBEBUILDER_ASSETS if one of them is set, and the default version otherwise.
	Version string
	// BinaryAssetsDirectory is a directory with kube-apiserver and etcd, as in controller-runtime's Environment. Empty
	// means the directory that the environment variable KUBEBUILDER_ASSETS names. If it is not set either, Start uses
	// programs of Version that are on this machine. If there are none, Start downloads them from the index of envtest releases,
	// or the one whose URL ADMISSIONTEST_ASSETS_INDEX has ("off": none), and if that fails builds them, which takes minutes.
	BinaryAssetsDirectory string
	// Plugins are compiled into kube-apiserver. Start builds a kube-apiserver of Version with them, unless the cache
	// has it, and uses only etcd of BinaryAssetsDirectory. Empty means no plugins but Kubernetes' own.
	Plugins []Plugin
	// Profile changes the default configuration. The zero value changes nothing.
	Profile Profile
	// ObservePlugins makes the server record the calls of its admission plugins: see framework.Audit. Start builds
	// a kube-apiserver that can, unless the cache has it. The error is an ErrCannotObserve if that of
	// BinaryAssetsDirectory or KUBEBUILDER_ASSETS cannot.
	ObservePlugins bool
	// NoAudit turns the audit log off: Server.Audit is nil. The log takes time from a server that gets thousands of requests,
	// and memory from this process. The error of Start says so if ObservePlugins is true too.
	NoAudit bool
	// Progress receives a line for each longer action, such as a build. Nil discards the lines.
	Progress func(line string)
}

// programs returns the programs of a server, which can mean downloading or building them. A directory without a Version is used
// as it is: its programs are not run first, to find out their version.
func (o Options) programs(ctx context.Context) (binaries.Assets, error) {
	if o.BinaryAssetsDirectory != "" && o.Version == "" && len(o.Plugins) == 0 {
		return binaries.In(o.BinaryAssetsDirectory)
	}
	return binaries.Ensure(ctx, binaries.Options{
		Version: o.Version, Dir: o.BinaryAssetsDirectory, Plugins: o.Plugins, ObservePlugins: o.ObservePlugins, Progress: o.Progress,
	})
}

// ErrCannotObserve means: the kube-apiserver cannot record the calls of its admission plugins.
var ErrCannotObserve = errors.New("this kube-apiserver cannot record the calls of its admission plugins, because this version of admissiontest did not build it: use one that \"admissiontest assets build\" builds")

// Environment is that of controller-runtime: see https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/envtest.
type Environment = envtest.Environment

// Server is a running API server with its etcd.
type Server struct {
	// Config is a client configuration for a member of system:masters.
	Config *rest.Config
	// KubeConfig is Config as the content of a kubeconfig file.
	KubeConfig []byte
	// Audit reads the audit log of the server. It is nil with Options.NoAudit.
	Audit *Audit

	// Environment is controller-runtime's, whose ControlPlane runs; BinaryAssetsDirectory is the directory of its
	// programs. AddUser makes users. Start installs what CRDInstallOptions and WebhookInstallOptions say, and Stop
	// removes it again; the server goes on until Stop of Server.
	Environment *Environment

	supervision     *supervision
	etcd, apiServer *process
	port            int    // of kube-apiserver
	token           string // of the administrator
	releasePort     func() error

	ended    chan struct{}
	end      sync.Once
	endedErr error // valid after ended is closed
	begun    bool  // startPlane was called
	wasReady atomic.Bool
	stopping atomic.Bool
	stop     sync.Once
	stopErr  error
}

// Start starts etcd and kube-apiserver and returns when the server is ready. They run until Stop
// or the end of this process, also if nothing refers to the Server. If Start fails or ctx ends
// first, it stops them and removes their files. The error has the last error that the server
// printed which did not start; it is an EndedError if that server ended by itself.
func Start(ctx context.Context, options Options) (*Server, error) {
	programs, err := options.programs(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{Environment: &Environment{BinaryAssetsDirectory: programs.Dir}, ended: make(chan struct{})}
	if err := s.start(ctx, options, programs); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s of %s: %w", strings.TrimSpace(APIServer+" "+programs.Version), programs.Dir, err), s.Stop())
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, options Options, programs binaries.Assets) (err error) {
	if options.ObservePlugins && !programs.ObservesPlugins {
		return ErrCannotObserve
	}
	if options.ObservePlugins && options.NoAudit {
		return errors.New("the calls of admission plugins are in the audit log: set only one of ObservePlugins and NoAudit")
	}
	if s.supervision, err = supervise(); err != nil {
		return err
	}
	if err := os.Mkdir(s.files(), 0o700); err != nil {
		return fmt.Errorf("make a folder for the files of kube-apiserver: %w", err)
	}
	if !options.NoAudit {
		if s.Audit, err = startAudit(s.files(), options.ObservePlugins); err != nil {
			return err
		}
	}
	s.etcd, s.apiServer = s.supervision.process("etcd"), s.supervision.process(APIServer)
	plane := &s.Environment.ControlPlane
	plane.Etcd = &envtest.Etcd{Err: s.etcd, StartTimeout: unlimited, StopTimeout: unlimited}
	plane.APIServer = &envtest.APIServer{Err: s.apiServer, StartTimeout: unlimited, StopTimeout: unlimited}
	if err := s.configureEtcd(plane.Etcd, programs); err != nil {
		return err
	}
	if err := s.configureAPIServer(plane.APIServer, options, programs); err != nil {
		return err
	}
	if err := s.startPlane(ctx); err != nil {
		return err
	}
	existing := true // its Start does not start another server
	s.Environment.UseExistingCluster = &existing
	s.Environment.Config, s.Environment.KubeConfig = s.Config, s.KubeConfig
	return nil
}

// files is the folder of the files that configure kube-apiserver.
func (s *Server) files() string { return filepath.Join(s.supervision.folder, "files") }

// Ended returns a channel that is closed when kube-apiserver or etcd ends, by Stop or by itself.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Err returns an EndedError if kube-apiserver or etcd ended by itself, and nil if they run or Stop
// ended them.
func (s *Server) Err() error {
	select {
	case <-s.ended:
		return s.endedErr
	default:
		return nil
	}
}

// Lost returns how many connections of the API server can have been lost, because other clients hold too many: to
// the receiver of audit events, or to the API server, which could not open more files.
func (s *Server) Lost() int {
	lost := s.apiServer.stderr.withoutFiles()
	if s.Audit != nil {
		lost += s.Audit.limit.Full()
	}
	return lost
}

// Explain adds to the error of a request that got no response that the API server could not open more files, if it
// could not.
func (s *Server) Explain(err error) error {
	if err == nil || s.apiServer.stderr.withoutFiles() == 0 {
		return err
	}
	return fmt.Errorf("%w; kube-apiserver %s", err, couldNotOpen)
}

// Stop stops the servers and removes their files. A second call does nothing. Nothing outlives
// the servers, so they are killed; with GOCOVERDIR set they end by SIGTERM, because a server that
// is built with coverage writes when it ends.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		s.stopping.Store(true)
		var errs []error
		if s.begun {
			errs = append(errs, s.stopPlane(os.Getenv("GOCOVERDIR") != ""))
		}
		if s.releasePort != nil {
			errs = append(errs, s.releasePort())
		}
		if s.Audit != nil {
			errs = append(errs, s.Audit.close())
		}
		if s.supervision != nil {
			errs = append(errs, s.supervision.close())
		}
		s.stopErr = errors.Join(errs...)
	})
	return s.stopErr
}
