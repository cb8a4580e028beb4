package reference

// podEntries returns the plugins of this file and those beside it.
func podEntries() map[string]func() entry {
	return map[string]func() entry{
		"Priority":                             priorityEntry,
		"DefaultTolerationSeconds":             tolerationSecondsEntry,
		"PodTolerationRestriction":             tolerationRestrictionEntry,
		"ExtendedResourceToleration":           resourceTolerationEntry,
		"EventRateLimit":                       eventRateEntry,
		"DefaultStorageClass":                  defaultStorageEntry,
		"StorageObjectInUseProtection":         storageProtectionEntry,
		"PersistentVolumeClaimResize":          claimResizeEntry,
		"PodGroupProtection":                   groupProtectionEntry,
		"OwnerReferencesPermissionEnforcement": ownersEntry,
		"RuntimeClass":                         runtimeClassEntry,
		"CertificateApproval":                  approvalEntry,
		"CertificateSigning":                   signingEntry,
	}
}
