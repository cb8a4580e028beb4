package envtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
	"github.com/admissiontest/admissiontest/internal/kubeapiserver"
	"github.com/admissiontest/admissiontest/internal/processes"
)

// APIServer is the name of the API server in an EndedError.
const APIServer = "kube-apiserver"

// The limits of clients that use Server.Config, in requests per second and at once.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// advertised is the address in the Endpoints of the Service kubernetes, at which nothing listens. Without
// it, kube-apiserver takes the address of the default route, and does not start if there is none. It
// accepts no loopback address there. This one is reserved for documentation (RFC 5737).
const advertised = "192.0.2.1"

// configureAPIServer sets the flags of kube-apiserver, and writes its files.
func (s *Server) configureAPIServer(server *envtest.APIServer, options Options, programs binaries.Assets) (err error) {
	s.port, s.releasePort, err = processes.ReservePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return err
	}
	folder := filepath.Join(s.files(), "kube-apiserver")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("make a folder for kube-apiserver: %w", err)
	}
	flags := map[string]string{
		"advertise-address":      advertised,
		"secure-port":            strconv.Itoa(s.port),
		"permit-port-sharing":    "true", // see package port
		"etcd-servers":           "unix://" + s.socket(),
		"service-account-issuer": s.address() + "/",
	}
	if _, own := options.Profile.Flags[tokensFlag]; !own {
		s.token = rand.Text()
		flags[tokensFlag] = filepath.Join(folder, "administrator.csv")
		line := fmt.Sprintf("%s,%s,,%s\n", s.token, administrator, administratorGroup)
		if err := os.WriteFile(flags[tokensFlag], []byte(line), 0o600); err != nil {
			return fmt.Errorf("write credentials of kube-apiserver: %w", err)
		}
	}
	if s.Audit != nil {
		maps.Copy(flags, s.Audit.flags)
	}
	if err := s.addProfile(flags, options.Profile); err != nil {
		return err
	}
	server.Configure().Disable("disable-admission-plugins") // controller-runtime disables one
	for name, value := range flags {
		server.Configure().Set(name, value)
	}
	wrapped := program{name: APIServer, path: programs.KubeAPIServer(), dir: s.files()}
	if options.ObservePlugins {
		wrapped.variables = []string{kubeapiserver.Variable + "=1"}
	}
	if file, ok := flags[usersFlag]; ok { // controller-runtime sets it after this package
		wrapped.arguments = []string{"--" + usersFlag + "=" + file}
	}
	server.CertDir = folder
	server.Path, err = s.supervision.wrap(wrapped)
	return err
}

// address is the URL of kube-apiserver.
func (s *Server) address() string { return "https://127.0.0.1:" + strconv.Itoa(s.port) }

// usersFlag names a file with the authority of the certificates of users, tokensFlag one with the tokens of users.
const (
	usersFlag  = "client-ca-file"
	tokensFlag = "token-auth-file"
)

// The administrator: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles
const (
	administrator      = "admin"
	administratorGroup = "system:masters"
)

// connect sets Config and KubeConfig. The administrator has a token, because kube-apiserver verifies a certificate with
// each request. If the profile has its own tokens, it is a certificate.
func (s *Server) connect() error {
	user, err := s.Environment.AddUser(envtest.User{Name: administrator, Groups: []string{administratorGroup}},
		&rest.Config{QPS: clientQPS, Burst: clientBurst})
	if err != nil {
		return err
	}
	s.Config = user.Config()
	s.Config.Host = s.address()
	if s.token != "" {
		s.Config.BearerToken, s.Config.CertData, s.Config.KeyData = s.token, nil, nil
	}
	s.KubeConfig, err = user.KubeConfig()
	return err
}

// addProfile writes the files of a profile, and adds its flags.
func (s *Server) addProfile(flags map[string]string, profile Profile) error {
	for name, content := range profile.Files {
		if err := s.WriteFile(name, content); err != nil {
			return fmt.Errorf("write file %q of the server profile: %w", name, err)
		}
	}
	for name, value := range profile.Flags {
		flags[name] = s.expand(value)
	}
	if gates := gateFlag(profile.FeatureGates); gates != "" {
		flags["feature-gates"] = gates
	}
	return nil
}

// expand returns a string of a Profile with the folder of its files.
func (s *Server) expand(text string) string { return strings.ReplaceAll(text, "$(files)", s.files()) }

// WriteFile replaces or creates a file, also while kube-apiserver runs. Name and content are as in
// Profile.Files. Readers get the old or the new content, never a part of it.
func (s *Server) WriteFile(name, content string) error {
	path, err := inFolder(s.files(), name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next := filepath.Join(s.supervision.folder, "next")
	if err := os.WriteFile(next, []byte(s.expand(content)), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// RemoveFile removes a file of Profile.Files or WriteFile. The error is an fs.ErrNotExist if there
// is none.
func (s *Server) RemoveFile(name string) error {
	path, err := inFolder(s.files(), name)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// inFolder returns the path of a file in a folder. The error is not nil if the name is not a relative
// path below the folder.
func inFolder(folder, name string) (string, error) {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) {
		return "", errors.New("want a relative path below the folder of the files")
	}
	return filepath.Join(folder, name), nil
}

func gateFlag(gates map[string]bool) string {
	var parts []string
	for name, on := range gates {
		parts = append(parts, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
