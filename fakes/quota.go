package fakes

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
)

// Quota returns a quota configuration with only these evaluators and no ignored resources. Without
// evaluators, nothing is counted. Nil evaluators are left out.
func Quota(evaluators ...quota.Evaluator) quota.Configuration {
	kept := slices.DeleteFunc(slices.Clone(evaluators), func(e quota.Evaluator) bool { return missing(e) })
	return generic.NewConfiguration(kept, map[schema.GroupResource]struct{}{})
}
