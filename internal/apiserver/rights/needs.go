package rights

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

// collector collects rights and who needs them.
type collector struct {
	resources *client.Resources
	// rights has who needs each right. The run itself is the empty list.
	rights map[client.Right][]string
}

// Wanted returns all rights that are needed, and by whom. A right that every run
// needs has an empty list. It adds the CustomResourceDefinitions of the needs to the resources.
func Wanted(resources *client.Resources, needs []Need) map[client.Right][]string {
	c := collector{resources: resources, rights: map[client.Right][]string{}}
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
			c.add(need.Who, client.Right{Verb: "get", Path: "/metrics"})
		}
		for _, request := range need.Requests {
			c.addRequest(need.Who, request)
			c.addReferences(need, request)
			if need.Grants && install.NeedsGrant(request) {
				c.addGrant(need.Who, request)
			}
		}
	}
	return c.rights
}

func (c collector) add(who string, right client.Right) {
	if old, known := c.rights[right]; !known || who != "" && len(old) > 0 {
		c.rights[right] = append(old, who)
	}
	if who == "" {
		c.rights[right] = nil
	}
}

// addRun adds what every run does: create and remove namespaces, and fence.
func (c collector) addRun() {
	for _, verb := range []string{"create", "get", "list", "update", "patch", "delete"} {
		c.add("", client.Right{Verb: verb, Resource: "namespaces"})
	}
	c.add("", client.Right{Verb: "update", Resource: "namespaces", Subresource: "finalize"})
	c.addManaged("", client.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Deletable: true})
	for _, name := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		c.addManaged("", client.Resource{GroupVersionResource: schema.GroupVersionResource{Group: install.AdmissionGroup, Version: "v1", Resource: name}, Deletable: true})
	}
	if services, err := c.resources.Of(client.APIServices()); err == nil { // to find aggregated API servers
		c.add("", client.Right{Verb: "list", Group: services.Group, Resource: services.Resource})
	}
	c.add("", client.Right{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: "default"})
}

// addManaged adds what it takes to create objects of a resource, change them, find
// them again and remove them.
func (c collector) addManaged(who string, res client.Resource) {
	verbs := []string{"create"}
	if res.Deletable {
		verbs = append(verbs, "get", "list", "update", "patch", "delete", "deletecollection")
	}
	for _, verb := range verbs {
		c.add(who, client.Right{Verb: verb, Group: res.Group, Resource: res.Resource})
	}
}

// addRequest adds what it takes to send one request.
func (c collector) addRequest(who string, request framework.Request) {
	res, err := c.resources.Of(request.Kind)
	if err != nil {
		return // the outcome of the scenario says that the kind is not served
	}
	if request.User != nil {
		c.addImpersonation(who, *request.User)
	} else {
		c.add(who, client.Right{Verb: verbOf(request), Group: res.Group, Resource: res.Resource, Subresource: request.Subresource})
	}
	if request.Verb == framework.VerbGet || request.Verb == framework.VerbList || res.Resource == "namespaces" || request.Subresource != "" {
		return
	}
	c.addManaged(who, res)
}

// addGrant adds what it takes to give the user of a request the right to send it. See
// install.Installer.Grant.
func (c collector) addGrant(who string, request framework.Request) {
	res, err := c.resources.Of(request.Kind)
	if err != nil {
		return
	}
	names := []string{"clusterroles", "clusterrolebindings"}
	if res.Namespaced {
		names = []string{"roles", "rolebindings"}
	}
	for _, name := range names {
		c.addManaged(who, client.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: name}, Deletable: true})
	}
	for _, rule := range install.RulesFor(c.resources, res, request) {
		c.addRule(who, rule)
	}
}

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
	c.add(who, client.Right{Verb: "impersonate", Resource: "users", Name: orAny(user.Name)})
	for _, group := range user.Groups {
		c.add(who, client.Right{Verb: "impersonate", Resource: "groups", Name: orAny(group)})
	}
	if user.UID != "" {
		c.add(who, client.Right{Verb: "impersonate", Group: "authentication.k8s.io", Resource: "uids", Name: orAny(user.UID)})
	}
	for key, values := range user.Extra {
		for _, value := range values {
			c.add(who, client.Right{Verb: "impersonate", Group: "authentication.k8s.io", Resource: "userextras", Subresource: key, Name: orAny(value)})
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
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}, schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
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
			c.add(need.Who, client.Right{Verb: "get", Group: res.Group, Resource: res.Resource})
			if res.Deletable { // package fence reads all parameters of a kind that can be listed
				c.add(need.Who, client.Right{Verb: "list", Group: res.Group, Resource: res.Resource})
			}
		}
	case schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:
		verb := map[string]string{"approval": "approve", "status": "sign"}[request.Subresource]
		if verb == "" || request.User != nil {
			return
		}
		for _, other := range need.Requests {
			if signer, ok, _ := unstructured.NestedString(fieldsOf(other), "spec", "signerName"); ok {
				c.add(need.Who, client.Right{Verb: verb, Group: "certificates.k8s.io", Resource: "signers", Name: signer})
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
	for _, verb := range texts("verbs") {
		for _, group := range texts("apiGroups") {
			for _, resource := range texts("resources") {
				for _, name := range names {
					c.add(who, client.Right{Verb: verb, Group: group, Resource: resource, Name: name})
				}
			}
		}
		for _, path := range texts("nonResourceURLs") {
			c.add(who, client.Right{Verb: verb, Path: path})
		}
	}
}
