package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
)

// ofReferences adds what the API server asks for beside the right to a request
// itself, where what is sent gives somebody something:
//
//   - a Role holds only what its author may do
//     (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping);
//   - the parameters of a policy must be ones that its author may read;
//   - who approves or signs a certificate must be allowed to for its signer.
func (w want) ofReferences(intent Intent, request framework.Request) {
	fields := fieldsOf(request)
	switch request.Kind.GroupKind() {
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}, schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		for _, item := range asList(fields["rules"]) {
			rule, _ := item.(map[string]any)
			w.ofRule(intent.Who, rule)
		}
	case schema.GroupKind{Group: admissionGroup, Kind: kindValidatingPolicy}, schema.GroupKind{Group: admissionGroup, Kind: kindMutatingPolicy}:
		version, _ := nestedString(fields, "spec", "paramKind", "apiVersion")
		kind, _ := nestedString(fields, "spec", "paramKind", "kind")
		if res, err := w.resources.of(schema.FromAPIVersionAndKind(version, kind)); err == nil {
			w.add(intent.Who, right{verb: "get", group: res.Group, resource: res.Resource})
		}
	case schema.GroupKind{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:
		verb := map[string]string{"approval": "approve", "status": "sign"}[request.Subresource]
		if verb == "" || request.User != nil {
			return
		}
		for _, other := range intent.Requests {
			if signer, ok := nestedString(fieldsOf(other), "spec", "signerName"); ok {
				w.add(intent.Who, right{verb: verb, group: "certificates.k8s.io", resource: "signers", name: signer})
			}
		}
	}
}

// ofRule adds what a rule of a Role gives.
func (w want) ofRule(who string, rule map[string]any) {
	names := texts(rule["resourceNames"])
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range texts(rule["verbs"]) {
		for _, group := range texts(rule["apiGroups"]) {
			for _, resource := range texts(rule["resources"]) {
				for _, name := range slices.Clone(names) {
					w.add(who, right{verb: verb, group: group, resource: resource, name: name})
				}
			}
		}
		for _, path := range texts(rule["nonResourceURLs"]) {
			w.add(who, right{verb: verb, path: path})
		}
	}
}
