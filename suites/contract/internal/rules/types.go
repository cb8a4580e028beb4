package rules

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// typesRules returns the rules for objects of a Go type that the plugin does not know, and for objects without optional
// fields.
func typesRules() []check.Rule {
	return []check.Rule{{
		ID: "P8", Name: "unknown-types-are-not-admitted", Level: framework.Should,
		Title:  "What the plugin refuses, it does not admit as *unstructured.Unstructured: it gives the same answer or an error.",
		Why:    "The Go type of an object depends on the server: kube-apiserver passes internal types, an aggregated API server its own types, and custom resources are unstructured. A plugin that returns nil if a type assertion fails then checks nothing, and no one notices.",
		Fix:    "If the resource of the request is one of the plugin's and the type assertion fails, return apierrors.NewBadRequest.",
		Source: []string{"https://github.com/kubernetes/kubernetes/issues/40615", "https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
		Check:  checkUnknownTypes,
	}, {
		ID: "P9", Name: "optional-fields-can-be-absent", Level: framework.Should,
		Title:  "The plugin does not panic if an optional field is absent: replicas, a security context, a command. Its verdict is then the same as for the default of the API server.",
		Why:    "Users leave out what they do not need, in each combination. The request fails, or a plugin that takes the zero value for the value of the user checks something else than what the API server stores.",
		Fix:    "Test pointers for nil, and use the API server's default for a field that is nil or empty.",
		Source: []string{"https://github.com/openshift/origin/pull/12446", "https://github.com/kubernetes-sigs/lws/issues/931"},
		Check:  checkAbsentFields,
	}}
}

func checkUnknownTypes(t *check.T) {
	h := t.Plugin()
	for _, request := range t.Subject.Refused() {
		refused, ok := refuses(t, h, request, func(a *check.Attributes) bool {
			_, already := objectOf(a).(*unstructured.Unstructured)
			return !already && objectOf(a) != nil && a.Subresource == "" && request.Verb != framework.VerbConnect
		})
		if !ok || !refused {
			continue
		}
		refused, ok = refuses(t, h, request, func(a *check.Attributes) bool {
			object, old := t.Unstructured(h, request, a.Kind)
			converted := (object != nil || a.Object == nil) && (old != nil || a.OldObject == nil)
			a.Object, a.OldObject = object, old
			return converted
		})
		if ok {
			t.Reached()
		}
		if ok && !refused {
			t.Errorf("%s: the plugin refuses it, and admits the same object as *unstructured.Unstructured. want: the same answer, or an error", request)
		}
	}
}

func objectOf(a *check.Attributes) runtime.Object {
	if a.Object == nil {
		return a.OldObject
	}
	return a.Object
}

// refuses reports whether a phase refuses a request after a change. It returns false if the change is not possible.
func refuses(t *check.T, h *harness.Harness, request framework.Request, change func(*check.Attributes) bool) (refused, ok bool) {
	for _, phase := range check.Phases() {
		given, possible := t.AttributesFor(h, request, phase)
		if possible && check.WouldCall(h.Plugin(), phase, given.Operation) && change(&given) {
			result, thrown := t.Call(h, given.Record(), phase)
			refused, ok = refused || thrown != nil || result.Err != nil, true
		}
	}
	return refused, ok
}

func checkAbsentFields(t *check.T) {
	h, late, frames := t.Plugin(), t.HalfBudget(), map[string]bool{}
	for _, request := range t.Requests() {
		if thrown, ok := check.AsPanic(check.Send(t.Context(), h, request).Err); ok {
			frames[thrown.Frame], h = true, t.Plugin() // P1 reports it
		}
		check.Locations(request.Object, func(at check.Location, value reflect.Value) {
			if !at.Optional || at.Path == "metadata" || at.Path == "spec" || late() { // API servers refuse an object without a spec before Validate
				return
			}
			absent, set := request, request
			absent.Object = at.Without(request.Object)
			got := check.Send(t.Context(), h, absent)
			if thrown, ok := check.AsPanic(got.Err); ok {
				h = t.Plugin() // the plugin that panicked may still hold a lock
				if !frames[thrown.Frame] {
					t.Errorf("%s, without %s: %v", request, at.Path, thrown)
				}
				frames[thrown.Frame] = true
				return
			}
			t.Reached()
			is, ok := defaultOf(at, request, value.Type())
			if !ok {
				return
			}
			set.Object = at.With(request.Object, is)
			want := check.Send(t.Context(), h, set)
			if (got.Result.Err == nil) == (want.Result.Err == nil) {
				return
			}
			got, want = check.Send(t.Context(), t.Plugin(), absent), check.Send(t.Context(), t.Plugin(), set)
			if (got.Result.Err == nil) == (want.Result.Err == nil) {
				return // the plugin depends on the requests that it had before
			}
			t.Errorf("%s, without %s, for which the API server's default is %v: %s", request, at.Path, is, check.Difference(want, got))
		})
	}
}

// defaultOf returns the default of a field of an object or of its template: see defaults.go in k8s.io/kubernetes/pkg/apis/{core,apps,batch}/v1.
func defaultOf(at check.Location, request framework.Request, as reflect.Type) (reflect.Value, bool) {
	pkg := strings.TrimPrefix(reflect.TypeOf(request.Object).Elem().PkgPath(), "k8s.io/api/")
	is := map[string]any{
		"spec.replicas": 1, "spec.terminationGracePeriodSeconds": 30, "spec.concurrencyPolicy": "Allow", "spec.sessionAffinity": "None",
		"spec.restartPolicy": "Always", "spec.dnsPolicy": "ClusterFirst", "spec.schedulerName": "default-scheduler",
	}[strings.TrimPrefix(at.Path, "spec.template.")]
	if is == nil || request.Subresource != "" || pkg != "core/v1" && pkg != "apps/v1" && pkg != "batch/v1" || reflect.TypeOf(is).Kind() == reflect.String != (as.Kind() == reflect.String) {
		return reflect.Value{}, false
	}
	return reflect.ValueOf(is).Convert(as), true
}
