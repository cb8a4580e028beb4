package reference

import (
	"testing"

	"github.com/admissiontest/admissiontest/framework"
)

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

// TestPodVerdicts fails when a plugin refuses what its Subject has under Allow, or admits
// what it has under Reject.
func TestPodVerdicts(t *testing.T) {
	for name, made := range podEntries() {
		t.Run(name, func(t *testing.T) {
			each := made()
			if each.start != nil {
				each.start(t, &each.subject)
			}
			verdicts := func(requests []framework.Request, allow bool) {
				for _, request := range requests {
					if res := harnessOf(t, name).Do(request); allow != (res.Err == nil) {
						t.Errorf("under Allow: %t\n%s", allow, res)
					}
				}
			}
			verdicts(each.subject.Allow, true)
			verdicts(each.subject.Reject, false)
		})
	}
}
