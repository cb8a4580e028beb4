package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// ErrRightsMissing marks rights that are missing for a run.
var ErrRightsMissing = errors.New("rights are missing")

// Right is one action that a user must be allowed to do.
type Right = client.Right

// MissingRights returns which of some rights the user of a configuration does not have. If the API server does not
// answer reviews, no right counts as missing.
func MissingRights(ctx context.Context, config *rest.Config, needed []Right) ([]Right, error) {
	c, err := client.New(config)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Missing(ctx, needed)
}

// Rights returns the rights that CheckRights checks, and who needs each, on an API server with the kinds of Kubernetes
// only. A right that every run needs has an empty list.
func Rights(needs []Need) map[Right][]string { return wanted(client.BuiltIn(), needs) }

// Need is what one scenario is going to send.
type Need struct {
	// Who names the scenario, for messages.
	Who string
	// Requests are the requests. A Namespace that is empty or contains a placeholder is
	// created by the run.
	Requests []framework.Request
	// Grants is true if the run gives the users of Requests the rights for these.
	Grants bool
	// Metrics is true if the feature gates or the admission plugins of the API server must
	// be known.
	Metrics bool
}

// CheckRights finds out whether the user of a configuration has the rights that a run
// needs: for the requests of its scenarios, and for installing, waiting and removing.
// The error is an ErrRightsMissing that names each missing right and who needs it.
// Nothing is created. It sends one review for an administrator, and one more for each right that the first
// does not grant. If the API server does not answer reviews, no right counts as missing.
func CheckRights(ctx context.Context, config *rest.Config, needs []Need) error {
	c, err := client.New(config)
	if err != nil {
		return err
	}
	defer c.Close()
	less, err := c.Missing(ctx, []Right{{Verb: "*", Group: "*", Resource: "*"}, {Verb: "*", Path: "*"}})
	if err != nil || len(less) == 0 {
		return err
	}
	if err := c.Discover(ctx); err != nil {
		return err
	}
	who := wanted(c.Resources, needs)
	missing, err := c.Missing(ctx, slices.SortedFunc(maps.Keys(who), func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.String(), b.String()))
	}))
	if err != nil || len(missing) == 0 {
		return err
	}
	texts := make([]string, len(missing))
	for i, right := range missing {
		texts[i] = right.String() + whoNeeds(who[right])
	}
	return fmt.Errorf("user %s: %w: %s; nothing was created; \"admissiontest rbac\" prints the roles that a run needs, and --skip leaves out the scenarios that need these",
		cmp.Or(c.UserName(ctx), "of the kubeconfig"), ErrRightsMissing, strings.Join(texts, ", "))
}

// whoNeeds names the scenarios that need a right. No scenario stands for every run.
func whoNeeds(who []string) string {
	slices.Sort(who)
	who = slices.Compact(who)
	switch {
	case len(who) == 0:
		return ""
	case len(who) > 2:
		return fmt.Sprintf(" (%s and %d more)", who[0], len(who)-1)
	}
	return " (" + strings.Join(who, " and ") + ")"
}

// collector collects rights and who needs them.
type collector struct {
	resources *client.Resources
	// rights has who needs each right. The run itself is the empty list.
	rights map[Right][]string
}

// wanted returns all rights that are needed, and by whom. A right that every run
// needs has an empty list. It adds the CustomResourceDefinitions of the needs to the resources.
func wanted(resources *client.Resources, needs []Need) map[Right][]string {
	c := collector{resources: resources, rights: map[Right][]string{}}
	c.addRun()
	for _, need := range needs {
		for _, request := range need.Requests {
			if request.Kind.Kind == "CustomResourceDefinition" {
				resources.AddCRD(fieldsOf(request))
			}
		}
	}
	for _, need := range needs {
		if need.Metrics {
			c.addRight(need.Who, Right{Verb: "get", Path: "/metrics"})
		}
		for _, request := range need.Requests {
			c.addRequest(need, request)
			c.addReferences(need, request)
		}
	}
	return c.rights
}

// add adds rights for a resource, which can have a subresource: "pods/exec".
func (c collector) add(who, group, resource, name string, verbs ...string) {
	resource, subresource, _ := strings.Cut(resource, "/")
	for _, verb := range verbs {
		c.addRight(who, Right{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: name})
	}
}

func (c collector) addRight(who string, right Right) {
	if old, known := c.rights[right]; !known || who != "" && len(old) > 0 {
		c.rights[right] = append(old, who)
	}
	if who == "" {
		c.rights[right] = nil
	}
}

// addRun adds what every run does: create and remove namespaces, fence, and find aggregated and other API servers.
func (c collector) addRun() {
	c.add("", "", "namespaces", "", "create", "get", "list", "update", "patch", "delete")
	c.add("", "", "namespaces/finalize", "", "update")
	c.add("", "", "configmaps", "", managed(true)...)
	c.add("", install.AdmissionGroup, "mutatingwebhookconfigurations", "", managed(true)...)
	c.add("", install.AdmissionGroup, "validatingwebhookconfigurations", "", managed(true)...)
	if services, err := c.resources.Of(client.APIServices()); err == nil {
		c.add("", services.Group, services.Resource, "", "list")
	}
	c.addRight("", Right{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: "default"})
}

// managed returns the verbs that it takes to create objects of a resource, and, if the API server stores them, to
// change them, find them again and remove them.
func managed(stored bool) []string {
	if !stored {
		return []string{"create"}
	}
	return []string{"create", "get", "list", "update", "patch", "delete", "deletecollection"}
}

