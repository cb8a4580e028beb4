package envtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Profile is a change of the default configuration of an API server. The zero value changes
// nothing.
type Profile struct {
	// Flags of kube-apiserver, without the dashes. "$(files)" in a value is replaced by
	// the folder of Files.
	Flags map[string]string
	// FeatureGates by name.
	FeatureGates map[string]bool
	// Files are written before the server starts, by name: a relative path, which can
	// have folders ("static/a.yaml"). "$(files)" is also replaced in their content.
	Files map[string]string
}

// Options configure a server. Assets is required.
type Options struct {
	// Assets are the programs.
	Assets assets.Assets
	// Profile changes the default configuration.
	Profile Profile
}

// Server is a running API server with its etcd.
type Server struct {
	// Config is a client configuration for a member of system:masters.
	Config *rest.Config
	// KubeConfig is Config as the content of a kubeconfig file.
	KubeConfig []byte
	// Audit reads the audit log of the server.
	Audit *Audit

	environment *envtest.Environment
	folder      string
	stderr      *tail
	stop        sync.Once
	stopErr     error
}

// startLimit is the limit for the start of the control plane.
const startLimit = time.Minute

// Start starts etcd and kube-apiserver and returns when the server is ready. If it fails or ctx
// ends first, it stops them and removes their files. The error has the last error that
// kube-apiserver printed.
func Start(ctx context.Context, options Options) (*Server, error) {
	folder, err := os.MkdirTemp("", "admissiontest-envtest-")
	if err != nil {
		return nil, fmt.Errorf("start API server: %w", err)
	}
	s := &Server{folder: folder, stderr: &tail{}}
	if s.Audit, err = startAudit(folder); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	if err := s.configure(options); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	started := make(chan error, 1)
	go func() {
		var err error
		s.Config, err = s.environment.Start()
		started <- err
	}()
	select {
	case err = <-started:
	case <-ctx.Done():
		<-started //nolint:errcheck // it is stopped below in any case
		err = ctx.Err()
	}
	if err != nil {
		if line := s.stderr.last(); line != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w: kube-apiserver printed: %s", err, line)
		}
		return nil, errors.Join(fmt.Errorf("start kube-apiserver %s of %s: %w", options.Assets.Version, options.Assets.Dir, err), s.Stop())
	}
	s.KubeConfig = s.environment.KubeConfig
	return s, nil
}

// configure prepares the environment without starting anything.
func (s *Server) configure(options Options) error {
	existing := false
	s.environment = &envtest.Environment{
		UseExistingCluster:       &existing,
		BinaryAssetsDirectory:    options.Assets.Dir,
		ControlPlaneStartTimeout: startLimit,
	}
	server := s.environment.ControlPlane.GetAPIServer()
	// If a start fails, envtest does not remove folders that it chose, so choose them here.
	certificates, data := filepath.Join(s.folder, "kube-apiserver"), filepath.Join(s.folder, "etcd")
	if err := errors.Join(os.Mkdir(certificates, 0o700), os.Mkdir(data, 0o700)); err != nil {
		return fmt.Errorf("make folders of the API server: %w", err)
	}
	server.Path, server.Err, server.CertDir = options.Assets.KubeAPIServer(), s.stderr, certificates
	s.environment.ControlPlane.Etcd = &envtest.Etcd{Path: options.Assets.Etcd(), DataDir: data}
	arguments := server.Configure()
	// envtest disables the plugin ServiceAccount; a conformance run needs the plugins of a
	// real server.
	arguments.Disable("disable-admission-plugins")
	for name, value := range s.Audit.flags {
		arguments.Set(name, value)
	}
	expand := func(text string) string { return strings.ReplaceAll(text, "$(files)", s.folder) }
	for name, content := range options.Profile.Files {
		if err := s.write(name, expand(content)); err != nil {
			return fmt.Errorf("write file %q of the server profile: %w", name, err)
		}
	}
	for name, value := range options.Profile.Flags {
		arguments.Set(name, expand(value))
	}
	if gates := gateFlag(options.Profile.FeatureGates); gates != "" {
		arguments.Set("feature-gates", gates)
	}
	return nil
}

// write writes one file of a profile. The error is not nil if the name is not a relative path
// below the folder.
func (s *Server) write(name, content string) error {
	if !filepath.IsLocal(name) {
		return errors.New("want a relative path below the folder of the files")
	}
	path := filepath.Join(s.folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

func gateFlag(gates map[string]bool) string {
	var parts []string
	for name, on := range gates {
		parts = append(parts, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// Stop stops the servers and removes their files. A second call does nothing.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		var errs []error
		if s.environment != nil {
			errs = append(errs, s.environment.Stop())
		}
		if s.Audit != nil {
			errs = append(errs, s.Audit.close())
		}
		s.stopErr = errors.Join(append(errs, os.RemoveAll(s.folder))...)
	})
	return s.stopErr
}

// tail is a writer that keeps the last bytes.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const tailSize = 16 << 10

// Write adds data and drops the oldest bytes.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, data...)
	if extra := len(t.data) - tailSize; extra > 0 {
		t.data = slices.Clone(t.data[extra:])
	}
	return len(data), nil
}

// last returns the last line with an error, or the last line if there is no error.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.data)), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "E") || strings.HasPrefix(line, "F") || strings.HasPrefix(line, "Error") {
			return line
		}
	}
	return lines[len(lines)-1]
}
