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

// Profile is how an API server differs from the default. The zero value is the default.
type Profile struct {
	// Flags of kube-apiserver, without the dashes. "$(files)" in a value stands for
	// the folder that Files are written to.
	Flags map[string]string
	// FeatureGates by name.
	FeatureGates map[string]bool
	// Files by name, which may have folders in it ("static/a.yaml"), written before
	// the server starts. "$(files)" is replaced in their content too.
	Files map[string]string
}

// Options say which server to start. Assets is required.
type Options struct {
	// Assets are the binaries.
	Assets assets.Assets
	// Profile is how the server differs from the default.
	Profile Profile
}

// Server is a running API server with its etcd.
type Server struct {
	// Config reaches it as a member of system:masters.
	Config *rest.Config
	// KubeConfig is Config as a kubeconfig file.
	KubeConfig []byte
	// Audit reads its audit log.
	Audit *Audit

	environment *envtest.Environment
	folder      string
	stderr      *tail
	stop        sync.Once
	stopErr     error
}

// startLimit bounds the start of the control plane.
const startLimit = time.Minute

// Start starts etcd and kube-apiserver and returns when the server is ready.
// When ctx ends first, everything that was started is stopped again.
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
		<-started //nolint:errcheck // only that it ended matters: it is stopped again
		err = ctx.Err()
	}
	if err != nil {
		if line := s.stderr.last(); line != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w: the last it said: %s", err, line)
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
	// Folders of envtest's own choice would outlast a start that fails.
	certificates, data := filepath.Join(s.folder, "kube-apiserver"), filepath.Join(s.folder, "etcd")
	if err := errors.Join(os.Mkdir(certificates, 0o700), os.Mkdir(data, 0o700)); err != nil {
		return fmt.Errorf("make folders of the API server: %w", err)
	}
	server.Path, server.Err, server.CertDir = options.Assets.KubeAPIServer(), s.stderr, certificates
	s.environment.ControlPlane.Etcd = &envtest.Etcd{Path: options.Assets.Etcd(), DataDir: data}
	arguments := server.Configure()
	// envtest turns ServiceAccount off; a conformance run wants what a real server has on.
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

// write makes one file of a profile, in a folder of its own where its name says so.
func (s *Server) write(name, content string) error {
	if !filepath.IsLocal(name) {
		return errors.New("want a name, or a path below the folder of the files")
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

// tail keeps the end of what a process writes.
type tail struct {
	mu   sync.Mutex
	data []byte
}

const tailSize = 16 << 10

// Write keeps the last bytes written.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, data...)
	if extra := len(t.data) - tailSize; extra > 0 {
		t.data = slices.Clone(t.data[extra:])
	}
	return len(data), nil
}

// last returns the last line that says an error, or else the last line.
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
