package envtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admissiontest/admissiontest/internal/apiserver/record"
	"github.com/admissiontest/admissiontest/internal/port"
)

// APIServer is the name of the API server in an EndedError.
const APIServer = "kube-apiserver"

// requestLimit is the limit of one request that asks whether a server is ready.
const requestLimit = 5 * time.Second

// The limits of clients that use Server.Config, in requests per second and at once.
const (
	ClientQPS   = 1000
	ClientBurst = 2000
)

// advertised is the address in the Endpoints of the Service kubernetes, at which nothing listens. Without
// it, kube-apiserver takes the address of the default route, and does not start if there is none. It
// accepts no loopback address there. This one is reserved for documentation (RFC 5737).
const advertised = "192.0.2.1"

// startAPIServer starts kube-apiserver and waits until it is healthy and has the namespace
// default.
func (s *Server) startAPIServer(ctx context.Context, options Options, etcd string) error {
	number, release, err := port.Reserve()
	if err != nil {
		return err
	}
	s.releasePort = release
	address := "https://127.0.0.1:" + strconv.Itoa(number)
	folder := filepath.Join(s.files(), "kube-apiserver")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("make a folder for kube-apiserver: %w", err)
	}
	_, ownTokens := options.Profile.Flags[tokensFlag]
	if err := s.credentials(folder, address, ownTokens); err != nil {
		return err
	}
	flags := map[string]string{
		"bind-address":                     "127.0.0.1",
		"advertise-address":                advertised,
		"secure-port":                      strconv.Itoa(number),
		"permit-port-sharing":              "true", // see package port
		"etcd-servers":                     etcd,
		"cert-dir":                         folder,
		"tls-cert-file":                    filepath.Join(folder, servingFile),
		"tls-private-key-file":             filepath.Join(folder, servingKeyFile),
		"client-ca-file":                   filepath.Join(folder, usersFile),
		tokensFlag:                         filepath.Join(folder, administratorFile),
		"service-account-issuer":           address + "/",
		"service-account-key-file":         filepath.Join(folder, tokensFile),
		"service-account-signing-key-file": filepath.Join(folder, tokensFile),
		"service-cluster-ip-range":         "10.0.0.0/24",
		"authorization-mode":               "RBAC",
		"allow-privileged":                 "true",
	}
	maps.Copy(flags, s.Audit.flags)
	if err := s.addProfile(flags, options.Profile); err != nil {
		return err
	}
	command := s.supervision.command(s.files(), options.Assets.KubeAPIServer(), arguments(flags)...)
	if options.ObservePlugins {
		command.Env = append(command.Env, record.Variable+"=1")
	}
	s.apiServer, err = run(APIServer, command)
	if err != nil {
		return err
	}
	s.apiServer.needs = s.etcd
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return fmt.Errorf("make a client of kube-apiserver: %w", err)
	}
	defer client.CloseIdleConnections()
	return s.apiServer.ready(ctx, func(ctx context.Context) error {
		if err := getOK(ctx, client, address+"/healthz"); err != nil {
			return err
		}
		return getOK(ctx, client, address+"/api/v1/namespaces/default")
	})
}

// The files that kube-apiserver reads, in the folder kube-apiserver of the files. Profiles use
// the first two: $(files)/kube-apiserver/apiserver.crt.
const (
	servingFile       = "apiserver.crt"
	servingKeyFile    = "apiserver.key"
	usersFile         = "users-ca.crt"
	tokensFile        = "tokens.key"
	administratorFile = "administrator.csv"
)

// tokensFlag names a file with the tokens of users.
const tokensFlag = "token-auth-file"

// The administrator: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles
const (
	administrator      = "admin"
	administratorGroup = "system:masters"
)

// credentials writes the certificates, keys and tokens of kube-apiserver, and sets Config and KubeConfig.
// The administrator has a token, because kube-apiserver verifies a certificate with each request. If the
// profile has its own tokens, it is a certificate.
func (s *Server) credentials(folder, address string, ownTokens bool) error {
	servers, err := newAuthority("admissiontest servers")
	if err != nil {
		return err
	}
	users, err := newAuthority("admissiontest users")
	if err != nil {
		return err
	}
	serving, err := servers.serving()
	if err != nil {
		return err
	}
	tokens, err := signingKey()
	if err != nil {
		return err
	}
	s.Config = &rest.Config{Host: address, QPS: ClientQPS, Burst: ClientBurst, TLSClientConfig: rest.TLSClientConfig{CAData: servers.pem}}
	files := map[string][]byte{servingFile: serving.certificate, servingKeyFile: serving.key, usersFile: users.pem, tokensFile: tokens}
	if ownTokens {
		admin, err := users.user(administrator, administratorGroup)
		if err != nil {
			return err
		}
		s.Config.CertData, s.Config.KeyData = admin.certificate, admin.key
	} else {
		s.Config.BearerToken = rand.Text()
		files[administratorFile] = fmt.Appendf(nil, "%s,%s,,%s\n", s.Config.BearerToken, administrator, administratorGroup)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("write credentials of kube-apiserver: %w", err)
		}
	}
	s.KubeConfig, err = kubeconfig(s.Config)
	return err
}

// kubeconfig returns the content of a kubeconfig file with one context.
func kubeconfig(config *rest.Config) ([]byte, error) {
	const name = "envtest"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	text, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return text, nil
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

// expand returns a text of a Profile with the folder of its files.
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

// arguments returns flags as a command line, sorted by name.
func arguments(flags map[string]string) []string {
	var line []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		line = append(line, "--"+name+"="+flags[name])
	}
	return line
}
