package rbac

import "strings"

// Aggregated returns the rights that an aggregated API server needs to call webhooks and to evaluate policies. The
// ServiceAccount of the options is the one by which it calls kube-apiserver. The error is that of New.
func Aggregated(options Options) (string, error) {
	m, err := named(options)
	return strings.NewReplacer("NAMESPACE", m.Namespace, "ACCOUNT", m.Account).Replace(aggregatedRoles), err
}

const aggregatedRoles = `# What an aggregated API server, which runs with the ServiceAccount ACCOUNT in namespace
# NAMESPACE, needs for admission. "admissiontest rbac --aggregated" wrote this.
#
# It runs its own webhooks and policies, so it reads their configurations. If it lacks the
# right to one of these kinds that it knows, it refuses every request after ten seconds:
# "not yet ready to handle request".
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ACCOUNT-admission}
rules:
  - {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
  - apiGroups: [admissionregistration.k8s.io]
    resources:
      - mutatingadmissionpolicies
      - mutatingadmissionpolicybindings
      - mutatingwebhookconfigurations
      - validatingadmissionpolicies
      - validatingadmissionpolicybindings
      - validatingwebhookconfigurations
    verbs: [get, list, watch]
  # For policies with params, add get, list and watch of their kinds.
  - {apiGroups: [flowcontrol.apiserver.k8s.io], resources: [flowschemas, prioritylevelconfigurations], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ACCOUNT-admission}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ACCOUNT-admission}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
---
# It asks kube-apiserver who sent a request, and what that user may do.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ACCOUNT-delegator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ACCOUNT-reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
`
