package execution

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// kubernetesPlugins are the admission plugins of the supported versions of Kubernetes
// (k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go).
func kubernetesPlugins() []string {
	return strings.Fields(`AlwaysAdmit AlwaysDeny AlwaysPullImages CertificateApproval CertificateSigning
		CertificateSubjectRestriction ClusterTrustBundleAttest DefaultIngressClass DefaultStorageClass
		DefaultTolerationSeconds DenyServiceExternalIPs EventRateLimit ExtendedResourceToleration ImagePolicyWebhook
		JobValidation LimitPodHardAntiAffinityTopology LimitRanger MutatingAdmissionPolicy MutatingAdmissionWebhook
		NamespaceAutoProvision NamespaceExists NamespaceLifecycle NodeDeclaredFeatureValidator NodeRestriction
		OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize PodGroupProtection PodGroupWorkloadExists
		PodNodeSelector PodResizeValidator PodSecurity PodTolerationRestriction PodTopologyLabels Priority ResourceQuota
		RuntimeClass ServiceAccount StorageObjectInUseProtection TaintNodesByCondition ValidatingAdmissionPolicy
		ValidatingAdmissionWebhook`)
}

// unknownPlugins returns errors for plugins that are expected not to be called and that no API server has. At
// is the field path of the expectation.
func (c *Case) unknownPlugins(ctx context.Context, at string, expect *scenario.Plugins) []*scenario.Error {
	if expect == nil || len(expect.Exclude) == 0 {
		return nil
	}
	names := append(kubernetesPlugins(), c.target.Info().Plugins...)
	if enabled := c.target.Optional().Plugins; enabled != nil {
		found, _ := enabled(ctx) // an incomplete list helps too
		names = append(names, found...)
	}
	var problems []*scenario.Error
	for i, name := range expect.Exclude {
		if !slices.Contains(names, name) {
			problems = append(problems, c.Scenario.ErrorAt(at, fmt.Sprintf("plugins.exclude[%d]", i),
				fmt.Sprintf("there is no admission plugin %q; expected one of Kubernetes or of the API server", name),
				strings.TrimPrefix(suggest.DidYouMean(name, names), "; ")))
		}
	}
	return problems
}
