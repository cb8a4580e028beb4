package rules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	objects "github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// countRules returns the rule for what a plugin counts.
func countRules() []check.Rule {
	return []check.Rule{{
		ID: "R5", Name: "counts-are-read-live", Level: framework.Should,
		Title:  "What the plugin refuses because of objects that were created just before, it also refuses while its caches do not have these objects yet.",
		Why:    "Caches receive an object some time after its creation. A plugin that counts with a lister admits everything that a client creates meanwhile, so its limit does not hold for a script or a controller.",
		Fix:    "List the objects from the API server, or count in memory what the plugin has admitted and its cache does not have yet.",
		Source: []string{"https://github.com/kubernetes/kubernetes/pull/21470", "https://github.com/openshift/origin/pull/24889"},
		Check:  checkCounts,
	}}
}

// creations is how many objects are created one after the other, to reach a limit of the plugin.
const creations = 12

func checkCounts(t *check.T) {
	requireCaches(t, t.Plugin())
	for _, request := range t.Subject.Allow {
		accessor, err := meta.Accessor(request.Object)
		if request.Verb != framework.VerbCreate || request.Subresource != "" || objects.IsNil(request.Object) || err != nil || accessor.GetName() == "" {
			continue
		}
		expected := createSeveral(t, t.World(), request)
		limit := slices.IndexFunc(expected, func(r check.Response) bool { return r.Err != nil || r.Result.Err != nil })
		if limit < 1 || expected[limit].Err != nil {
			continue // the first ones do not matter to the others
		}
		t.Reached()
		stale := t.World(fakes.StaleCache())
		stale.PutCache(stale.Objects()...)
		got := createSeveral(t, stale, request)
		if got[limit].Err != nil || got[limit].Result.Err != nil ||
			t.Ever(func() bool { return !check.SameVerdict(expected[limit], createSeveral(t, t.World(), request)[limit]) }) {
			continue
		}
		t.Errorf("%s, after %d others: with caches that do not have these yet, got admitted, want %s", request, limit, expected[limit])
	}
	if !t.HasReached() && !t.Failed() {
		t.Unsupported("%d creates of the same kind are all admitted, so the plugin does not count them", creations)
	}
}

// createSeveral sends a create with several names to one plugin, and stores each object that it admits.
func createSeveral(t *check.T, w *fakes.World, request framework.Request) (responses []check.Response) {
	h := t.PluginIn(w)
	for i := range creations {
		one := request
		one.Name = fmt.Sprintf("contract-%d", i)
		one.Object = withName(request.Object, one.Name, "")
		got := check.Send(t.Context(), h, one)
		responses = append(responses, got)
		a, err := h.Attributes(one, framework.Mutating)
		if err == nil && got.Err == nil && got.Result.Err == nil && isOf(w, got.Result.Object, a.GetResource()) && !strings.HasSuffix(a.GetResource().Resource, "reviews") {
			w.Put(check.Copy(got.Result.Object))
		}
	}
	return responses
}
