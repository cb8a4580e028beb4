package scenario

import (
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// The apiVersion and kind of every scenario.
const (
	APIVersion = "admissiontest.dev/v1alpha1"
	Kind       = "Scenario"
)

// Scenario is the test of one requirement.
type Scenario struct {
	// APIVersion is always admissiontest.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is always Scenario.
	Kind     string   `json:"kind"`
	Metadata Metadata `json:"metadata"`
	Spec     Spec     `json:"spec"`

	// File is the path of the scenario's file; Area is its folder, as Load defines
	// it. Load sets both.
	File string `json:"-"`
	Area string `json:"-"`
	// Lines are the lines of the steps in File, in the order of Spec.When.
	Lines []int `json:"-"`
	// Line and Column are the position of the name in File. The loader sets them.
	Line, Column int `json:"-"`

	// Cases are the cases of a PolicyTest. What is given is installed once for all of them. Spec.When is empty
	// then. The loader makes several Scenarios of a PolicyTest if objects of its cases cannot exist at the same
	// time.
	Cases []Case `json:"-"`
	// Existing is the number of manifests at the end of Given that exist only for the requests of the
	// Cases: an error about one is an error of those that need it.
	Existing int `json:"-"`
	// Alone means that the scenario runs alone on an API server, with webhook configurations and policies as they are
	// written. The engine sets it.
	Alone bool `json:"-"`

	// contract is that of the PolicyTest. See ContractOf.
	contract *Contract
	// origin says where the manifests are in File and in the files that it refers to. It is nil for a
	// scenario that is from no file.
	origin *origin
}

// Metadata names a scenario.
type Metadata struct {
	// Name is the stable name of the requirement: lower-case words separated by dots,
	// the area first, "reinvocation.if-needed.again-after-later-change".
	Name string `json:"name"`
}

// Spec is the content of a scenario.
type Spec struct {
	// Level is MUST, SHOULD or MAY.
	Level framework.Level `json:"level"`
	// Requirement is the requirement in one sentence.
	Requirement string `json:"requirement"`
	// Source are the URLs of the documentation or upstream files that the requirement
	// comes from. The catalogue requires one.
	Source []string `json:"source,omitempty"`
	// Behaviours are the IDs of the behaviours that the scenario tests, from
	// scenarios/behaviours.tsv.
	Behaviours []string `json:"behaviours,omitempty"`
	// Since is the first Kubernetes minor version with this requirement, "1.36". On an
	// older target the verdict is unsupported.
	Since string `json:"since,omitempty"`
	// Until is the last Kubernetes minor version with this requirement, "1.36". On a newer
	// target the verdict is unsupported.
	Until string `json:"until,omitempty"`
	// FeatureGate must be on in the target, otherwise the verdict is unsupported.
	FeatureGate string `json:"featureGate,omitempty"`
	// Needs are capabilities that a target may lack: "audit" (its audit log can be read),
	// "webhook-credentials" (it has credentials for webhooks at the name localhost),
	// "hook-service" (a Service of type ExternalName $(hooks.host) leads to the Hooks),
	// "hooks-at-443" (the Hooks listen on that port), "controllers" (kube-controller-manager
	// runs), and "plugin/NAME" (the compiled-in admission plugin of that name is enabled). If
	// the target lacks one, the verdict is unsupported.
	Needs []string `json:"needs,omitempty"`
	// Notes are what a reader must know, for example where a real API server does not
	// do what the behaviour catalogue says.
	Notes string `json:"notes,omitempty"`
	// Server requests a separate API server with custom flags.
	Server *Server `json:"server,omitempty"`
	// Exclusive means that the scenario runs alone, on an API server without other clients, with webhook
	// configurations and policies as they are written. A scenario whose files need that runs alone without it.
	Exclusive bool `json:"exclusive,omitempty"`
	// Isolation is "none" if the scenario runs alone, as with Exclusive, on an API server that no other scenario
	// uses and that ends with the run.
	Isolation Isolation `json:"isolation,omitempty"`
	// Namespaces are more namespaces of the scenario, besides $(namespace). They are created
	// before Given.
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// GivenFiles are files with manifests that are installed before the first step,
	// usually of the project under test: "../config/webhook.yaml". Paths are
	// relative to the scenario's file. The loader puts their manifests before Given.
	GivenFiles []string `json:"givenFiles,omitempty"`
	// Given are Kubernetes manifests that are installed before the first step. Webhook
	// configurations and policies are narrowed to the scenario. A manifest here replaces
	// one of the same kind and name from GivenFiles.
	Given []map[string]any `json:"given,omitempty"`
	// Hooks are the scripts of the webhooks in Given, by webhook name. A webhook without
	// a script allows every request. A webhook under test, whose configuration names a
	// Service outside of the scenario, answers itself; its script has what happens in front of
	// it: fault, http, delay, barrier, meanwhile.
	Hooks map[string]Hook `json:"hooks,omitempty"`
	// Conversion defines how custom resources are converted if their
	// CustomResourceDefinition in Given has the conversion strategy Webhook and no
	// clientConfig.
	Conversion *hook.Conversion `json:"conversion,omitempty"`
	// MatchesNothing are the names of webhooks, policies and bindings with rules that are to match nothing
	// that the API server serves. In others, such a rule is an error.
	MatchesNothing []string `json:"matchesNothing,omitempty"`
	// When are the steps, which run in this order. There are none if Server.Fails is set.
	When []Step `json:"when"`
}

// Isolation is how a scenario is kept apart from others on the same API server.
type Isolation string

// IsolationNone is the Isolation of a scenario that is not narrowed to its namespaces. The
// default, the empty Isolation, is a scenario that is.
const IsolationNone Isolation = "none"

// Namespace is a namespace of a scenario. On the API server its name is $(namespace.NAME),
// which is $(id)-NAME.
type Namespace struct {
	// Name is a short name, unique in the scenario: "other".
	Name string `json:"name"`
	// Labels and Annotations are set in the namespace.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Server is the profile of the API server that a scenario requests. Scenarios with
// the same profile share a server. Only target envtest supports profiles.
type Server struct {
	// Flags of kube-apiserver without the dashes: {"enable-admission-plugins": "X"}.
	Flags map[string]string `json:"flags,omitempty"`
	// FeatureGates by name.
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	// Files are written to a folder before the server starts. In Flags and Files,
	// "$(files)" is that folder, "$(hooks.port)" the port of the Hooks, and "$(id)" the
	// ID of the scenario, if only one has this profile.
	Files map[string]string `json:"files,omitempty"`
	// Fails is set if the server must not start: it must end, and its log must contain
	// this text, or match this regular expression if it is written as "/regex/".
	Fails string `json:"fails,omitempty"`
}

// Hook is the script of one webhook: either one reply for all calls, or a sequence
// of replies.
type Hook struct {
	Reply `json:",inline"`
	// Replies are used in order, one for each call since the script was set; the last
	// one is used for all later calls. Replies and the fields of a single reply
	// exclude each other.
	Replies []Reply `json:"replies,omitempty"`
}

// Reply is one scripted reply.
type Reply struct {
	hook.Reply `json:",inline"`
	// Meanwhile are steps that run after the call was received and before it is
	// answered, as steps of another client.
	Meanwhile []Step `json:"meanwhile,omitempty"`
}
