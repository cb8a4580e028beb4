package reference

import (
	_ "github.com/gardener/gardener/plugin/pkg/shoot/exposureclass"
	_ "github.com/onsi/gomega"
	_ "k8s.io/kubernetes/pkg/kubeapiserver/options"
	_ "k8s.io/sample-apiserver/pkg/admission/plugin/banflunder"
	_ "github.com/admissiontest/admissiontest/framework/matchers"
	_ "github.com/admissiontest/admissiontest/fakes/effectiveversion"
	_ "k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/controlplane"
)
