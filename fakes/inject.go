package fakes

import (
	"k8s.io/apiserver/pkg/authorization/authorizer"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/component-base/featuregate"
)

// An Injector of the name of an upstream one takes its place in NewInitializer.

// InjectAuthorizer gives this authorizer, in place of one that allows everything.
func InjectAuthorizer(a authorizer.Authorizer) Injector { return Injector{} }

// InjectFeatureGates gives these gates, in place of the API server's defaults.
func InjectFeatureGates(gates featuregate.FeatureGate) Injector { return Injector{} }

// InjectQuotaConfiguration gives this configuration, in place of an empty one.
func InjectQuotaConfiguration(configuration quota.Configuration) Injector { return Injector{} }
