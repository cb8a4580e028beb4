package pairs

import "strings"

// seed is a mistake in a policy: what is replaced in its file.
type seed struct {
	name string
	// replaced has each old string, followed by the new one.
	replaced []string
}

// pair is a webhook and a policy that is meant to be the same, with mistakes. Its files are in testdata.
type pair struct {
	name  string
	seeds [3]seed
}

// later are more mistakes, one of each pair. They were written when the comparison found the others, and it was not changed for them.
func later() map[string]seed {
	return map[string]seed{
		"labels":     {"an update that leaves the labels of the object is not checked", []string{"  validations:", "  matchConditions: [{name: changed, expression: 'oldObject == null || object.metadata.?labels != oldObject.metadata.?labels'}]\n  validations:"}},
		"images":     {"init containers of templates are forgotten", []string{"variables.spec.?initContainers", "(request.kind.kind == 'Pod' ?variables.spec :{}).?initContainers"}},
		"replicas":   {"0 is allowed", []string{"expression: object", "expression: object.spec.?replicas.orValue(0) == 0 || object"}},
		"resources":  {"one container with a limit is enough", []string{"containers.all", "containers.exists"}},
		"hostpaths":  {"administrators of the cluster are exempt", []string{"request.userInfo.?groups.orValue([]))", "request.userInfo.?groups.orValue([])) && !('system:masters' in request.userInfo.?groups.orValue([]))"}},
		"names":      {"long names are refused", []string{"[a-z0-9-]+$", "[a-z0-9-]{1,40}$"}},
		"quantities": {"less instead of at most", []string{"<= 0", "< 0"}},
		"immutable":  {"what is in deletion is not checked", []string{"expression: object", "expression: has(object.metadata.deletionTimestamp) || object"}},
		"deletion":   {"TRUE protects too", []string{".orValue('')", ".orValue('').lowerAscii()"}},
		"defaults":   {"updates are changed too", []string{"operations: [CREATE]", "operations: [CREATE, UPDATE]"}},
	}
}

// applied returns a policy with the mistake, or "" if it does not have what is replaced.
func (s seed) applied(policy string) string {
	for i := 0; i < len(s.replaced); i += 2 {
		if !strings.Contains(policy, s.replaced[i]) {
			return ""
		}
	}
	return strings.NewReplacer(s.replaced...).Replace(policy)
}

// What mistakes replace.
const (
	objectSelector    = "    objectSelector: {matchExpressions: [{key: example.com/any-image, operator: DoesNotExist}]}\n"
	namespaceSelector = "    namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}\n"
	ofTemplate        = "  - expression: request.kind.kind != 'Deployment' || object.spec.template.metadata.?labels[?'team'].orValue('') in ['blue', 'green']\n    message: the label team of the template is blue or green\n"
	daemonSets        = "    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [daemonsets]}\n"
	owner, old        = "object.metadata.?annotations[?'example.com/owner'].orValue('')", "oldObject.metadata.?annotations[?'example.com/owner'].orValue('')"
	tier              = "labels: {'tier': object.metadata.?labels[?'tier'].orValue(params.data.tier)}"
	cost              = "annotations: {'example.com/cost': object.metadata.?labels[?'tier'].orValue('') == 'standard' ? '100' : '200'}"
	limit, storage    = "quantity(c.?resources.?limits[?'memory'].orValue('1Ei')).compareTo(quantity('2Gi')) <= 0", "object.spec.resources.requests.storage"
)

// pairs were written, with all mistakes, before the first comparison. One was none, and another one is in its place: request.name instead of
// object.metadata.name, because an API server has generated the name when it validates.
func pairs() []pair {
	return []pair{
		{"labels", [3]seed{
			{"the pod template is forgotten", []string{ofTemplate, ""}},
			{"only that the label is there", []string{".orValue('') in ['blue', 'green']", ".hasValue()"}},
			{"UPDATE is forgotten", []string{"operations: [CREATE, UPDATE]", "operations: [CREATE]"}},
		}},
		{"images", [3]seed{
			{"init containers are forgotten", []string{" + variables.spec.?initContainers.orValue([])", ""}},
			{"the subresource ephemeralcontainers is forgotten", []string{", pods/ephemeralcontainers", ""}},
			{"the objectSelector is forgotten", []string{objectSelector, ""}},
		}},
		{"replicas", [3]seed{
			{"the subresource scale is forgotten", []string{", deployments/scale", ""}},
			{"any value of the namespace's label", []string{"operator: In, values: [prod]", "operator: Exists"}},
			{"less instead of at most", []string{"<= 10", "< 10"}},
		}},
		{"resources", [3]seed{
			{"strings are compared", []string{limit, "c.?resources.?limits[?'memory'].orValue('9') <= '2Gi'"}},
			{"without a limit is allowed", []string{"'1Ei'", "'0'"}},
			{"init containers are forgotten", []string{" + object.spec.?initContainers.orValue([])", ""}},
		}},
		{"hostpaths", [3]seed{
			{"pod templates of controllers are forgotten", []string{daemonSets, ""}},
			{"the name of the user instead of the group", []string{"!('storage-admins' in request.userInfo.?groups.orValue([]))", "request.userInfo.username != 'storage-admins'"}},
			{"a prefix without its slash", []string{"startsWith('/var/log/')", "startsWith('/var/log')"}},
		}},
		{"names", [3]seed{
			{"the pattern has no anchors", []string{"'^(app|cfg)-[a-z0-9-]+$'", "'(app|cfg)-[a-z0-9-]+'"}},
			{"kube-system is not excluded", []string{namespaceSelector, ""}},
			{"generated names are let through", []string{"expression: object.metadata.name", "expression: has(object.metadata.generateName) || object.metadata.name"}},
		}},
		{"quantities", [3]seed{
			{"the number before Gi is compared", []string{"quantity(" + storage + ").compareTo(quantity('100Gi')) <= 0", "int(" + storage + ".replace('Gi', '')) <= 100"}},
			{"100G instead of 100Gi", []string{"quantity('100Gi')", "quantity('100G')"}},
			{"dry runs are not checked", []string{"  validations:", "  matchConditions: [{name: real, expression: '!request.?dryRun.orValue(false)'}]\n  validations:"}},
		}},
		{"immutable", [3]seed{
			{"the owner can be removed", []string{"expression: " + owner, "expression: " + owner + " == '' || " + owner}},
			{"an owner can be added", []string{"expression: " + owner, "expression: " + old + " == '' || " + owner}},
			{"oldObject is null at a creation", []string{"operations: [UPDATE]", "operations: [CREATE, UPDATE]"}},
		}},
		{"deletion", [3]seed{
			{"object instead of oldObject, and errors are ignored", []string{"oldObject", "object", "failurePolicy: Fail", "failurePolicy: Ignore"}},
			{"all service accounts are exempt", []string{"!(request.userInfo.username in ['system:serviceaccount:kube-system:namespace-controller', 'system:serviceaccount:kube-system:generic-garbage-collector'])", "!request.userInfo.username.startsWith('system:serviceaccount:')"}},
			{"any value of the label protects", []string{".orValue('') != 'true'", ".hasValue() == false"}},
		}},
		{"defaults", [3]seed{
			{"the mutations are in another order", []string{tier, cost, cost, tier}},
			{"the params are missing", []string{"paramRef: {name: defaults", "paramRef: {name: default", "parameterNotFoundAction: Deny", "parameterNotFoundAction: Allow"}},
			{"a tier that is there is replaced", []string{"object.metadata.?labels[?'tier'].orValue(params.data.tier)", "params.data.tier"}},
		}},
	}
}
