package engine

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// claims are what scenarios need on an API server that other scenarios can need too: objects whose names do
// not contain the ID of the scenario. The keys are names, with the namespace, without the kind: the rule of
// a policy can match every kind.
type claims map[string]claim

// claim is what scenarios need of one name.
type claim struct {
	// given are the objects of that name that are installed, by kind.
	given map[string]map[string]any
	// requested is true if a request is for the name, so that webhooks and policies decide about it.
	requested bool
	// shared is true if that is known by more than the name: see execution.Case.SharesNames.
	shared bool
}

// claimsOf returns the claims of a scenario.
func claimsOf(s *execution.Setup) claims {
	own := claims{}
	for _, manifest := range s.Installed() {
		is := unstructured.Unstructured{Object: manifest}
		if runid.Has(is.GetName(), s.ID) || runid.Has(is.GetNamespace(), s.ID) || object.IsAdmission(manifest) || is.GetNamespace() == "" && s.Namespaced(manifest) {
			continue
		}
		own.add(claims{is.GetNamespace() + "/" + is.GetName(): {given: map[string]map[string]any{is.GetKind(): manifest}, shared: true}})
	}
	decides := installsAdmission(s)
	_, requests := s.Requests()
	for _, request := range requests {
		namespaced := request.Namespace != ""
		reads := request.Verb == framework.VerbGet || request.Verb == framework.VerbList
		if request.Name != "" && !namespaced && !reads && !runid.Has(request.Name, s.ID) && (decides || !request.DryRun) {
			own.add(claims{"/" + request.Name: {requested: true, shared: s.SharesNames()}})
		}
	}
	return own
}

// allow reports whether scenarios with other claims can run at the same time.
func (c claims) allow(others claims) bool {
	for key, other := range others {
		one, taken := c[key]
		if !taken {
			continue
		}
		if (one.requested || other.requested) && (!one.shared || !other.shared) {
			return false
		}
		for kind, manifest := range other.given {
			if same, both := one.given[kind]; both && !reflect.DeepEqual(same, manifest) {
				return false
			}
		}
	}
	return true
}

func (c claims) add(others claims) {
	for key, other := range others {
		one, taken := c[key]
		if !taken {
			one = claim{given: map[string]map[string]any{}, shared: true}
		}
		one.requested, one.shared = one.requested || other.requested, one.shared && other.shared
		for kind, manifest := range other.given {
			one.given[kind] = manifest
		}
		c[key] = one
	}
}
