package execution

import (
	"context"
	"fmt"
	"slices"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// kubernetesPlugins are the admission plugins of the supported versions of Kubernetes
// (k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go).
func kubernetesPlugins() []string {
	return []string{
		"AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction",
		"ClusterTrustBundleAttest", "DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "DenyServiceExternalIPs",
		"EventRateLimit", "ExtendedResourceToleration", "ImagePolicyWebhook", "JobValidation", "LimitPodHardAntiAffinityTopology",
		"LimitRanger", "MutatingAdmissionPolicy", "MutatingAdmissionWebhook", "NamespaceAutoProvision", "NamespaceExists",
		"NamespaceLifecycle", "NodeDeclaredFeatureValidator", "NodeRestriction", "OwnerReferencesPermissionEnforcement",
		"PersistentVolumeClaimResize", "PodGroupProtection", "PodGroupWorkloadExists", "PodNodeSelector", "PodResizeValidator",
		"PodSecurity", "PodTolerationRestriction", "PodTopologyLabels", "Priority", "ResourceQuota", "RuntimeClass", "ServiceAccount",
		"StorageObjectInUseProtection", "TaintNodesByCondition", "ValidatingAdmissionPolicy", "ValidatingAdmissionWebhook",
	}
}

// unknownPlugins returns errors for the expectation that plugins are not called which no API server has.
func (c *Case) unknownPlugins(ctx context.Context) []*scenario.Error {
	var problems []*scenario.Error
	var walk func(place string, steps []scenario.Step)
	walk = func(place string, steps []scenario.Step) {
		for i, step := range steps {
			here := fmt.Sprintf("%s[%d]", place, i)
			walk(here+".parallel", step.Parallel)
			if step.Then == nil || step.Then.Plugins == nil {
				continue
			}
			for k, name := range step.Then.Plugins.Exclude {
				if hint, known := c.isPlugin(ctx, name); !known {
					problems = append(problems, c.Scenario.ErrorAt(here, fmt.Sprintf("then.plugins.exclude[%d]", k),
						fmt.Sprintf("there is no admission plugin %q; expected one of Kubernetes, or one that --plugin compiled in", name), hint))
				}
			}
		}
	}
	walk("when", c.Scenario.Spec.When)
	return problems
}

// isPlugin reports whether an API server can have an admission plugin of a name, and otherwise which one is
// probably meant.
func (c *Case) isPlugin(ctx context.Context, name string) (hint string, known bool) {
	names := append(kubernetesPlugins(), c.target.Info().Plugins...)
	if slices.Contains(names, name) {
		return "", true
	}
	if enabled := c.target.Optional().Plugins; enabled != nil {
		found, err := enabled(ctx)
		if err == nil && slices.Contains(found, name) {
			return "", true
		}
		names = append(names, found...)
	}
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near), false
	}
	return "", false
}
