package conformance

import (
	"io/fs"

	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/envtest"
)

// Options say where scenarios run, which ones, what they test, and how their outcomes are reported. The zero value runs
// the whole catalogue of this module on an API server that Run starts on this machine.
type Options struct {
	// Target is the API server. The zero value starts one on this machine.
	Target Target
	// Selection chooses the scenarios. The zero value chooses the whole catalogue of this module.
	Selection Selection
	// Subject is what is under test besides the API server. The zero value means: only the API server.
	Subject Subject
	// Report says which outcomes fail the test, and where the report is written. The zero value means that each MUST
	// counts, and that no report is written.
	Report Report
}

// Target is the API server on which scenarios run: the one of Config, the one of Environment, or one that Run starts
// and stops. The fields that only concern one of these cannot be combined with the others.
type Target struct {
	// Config is the client configuration for an API server that is already running, which can have other clients:
	// scenarios are confined to their own namespaces and objects. Nil means that there is none.
	Config *rest.Config
	// Environment is your Environment of controller-runtime's package envtest. Its API server must be only for
	// tests: scenarios can use all of it, as of one that Run starts. What they create is removed at the end, but not
	// what their requests changed. Nil means that there is none. It cannot be combined with Config.
	//
	// It must be started when the scenarios run. If it uses an existing cluster (UseExistingCluster), it is as Config.
	//
	// What its API server has is under test: a refusal by one of its webhooks is judged, as one by a plugin. Scenarios
	// that need what it does not have are unsupported: the audit log, recorded calls of plugins, their own flags of
	// kube-apiserver, and "isolation: none".
	Environment *envtest.Environment
	// Version is the Kubernetes version of the API server to start: "1.36.3", or a minor version, "1.36". Empty
	// means the default version. It cannot be combined with Config or Environment.
	Version string
	// BinaryAssetsDirectory is a directory with kube-apiserver and etcd to start. Empty means the directory that the
	// environment variable KUBEBUILDER_ASSETS names, and without it programs that Run finds, downloads or builds. It cannot be
	// combined with Config, Environment or Subject.Plugins.
	BinaryAssetsDirectory string
	// ObservePlugins makes the started API server record the calls of its admission plugins, for the timelines of
	// failures. False means that only servers with Subject.Plugins, and servers of scenarios that expect such calls,
	// record them. It cannot be combined with Config or Environment.
	ObservePlugins bool
	// Transport is how the API server of Config or Environment calls the scripted webhooks of scenarios, which run
	// in this process. "url" uses an address of this machine, "service" uses a relay pod in the
	// cluster, and "auto" tries both. Empty means auto.
	Transport string
	// HookImage is the image of the relay pod for transport service. Empty builds one for a
	// kind cluster of this machine.
	HookImage string
	// AllowServerFlags are flags of kube-apiserver that scenarios may set although they are not known to be
	// harmless. With some, a scenario can read or write any file of the user, or execute a command. Empty means
	// none.
	AllowServerFlags []string
	// Parallel is the number of scenarios that run at the same time. In addition, the same number
	// of scenarios that mostly wait can run. 0 means 16.
	Parallel int
}

// Selection chooses scenarios: from FS, from Paths, or from the catalogue of this module.
type Selection struct {
	// FS has the scenarios to choose from. Nil means Paths, or the catalogue.
	FS fs.FS
	// Paths are files and directories with the scenarios to choose from. Empty means FS, or the catalogue. It cannot
	// be combined with FS.
	Paths []string
	// Names has names, areas or patterns ("reinvocation.*") of scenarios to run. Empty means all
	// scenarios.
	Names []string
	// Levels are the levels to run. Empty means all.
	Levels []framework.Level
	// Skip has the scenarios to skip. The key is a name, area or pattern, the value is the reason. Empty means none.
	Skip map[string]string
}

// Subject is what is under test besides the API server: plugins, webhooks and policies.
type Subject struct {
	// Plugins are Go packages with your admission plugins, which are compiled into the started API
	// server. A folder is relative to the working directory, which is the folder of the test. Empty means none. It
	// cannot be combined with Target.Config, Target.Environment or Target.BinaryAssetsDirectory.
	Plugins []envtest.Plugin
	// Install are files and directories with the manifests that your project ships, such as the
	// output of kustomize build. Their webhook configurations, policies, bindings and
	// CustomResourceDefinitions are installed for all scenarios and removed at the end. Empty means none.
	Install []string
	// Endpoints are the endpoints of the webhooks under test, by NAMESPACE/NAME of the
	// Service that their clientConfig names. Without an Endpoint, the API server calls the Service.
	Endpoints map[string]framework.Endpoint
	// Implementation describes what is tested, for the report. The zero value is left out.
	Implementation framework.Implementation
}

// Report says which outcomes fail the test, and where the report is written.
type Report struct {
	// KnownFailing has the scenarios that are known to fail. The key is a name, area or pattern,
	// the value is the reason. A known failure does not fail the test, but a listed scenario that
	// passes does. Empty means none.
	KnownFailing map[string]string
	// Strict treats SHOULD like MUST: a failed SHOULD fails the test. False means that only MUST counts.
	Strict bool
	// FailOnUnsupported makes the test of each unsupported scenario fail, whatever its level. False means that these
	// tests are skipped.
	FailOnUnsupported bool
	// Dir is a directory for report.json, junit.xml and report.html. Empty means that no
	// report is written.
	Dir string
}
