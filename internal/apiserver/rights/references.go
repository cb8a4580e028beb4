package rights

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
)

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
