package scenario

import "github.com/admissiontest/admissiontest/framework"

// KindPolicyTest is the kind of a PolicyTest.
const KindPolicyTest = "PolicyTest"

// PolicyTest is a test of ValidatingAdmissionPolicies and MutatingAdmissionPolicies as a table
// of requests. The loader makes a Scenario with Cases of it. A PolicyTest has no placeholders:
// texts such as "$(NAME)" are sent as they are.
type PolicyTest struct {
	// APIVersion is always admissiontest.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is always PolicyTest.
	Kind string `json:"kind"`
	// Metadata names the test. The default is the name of its folder and file.
	Metadata *PolicyTestMetadata `json:"metadata,omitempty"`
	// Policies are the policies and bindings under test: files as you ship them, with paths as
	// in givenFiles of a Scenario, or manifests. A policy without a binding gets one. Other
	// manifests in these files are installed too.
	Policies Manifests `json:"policies"`
	// Params are manifests that the policies need: parameters and CustomResourceDefinitions.
	Params Manifests `json:"params,omitempty"`
	// Namespaces are the labels of namespaces that objects and params name, by name. A namespace
	// that is not listed has no labels.
	Namespaces map[string]map[string]string `json:"namespaces,omitempty"`
	// Isolation is "none" to install the policies as they are, in namespaces of the names that the
	// objects have, on their own API server. It is the default if a policy or binding
	// asks for the name of a namespace. See Spec.
	Isolation Isolation `json:"isolation,omitempty"`
	// Server requests a separate API server with custom flags, for policies of an alpha version for
	// instance.
	Server *Server `json:"server,omitempty"`
	// Cases are the requests and what is expected. They do not influence each other.
	Cases []PolicyCase `json:"cases"`
	// Contract also checks the rules of suites/policy, which hold for every policy. An empty one, {}, takes its
	// samples from the cases. It needs an API server that ends with the run.
	Contract *PolicyContract `json:"contract,omitempty"`
}

// PolicyTestMetadata names a PolicyTest.
type PolicyTestMetadata struct {
	// Name is how the names of its cases begin: lower-case words separated by dots.
	Name string `json:"name"`
}

// PolicyCase is a request, or one for each of several objects, and what is expected: without another
// expectation, that the request is allowed.
type PolicyCase struct {
	// Name is the name of the case. The default describes the request: create-pod-bad.
	Name string `json:"name,omitempty"`
	// Object is the object of the request: a file, FILE#NAME or FILE#KIND/NAME for one of the
	// manifests in a file, a manifest, or a list of these. Of a file with several manifests each is
	// a case.
	Object Manifests `json:"object"`
	// Old is the object before an UPDATE. It exists before the policies do.
	Old Manifests `json:"old,omitempty"`
	// Operation is CREATE, UPDATE or DELETE. The default is UPDATE with Old, otherwise CREATE.
	// The object of a DELETE exists before the policies do.
	Operation string `json:"operation,omitempty"`
	// Subresource is the subresource that an UPDATE is for, whose objects are of the same kind: status or
	// ephemeralcontainers, for instance. Write a Scenario for other requests to a subresource.
	Subresource string `json:"subresource,omitempty"`
	// As is the user who sends the request. The user gets the rights for it. The default is an
	// administrator.
	As *framework.User `json:"as,omitempty"`
	// Namespace is the namespace of objects that name none.
	Namespace string `json:"namespace,omitempty"`
	// Allowed expects that the request is carried out. It is the default: true can be left out, and
	// false is an error, because Denied also expects a policy of the test to refuse the request.
	Allowed *bool `json:"allowed,omitempty"`
	// Denied expects that a policy of the test refuses the request. An error of the policy is not
	// a denial, unless Denied.Error expects one.
	Denied *Denied `json:"denied,omitempty"`
	// Mutated are fields that the object in the response must match in part. The request must be allowed.
	Mutated map[string]any `json:"mutated,omitempty"`
	// Warned are parts of warnings that the client gets from policies: a string or a list. An error of
	// a policy is {error: PART}. False expects no warning of a policy.
	Warned any `json:"warned,omitempty"`
	// Audited expects something in the audit event: parts of the messages of failed validations
	// (a string or a list, in which an error of a policy is {error: PART}; {error: PART} alone does too), or audit
	// annotations of policies, by KEY or POLICY/KEY.
	Audited any `json:"audited,omitempty"`
}

// Denied describes a refusal by a policy of the test. In a file it can also be the message, a
// list of parts of it, or true.
type Denied struct {
	// Message are parts of the message. It must contain each of them.
	Message OneOrMore[string] `json:"message,omitempty"`
	// Policy is the policy that refuses, Binding its binding.
	Policy  string `json:"policy,omitempty"`
	Binding string `json:"binding,omitempty"`
	// Error is a part of an error of the policy, because of which the API server refuses the request:
	// an expression fails, params are not found.
	Error string `json:"error,omitempty"`
	// Code is the HTTP status code of the refusal, and Reason that of its status: 422 and Invalid, unless the validation
	// has another reason.
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Manifests are Kubernetes manifests: files, maps, or a list of these. One is a short form of a list of
// one.
type Manifests []any