// addRequest adds what it takes to send one request.
func (c collector) addRequest(need Need, request framework.Request) {
	res, err := c.resources.Of(request.Kind)
	if err != nil {
		return // the outcome of the scenario says that the kind is not served
	}
	if request.User != nil {
		c.addImpersonation(need.Who, *request.User)
	} else {
		c.add(need.Who, res.Group, res.Resource+"/"+request.Subresource, "", verbOf(request))
	}
	if request.Verb != framework.VerbGet && request.Verb != framework.VerbList && res.Resource != "namespaces" && request.Subresource == "" {
		c.add(need.Who, res.Group, res.Resource, "", managed(res.Deletable)...)
	}
	if !need.Grants || !install.NeedsGrant(request) {
		return
	}
	names := []string{"clusterroles", "clusterrolebindings"} // see install.Installer.Grant
	if res.Namespaced {
		names = []string{"roles", "rolebindings"}
	}
	for _, name := range names {
		c.add(need.Who, rbacGroup, name, "", managed(true)...)
	}
	for _, rule := range install.RulesFor(c.resources, res, request) {
		c.addRule(need.Who, rule)
	}
}

const rbacGroup = "rbac.authorization.k8s.io"

// verbOf returns the verb of a request as authorizers see it. See
// https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
func verbOf(request framework.Request) string {
	switch request.Verb {
	case framework.VerbApply:
		return "patch"
	case framework.VerbConnect:
		switch request.HTTP.Method {
		case http.MethodGet, http.MethodHead:
			return "get"
		case http.MethodPut:
			return "update"
		case http.MethodPatch:
			return "patch"
		case http.MethodDelete:
			return "delete"
		case "", http.MethodPost:
			return "create"
		default:
			return "" // OPTIONS has no verb
		}
	default:
		return string(request.Verb)
	}
}

// addImpersonation adds what it takes to impersonate a user. A name with a placeholder
// can be any name. See
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
func (c collector) addImpersonation(who string, user framework.User) {
	orAny := func(name string) string {
		if strings.Contains(name, "$(") {
			return ""
		}
		return name
	}
	const group, verb = "authentication.k8s.io", "impersonate"
	c.add(who, "", "users", orAny(user.Name), verb)
	for _, name := range user.Groups {
		c.add(who, "", "groups", orAny(name), verb)
	}
	if user.UID != "" {
		c.add(who, group, "uids", orAny(user.UID), verb)
	}
	for key, values := range user.Extra {
		for _, value := range values { // the key can have a slash
			c.addRight(who, Right{Verb: verb, Group: group, Resource: "userextras", Subresource: key, Name: orAny(value)})
		}
	}
}

func fieldsOf(request framework.Request) map[string]any {
	if object, ok := request.Object.(runtime.Unstructured); ok {
		return object.UnstructuredContent()
	}
	return nil
}

// addReferences adds the rights that the API server requires besides the right to the
// request itself:
//
//   - the author of a Role must have the rights in it
//     (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping);
//   - the author of a policy must be allowed to read its parameters;
//   - a user who approves or signs a certificate must be allowed to for its signer.
func (c collector) addReferences(need Need, request framework.Request) {
	fields := fieldsOf(request)
	switch request.Kind.GroupKind() {
	case schema.GroupKind{Group: rbacGroup, Kind: "Role"}, schema.GroupKind{Group: rbacGroup, Kind: "ClusterRole"}:
		rules, _, _ := unstructured.NestedFieldNoCopy(fields, "rules")
		list, _ := rules.([]any)
		for _, item := range list {
			rule, _ := item.(map[string]any)
			c.addRule(need.Who, rule)
		}
	case schema.GroupKind{Group: install.AdmissionGroup, Kind: install.KindValidatingPolicy}, schema.GroupKind{Group: install.AdmissionGroup, Kind: install.KindMutatingPolicy}:
		version, _, _ := unstructured.NestedString(fields, "spec", "paramKind", "apiVersion")
		kind, _, _ := unstructured.NestedString(fields, "spec", "paramKind", "kind")
		if res, err := c.resources.Of(schema.FromAPIVersionAndKind(version, kind)); err == nil {
			c.add(need.Who, res.Group, res.Resource, "", "get")
			if res.Deletable { // package fence reads all parameters of a kind that can be listed
				c.add(need.Who, res.Group, res.Resource, "", "list")
			}
		}
	case schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:
		verb := map[string]string{"approval": "approve", "status": "sign"}[request.Subresource]
		if verb == "" || request.User != nil {
			return
		}
		for _, other := range need.Requests {
			if signer, ok, _ := unstructured.NestedString(fieldsOf(other), "spec", "signerName"); ok {
				c.add(need.Who, "certificates.k8s.io", "signers", signer, verb)
			}
		}
	}
}

// addRule adds what a rule of a Role grants.
func (c collector) addRule(who string, rule map[string]any) {
	texts := func(field string) []string {
		list, _, _ := unstructured.NestedStringSlice(rule, field)
		return list
	}
	names := texts("resourceNames")
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range texts("apiGroups") {
		for _, resource := range texts("resources") {
			for _, name := range names {
				c.add(who, group, resource, name, texts("verbs")...)
			}
		}
	}
	for _, path := range texts("nonResourceURLs") {
		for _, verb := range texts("verbs") {
			c.addRight(who, Right{Verb: verb, Path: path})
		}
	}
}
