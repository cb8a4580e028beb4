package conformance

import (
	"io/fs"
	"net/netip"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// Options select the scenarios to run, and the API server. The zero value runs the whole catalogue
// of this module on an API server that Run starts on this machine.
type Options struct {
	// Config is the client configuration for an API server that is already running. Nil starts an
	// API server on this machine.
	Config *rest.Config
	// KubernetesVersion is the version of the API server to start: "1.36.3". Empty means the
	// default version. It cannot be combined with Config.
	KubernetesVersion string
	// AssetsDir is a directory with the binaries kube-apiserver and etcd to start. Empty means that
	// Run finds or builds the binaries. It cannot be combined with Config.
	AssetsDir string
	// Plugins are Go packages with your admission plugins, which are compiled into the started API
	// server. A folder is relative to the working directory, which is the folder of the test. It
	// cannot be combined with Config or AssetsDir.
	Plugins []binaries.Plugin
	// ObservePlugins makes the started API server record the calls of its admission plugins, for
	// the timelines of failures. Scenarios that expect such calls turn it on too. It cannot be
	// combined with Config.
	ObservePlugins bool
	// Transport is how the API server of Config calls the scripted webhooks of scenarios, which run
	// in this process. "url" uses an address of this machine, "service" uses a relay pod in the
	// cluster, and "auto" tries both. Empty means auto.
	Transport string
	// HookImage is the image of the relay pod for transport service. Empty builds one for a
	// kind cluster of this machine.
	HookImage string
	// HookSources are the addresses from which the API server connects to pods. If set, a
	// NetworkPolicy blocks connections to the relay pod from other addresses. Empty means no
	// NetworkPolicy.
	HookSources []netip.Prefix
	// HookAddress is the HOST or HOST:PORT by which the API server calls this process with
	// transport url. Empty uses the first address of this machine that works.
	HookAddress string
	// FS has the scenarios to run. Nil means the catalogue of this module.
	FS fs.FS
	// Paths are files and directories with scenarios to run instead of the catalogue. It cannot be
	// combined with FS.
	Paths []string
	// Install are files and directories with the manifests that your project ships, such as the
	// output of kustomize build. Their webhook configurations, policies, bindings and
	// CustomResourceDefinitions are installed for all scenarios and removed at the end.
	Install []string
	// Endpoints are the endpoints of the webhooks under test, by NAMESPACE/NAME of the
	// Service that their clientConfig names. Without an Endpoint, the API server calls the Service.
	Endpoints map[string]framework.Endpoint
	// AllowForeign are namespaces of other clients on your API server that scenarios may use. By
	// default, a scenario may only use its own namespaces. Objects that a scenario creates in these
	// namespaces are removed at the end.
	AllowForeign []string
	// AllowServerFlags are flags of kube-apiserver that scenarios may set although they are not known to be
	// harmless. With some, a scenario can read or write any file of the user, or execute a command.
	AllowServerFlags []string
	// Select has names, areas or patterns ("reinvocation.*") of scenarios to run. Empty means all
	// scenarios.
	Select []string
	// Levels are the levels to run. Empty means all.
	Levels []framework.Level
	// Skip has the scenarios to skip. The key is a name, area or pattern, the value is the reason.
	Skip map[string]string
	// KnownFailing has the scenarios that are known to fail. The key is a name, area or pattern,
	// the value is the reason. A known failure does not fail the test, but a listed scenario that
	// passes does.
	KnownFailing map[string]string
	// Strict treats SHOULD like MUST: a failed SHOULD fails the test.
	Strict bool
	// FailOnUnsupported makes the test of each unsupported scenario fail, whatever its level. By
	// default these tests are skipped.
	FailOnUnsupported bool
	// Parallel is the number of scenarios that run at the same time. In addition, the same number
	// of scenarios that mostly wait can run. 0 means 16.
	Parallel int
	// ReportDir is a directory for report.json, junit.xml and report.html. Empty means that no
	// report is written.
	ReportDir string
	// Implementation describes what is tested, for the report. It is optional.
	Implementation framework.Implementation
}
