package conformance

import (
	"io/fs"
	"net/netip"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// Options say which scenarios to run and where. The zero value runs the whole catalogue of
// this module on an API server that envtest starts.
type Options struct {
	// Config reaches an API server that is already running. Nil starts one on this machine.
	Config *rest.Config
	// KubernetesVersion is the version of the API server to start: "1.36.3". Empty means the
	// default version. It cannot be combined with Config.
	KubernetesVersion string
	// AssetsDir is a directory with the binaries kube-apiserver and etcd to start. Empty
	// finds or builds them. It cannot be combined with Config.
	AssetsDir string
	// Plugins are compiled into the started API server: Go packages with your admission plugins.
	// A folder is relative to the working directory, which is the folder of the test. It cannot
	// be combined with Config and AssetsDir.
	Plugins []assets.Plugin
	// ObservePlugins makes the started API server record the calls of its admission plugins, for
	// the timelines of failures. Scenarios that expect such calls turn it on too. It cannot be
	// combined with Config.
	ObservePlugins bool
	// Transport is how the API server of Config calls the scripted webhooks of scenarios,
	// which run in this process: "url" by an address of this machine, "service" through a
	// relay pod in the cluster, "auto" tries both. Empty means auto.
	Transport string
	// HookImage is the image of the relay pod for transport service. Empty builds one for a
	// kind cluster of this machine.
	HookImage string
	// HookSources are the addresses from which the API server connects to pods. If there are
	// any, a NetworkPolicy blocks all other connections to the relay pod.
	HookSources []netip.Prefix
	// HookAddress is the HOST or HOST:PORT by which the API server calls this process with
	// transport url. Empty uses the first address of this machine that works.
	HookAddress string
	// FS has the scenarios. Nil means the catalogue of this module.
	FS fs.FS
	// Paths are files and directories with scenarios to run instead. It cannot be combined
	// with FS.
	Paths []string
	// Install are files and directories with the manifests that your project ships, such as the
	// output of kustomize build. Their webhook configurations, policies, bindings and
	// CustomResourceDefinitions are installed for all scenarios and removed at the end.
	Install []string
	// Endpoints are the endpoints of the webhooks under test, by NAMESPACE/NAME of the
	// Service that their clientConfig names. Without an Endpoint, the API server calls the Service.
	Endpoints map[string]framework.Endpoint
	// AllowForeign are namespaces of other clients that scenarios may name on your API
	// server. By default they may only name their own. What they create there is removed.
	AllowForeign []string
	// Select has names, areas or patterns ("reinvocation.*"). Empty selects all.
	Select []string
	// Levels are the levels to run. Empty means all.
	Levels []framework.Level
	// Skip has scenarios to skip: reasons by name, area or pattern.
	Skip map[string]string
	// KnownFailing has scenarios that are known to fail: reasons by name, area or pattern.
	// A known failure does not fail the test; a listed scenario that passes does.
	KnownFailing map[string]string
	// Strict counts a SHOULD as a MUST.
	Strict bool
	// FailOnUnsupported fails the test of each scenario that the API server does not support,
	// whatever its level. By default it is skipped.
	FailOnUnsupported bool
	// Parallel is the number of scenarios that act at the same time. 0 means 16.
	Parallel int
	// ReportDir is a directory for report.json, junit.xml and report.html. Empty writes none.
	ReportDir string
	// Implementation describes what is tested, for the report. It is optional.
	Implementation framework.Implementation
}
