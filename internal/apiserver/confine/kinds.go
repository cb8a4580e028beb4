package confine

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/apiserver/install"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// affectsAll returns why a cluster-scoped object with these fields affects every client
// of a cluster, or "".
func (p Policy) affectsAll(resource client.Resource, fields map[string]any) string {
	switch resource.GroupResource().String() {
	case "clusterrolebindings.rbac.authorization.k8s.io":
		return p.othersRights(fields["subjects"])
	case "flowschemas.flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io":
		return "API Priority and Fairness affects the requests of every client"
	case "apiservices.apiregistration.k8s.io":
		return "an APIService changes the API of every client"
	case "nodes":
		return "the DaemonSets of other clients create pods for a Node"
	case "servicecidrs.networking.k8s.io":
		return "the Services of other clients get addresses of a ServiceCIDR"
	case "resourceslices.resource.k8s.io":
		if driver := at(fields, "spec", "driver"); driver != nil && !p.isOwn(driver) {
			return fmt.Sprintf("pods of other clients can be scheduled for the devices of driver %v: use driver example.com", driver)
		}
	case "clustertrustbundles.certificates.k8s.io":
		if signer := at(fields, "spec", "signerName"); signer != nil && signer != "" && !p.isOwn(signer) {
			return fmt.Sprintf("pods of other clients trust the certificates of signer %v: use a signer of example.com", signer)
		}
	case "persistentvolumes":
		if at(fields, "spec", "claimRef") == nil {
			return "the cluster can bind a PersistentVolume without claimRef to a claim of another client"
		}
	case "priorityclasses.scheduling.k8s.io":
		if fields["globalDefault"] == true {
			return "a PriorityClass with globalDefault applies to the pods of every client"
		}
	case "storageclasses.storage.k8s.io":
		return defaultClass(fields, "storageclass.kubernetes.io/is-default-class")
	case "ingressclasses.networking.k8s.io":
		return defaultClass(fields, "ingressclass.kubernetes.io/is-default-class")
	case "clusterroles.rbac.authorization.k8s.io":
		labels, _ := at(fields, "metadata", "labels").(map[string]any)
		for key := range labels {
			if strings.HasPrefix(key, "rbac.authorization.k8s.io/aggregate-to-") {
				return "a ClusterRole with the label " + key + " changes the rights of other users"
			}
		}
	case "customresourcedefinitions.apiextensions.k8s.io":
		return Conversion(fields)
	}
	return ""
}

// othersRights returns why the subjects of a ClusterRoleBinding can be other clients, or "". A list of subjects is
// what all verbs but a JSON patch of single ones have.
func (p Policy) othersRights(subjects any) string {
	list, isList := subjects.([]any)
	if subjects != nil && !isList {
		return "a patch of single subjects can give rights to other clients: set the whole list"
	}
	for _, one := range list {
		subject, _ := one.(map[string]any)
		name, _ := subject["name"].(string)
		namespace, _ := subject["namespace"].(string)
		if !runid.Has(name, p.ID) && (subject["kind"] != "ServiceAccount" || !runid.Has(namespace, p.ID)) {
			return fmt.Sprintf("a ClusterRoleBinding gives rights to %v %q, which can be another client: put $(id) in the name", subject["kind"], name)
		}
	}
	return ""
}

// isOwn reports whether a driver or signer is one that no cluster has: of example.com, or with the ID of the scenario.
func (p Policy) isOwn(name any) bool {
	text, _ := name.(string)
	host, _, _ := strings.Cut(text, "/")
	return host == "example.com" || strings.HasSuffix(host, ".example.com") || runid.Has(text, p.ID)
}

// Conversion returns why a CustomResourceDefinition with these fields affects every
// client, or "". Without its conversion webhook, lists of its objects fail for every
// client, and garbage collection with them: after a SIGKILL there is none.
func Conversion(fields map[string]any) string {
	if at(fields, "spec", "conversion", "strategy") == "Webhook" {
		return "if the run is killed, the conversion webhook of the CustomResourceDefinition no longer answers, and the garbage collection of the cluster waits for it"
	}
	return ""
}

func defaultClass(fields map[string]any, annotation string) string {
	annotations, _ := at(fields, "metadata", "annotations").(map[string]any)
	if annotations[annotation] == "true" {
		return "a class with the annotation " + annotation + " is the default of every client"
	}
	return ""
}

// at returns the value of a path in JSON fields, or nil.
func at(fields map[string]any, path ...string) any {
	var value any = fields
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// checkAdmission checks a request for a webhook configuration, policy or binding. Those
// that are created or replaced are narrowed to the scenario (install.Narrow), which only
// works on objects.
func (p Policy) checkAdmission(request framework.Request, fields map[string]any) error {
	switch {
	case request.DryRun:
		return nil
	case request.HTTP.RawBody != nil && request.Verb != framework.VerbDelete && request.Verb != framework.VerbDeleteCollection:
		return fmt.Errorf("a raw body cannot be narrowed to the scenario: give an object")
	case request.HTTP.Patch != nil:
		for key := range fields {
			if key != "metadata" && key != "apiVersion" && key != "kind" {
				return fmt.Errorf("a patch of %s could undo the narrowing to the scenario: use update", key)
			}
		}
	}
	if policy, found := at(fields, "spec", "policyName").(string); found && !runid.Has(policy, p.ID) {
		return fmt.Errorf("policy %q does not belong to the scenario, whose policies have $(id) in their names: put $(id) in the name", policy)
	}
	labels, _ := at(fields, "metadata", "labels").(map[string]any)
	for _, label := range []string{install.RunLabel, install.ScenarioLabel} {
		if _, found := labels[label]; found {
			return fmt.Errorf("only admissiontest may set the label %s: remove it", label)
		}
	}
	return nil
}

// decode returns the fields of a raw body. A body that is neither JSON nor YAML has none.
func decode(body []byte) (map[string]any, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(body, &fields); err != nil {
		return nil, nil //nolint:nilerr // the checks of the name refuse it where that matters
	}
	return fields, nil
}

// decodePatch returns the fields that a patch sets. A list is a JSON patch, whatever its content type is called.
func decodePatch(patch []byte) (map[string]any, error) {
	var operations []struct {
		Op, Path, From string
		Value          any
	}
	if err := json.Unmarshal(patch, &operations); err != nil {
		return decode(patch)
	}
	fields := map[string]any{}
	for _, operation := range operations {
		if operation.Op == "copy" || operation.Op == "move" {
			return nil, fmt.Errorf("a JSON patch with %q sets a value that is not known before: use \"add\"", operation.Op)
		}
		if operation.Path == "" {
			whole, _ := operation.Value.(map[string]any)
			for key, value := range whole {
				fields[key] = value
			}
			continue
		}
		set(fields, strings.Split(strings.TrimPrefix(operation.Path, "/"), "/"), operation.Value)
	}
	return fields, nil
}

// set sets the value at a JSON pointer.
func set(fields map[string]any, pointer []string, value any) {
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer[0])
	if len(pointer) == 1 {
		fields[key] = value
		return
	}
	inner, _ := fields[key].(map[string]any)
	if inner == nil {
		inner = map[string]any{}
		fields[key] = inner
	}
	set(inner, pointer[1:], value)
}
