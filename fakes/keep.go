package fakes

import (
	_ "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	_ "k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	_ "k8s.io/apiserver/pkg/quota/v1/generic"
	_ "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/component-base/featuregate/testing"
	_ "k8s.io/utils/clock/testing"
	_ "sigs.k8s.io/randfill"
)
