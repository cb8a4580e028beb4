package reference

// objectEntries returns the plugins of this file and those beside it.
func objectEntries() map[string]func() entry {
	return map[string]func() entry{
		"ClusterTrustBundleAttest":      trustBundleEntry,
		"CertificateSubjectRestriction": subjectRestrictionEntry,
		"DefaultIngressClass":           defaultIngressClassEntry,
		"DenyServiceExternalIPs":        denyExternalIPsEntry,
		"PodTopologyLabels":             topologyLabelsEntry,
		"NodeDeclaredFeatureValidator":  declaredFeaturesEntry,
		"PodResizeValidator":            podResizeEntry,
		"MutatingAdmissionPolicy":       mutatingPolicyEntry,
		"MutatingAdmissionWebhook":      mutatingWebhookEntry,
		"ValidatingAdmissionPolicy":     validatingPolicyEntry,
		"ValidatingAdmissionWebhook":    validatingWebhookEntry,
		"ResourceQuota":                 resourceQuotaEntry,
	}
}
