package servers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/docs"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
	"github.com/admissiontest/admissiontest/internal/report"
	"github.com/admissiontest/admissiontest/suites/conformance"
)

// The catalogue's area aggregated on k8s.io/sample-apiserver, behind a kube-apiserver.
func TestAggregated(t *testing.T) {
	server := startAggregated(t)
	server.Environment.UseExistingCluster = nil // it is only for this test: some scenarios need that
	conformance.Run(t, conformance.Options{
		Target:    conformance.Target{Environment: server.Environment},
		Selection: conformance.Selection{Names: []string{"aggregated"}},
		Report:    conformance.Report{FailOnUnsupported: true, Strict: true},
	})
}

// Without the right to read a kind of configuration, an aggregated API server refuses every request. That says nothing
// about the requirements, and costs no other scenario.
func TestAggregatedLacksRight(t *testing.T) {
	server := startAggregated(t, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
	out, err := exec.CommandContext(t.Context(), tool(t, "github.com/admissiontest/admissiontest/cmd/admissiontest"), "run", "aggregated", "order", "--kubeconfig", kubeconfigOf(t, server), "--disposable", "-o", "json").Output()
	if err != nil { // only SHOULD are inconclusive
		t.Errorf("run: %v", err)
	}
	var result report.Report
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range result.Outcomes {
		t.Run(outcome.Name, func(t *testing.T) {
			if outcome.Area == "order" && outcome.Verdict != framework.Pass && outcome.Verdict != framework.Unsupported {
				t.Errorf("%s: %s", outcome.Verdict, outcome.Reason)
			}
			if outcome.Area == "aggregated" && (outcome.Verdict != framework.Inconclusive || !strings.Contains(outcome.Reason, "rbac --aggregated")) {
				t.Errorf("%s: %q, want inconclusive, with the remedy", outcome.Verdict, outcome.Reason)
			}
		})
	}
}

// startAggregated starts a kube-apiserver, and k8s.io/sample-apiserver behind it, which lacks the right to read some
// resources.
func startAggregated(t *testing.T, without ...string) *envtest.Server {
	t.Helper()
	authority, proxy := certificates(t)
	server, err := envtest.Start(t.Context(), envtest.Options{Progress: func(line string) { t.Log(line) }, Profile: envtest.Profile{
		Files: map[string]string{"proxy/ca.crt": authority, "proxy/proxy.crt": proxy.certificate, "proxy/proxy.key": proxy.key},
		Flags: map[string]string{
			"requestheader-client-ca-file": "$(files)/proxy/ca.crt", "requestheader-allowed-names": "front-proxy",
			"requestheader-username-headers": "X-Remote-User", "requestheader-group-headers": "X-Remote-Group", "requestheader-extra-headers-prefix": "X-Remote-Extra-",
			"proxy-client-cert-file": "$(files)/proxy/proxy.crt", "proxy-client-key-file": "$(files)/proxy/proxy.key",
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := server.Environment.ControlPlane.AddUser(controllerruntime.User{Name: "system:serviceaccount:wardle:apiserver"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	grant(t, server, without)
	port := freePort(t)
	program := exec.CommandContext(t.Context(), tool(t, "k8s.io/sample-apiserver"), "--secure-port", port, "--bind-address", "127.0.0.1", "--cert-dir", dir,
		"--etcd-servers", server.Environment.ControlPlane.Etcd.URL.String(), "--kubeconfig", file, "--authentication-kubeconfig", file, "--authorization-kubeconfig", file)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	program.Stdout, program.Stderr = log, log
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("sample-apiserver printed:\n%s", text)
		}
	})
	register(t, server, port)
	return server
}

// grant gives the aggregated API server the rights that the command prints, without some resources.
func grant(t *testing.T, server *envtest.Server, without []string) {
	t.Helper()
	text := docs.Aggregated("wardle", "apiserver")
	for _, resource := range without {
		text = strings.ReplaceAll(text, "      - "+resource+"\n", "")
	}
	client := dynamic.NewForConfigOrDie(server.Config)
	for _, document := range strings.Split(text, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		resource := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: strings.ToLower(object.GetKind()) + "s"}
		if _, err := client.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), &object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// register makes kube-apiserver send requests for wardle.example.com to a port of this machine, and waits until the
// aggregated API server answers.
func register(t *testing.T, server *envtest.Server, port string) {
	t.Helper()
	client := kubernetes.NewForConfigOrDie(server.Config)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wardle"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "api"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1"}}
	if _, err := client.CoreV1().Services("wardle").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	apply := dynamic.NewForConfigOrDie(server.Config)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		_, err := apply.Resource(apiServices).Create(t.Context(), apiService(version, port), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		await(t, "the aggregated API server serves "+version, func(ctx context.Context) error {
			if _, err := client.Discovery().ServerResourcesForGroupVersion("wardle.example.com/" + version); err != nil {
				return err
			}
			_, err := apply.Resource(flunders(version)).Namespace(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			return err
		})
	}
}

// apiServices is the resource of aggregated API servers.
var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

func apiService(version, port string) *unstructured.Unstructured {
	number, _ := strconv.ParseInt(port, 10, 64)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + ".wardle.example.com"},
		"spec": map[string]any{
			"group": "wardle.example.com", "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "wardle", "name": "api", "port": number},
		},
	}}
}

func flunders(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "wardle.example.com", Version: version, Resource: "flunders"}
}

// await repeats something until it succeeds, for up to a minute.
func await(t *testing.T, what string, done func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := done(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("wait until %s: %v", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tool builds a program of the tools in go.mod, and returns its path.
func tool(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "tool", "-n", path).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v: %s", path, err, out)
	}
	return strings.TrimSpace(string(out))
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
}

type pair struct{ certificate, key string }

// certificates returns a certificate authority, and what kube-apiserver identifies itself with to aggregated API servers.
func certificates(t *testing.T) (authority string, proxy pair) {
	t.Helper()
	made := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, pair) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parent == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return certificate, key, pair{
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
		}
	}
	after := time.Now().Add(24 * time.Hour)
	root, key, own := made(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "proxies"}, NotAfter: after, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	_, _, proxy = made(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "front-proxy"}, NotAfter: after, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, root, key)
	return own.certificate, proxy
}
