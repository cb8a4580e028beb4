package rules

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// requestRules returns the rules for unusual resources, subresources and types.
func requestRules() []check.Rule {
	return []check.Rule{
		{
			ID: "P1", Name: "no-panic-without-object", Level: framework.Must,
			Title: "The plugin does not panic on the requests of the Subject, nor on requests without an object, such as DELETE and CONNECT.",
			Why:   "The API server recovers the panic and closes the connection. With one such plugin, every delete of the resource failed, and clusters could not be cleaned up.",
			Fix:   "Return before using GetObject if it is nil: for DELETE use GetOldObject, which can be nil too.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/66425",
				"https://github.com/kubernetes/kubernetes/issues/66412",
				"https://github.com/open-policy-agent/gatekeeper/issues/3743",
			},
			Check: checkNoObject,
		},
		{
			ID: "P2", Name: "no-panic-on-other-types", Level: framework.Must,
			Title: "The plugin does not panic if the object has another type than expected: unstructured, only metadata, or a wrong type.",
			Why:   "The type depends on the server: custom resources are unstructured, and an aggregated API server has its own types. The request fails on a type assertion without a check, or on a log line that uses the nil pointer of a failed assertion.",
			Fix:   "Assert types with ok, and return admission.NewForbidden or apierrors.NewBadRequest if it is false.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/40615",
				"https://github.com/kubernetes/kubernetes/issues/73558",
			},
			Check: checkOtherTypes,
		},
		{
			ID: "P3", Name: "unknown-subresources-are-ignored", Level: framework.Must,
			Title: "The plugin does not panic on subresources, on the options of a CONNECT request, or on unknown resources. It ignores the subresources that an API server serves and that are not in Subject.Subresources.",
			Why:   "A plugin that compares only the resource treats the Scale, Binding or PodExecOptions of a subresource as the resource itself. Such plugins refused kubectl exec and status updates because the object was not a pod.",
			Fix:   "Return nil if GetSubresource is not empty, except for the subresources that the plugin supports. Name these in Subject.Subresources.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/8868",
				"https://github.com/kubernetes/kubernetes/issues/10052",
				"https://github.com/kubernetes/kubernetes/issues/59759",
			},
			Check: checkSubresources,
		},
	}
}

// oddityRules returns the rules for unusual names, users, options and objects.
func oddityRules() []check.Rule {
	return []check.Rule{
		{
			ID: "P4", Name: "no-panic-on-odd-names", Level: framework.Should,
			Title: "The plugin does not panic on unusual names: no namespace, no name, only a generateName, or the name of the namespace.",
			Why:   "A delete from a deletecollection request has no name. A create with generateName has no name yet. The namespace of a request for a Namespace is its own name.",
			Fix:   "Treat GetName and GetNamespace as strings that can be empty or equal.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/66535",
				"https://github.com/gardener/gardener/pull/537",
			},
			Check: func(t *check.T) { mustSurvive(t, oddNames()) },
		},
		{
			ID: "P6", Name: "object-interfaces-are-optional", Level: framework.Should,
			Title:  "If a plugin does not use the ObjectInterfaces, it behaves the same when they are nil.",
			Why:    "Nearly all unit tests of plugins pass nil; an API server never does. Code that depends on the ObjectInterfaces is then tested in a way in which it never runs.",
			Fix:    "Use the ObjectInterfaces only where the plugin needs them, and skip nothing if they are nil.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#ObjectInterfaces"},
			Check:  checkObjectInterfaces,
		},
		{
			ID: "P7", Name: "no-panic-on-odd-options", Level: framework.Should,
			Title:  "The plugin does not panic on unusual options and objects: no options, options of another operation, an object in deletion, a name of 253 letters or with non-ASCII characters.",
			Why:    "An apply has other options than an update, and a create by PUT other options than a create by POST. Names are validated only after mutating admission.",
			Fix:    "Assert the type of the options with ok, and compare names as they are.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  func(t *check.T) { mustSurvive(t, append(oddOptions(), oddObjects()...)) },
		},
	}
}

// mustSurvive checks that the plugin does not panic on variants of its requests.
func mustSurvive(t *check.T, variations []check.Variant) {
	if t.MustNotPanic(check.SameVariants(variations...)) > 0 {
		t.Reached()
	}
}

func checkNoObject(t *check.T) {
	t.RequestsMustNotPanic()
	if t.MustNotPanic(check.SameVariants(withoutObject()...)) == 0 {
		t.Unsupported("the plugin handles neither %s nor %s: it is never called without an object", admission.Delete, admission.Connect)
	}
	t.Reached()
}

// withoutObject returns the variants of a request that have no object.
func withoutObject() []check.Variant {
	remove := func(f *check.Attributes, old runtime.Object) {
		f.Operation, f.Object, f.OldObject = admission.Delete, nil, old
		f.Subresource, f.Options = "", &metav1.DeleteOptions{}
	}
	return []check.Variant{
		{Name: "as a delete", Apply: func(f *check.Attributes) bool {
			if f.Operation == admission.Connect {
				return false
			}
			stored := f.OldObject
			if stored == nil {
				stored = f.Object
			}
			remove(f, stored)
			return true
		}},
		{Name: "as a delete without an old object", Apply: func(f *check.Attributes) bool {
			remove(f, nil)
			return true
		}},
		{Name: "as a connect without options", Apply: func(f *check.Attributes) bool {
			f.Operation, f.Object, f.OldObject, f.Options, f.DryRun = admission.Connect, nil, nil, nil, false
			if f.Subresource == "" {
				f.Subresource = "proxy"
			}
			return true
		}},
	}
}

func checkOtherTypes(t *check.T) {
	calls := t.MustNotPanic(func(h *harness.Harness, request framework.Request, _ framework.Phase) []check.Variant {
		return otherTypes(t, h, request)
	})
	if calls > 0 {
		t.Reached()
	}
}

// otherTypes returns variants in which the object or the old object has another type.
func otherTypes(t *check.T, h *harness.Harness, request framework.Request) []check.Variant {
	substitute := func(of string, by func(object runtime.Object, f *check.Attributes) runtime.Object) []check.Variant {
		return []check.Variant{
			{Name: "with " + of + " as object", Apply: func(f *check.Attributes) bool {
				if f.Object == nil {
					return false
				}
				f.Object = by(f.Object, f)
				return f.Object != nil
			}},
			{Name: "with " + of + " as old object", Apply: func(f *check.Attributes) bool {
				if f.OldObject == nil {
					return false
				}
				f.OldObject = by(f.OldObject, f)
				return f.OldObject != nil
			}},
		}
	}
	all := substitute("only metadata (*metav1.PartialObjectMetadata)", func(object runtime.Object, f *check.Attributes) runtime.Object {
		return check.MetadataOnly(object, f.Kind)
	})
	all = append(all, substitute("another type", func(object runtime.Object, _ *check.Attributes) runtime.Object {
		return check.OfOtherType(object)
	})...)
	return append(all, substitute("*unstructured.Unstructured", func(object runtime.Object, f *check.Attributes) runtime.Object {
		if _, already := object.(*unstructured.Unstructured); already {
			return nil
		}
		loose, looseOld := t.Unstructured(h, request, f.Kind)
		if object == f.OldObject {
			return looseOld
		}
		return loose
	})...)
}

// oddNames returns variants with unusual names.
func oddNames() []check.Variant {
	return []check.Variant{
		{Name: "without a namespace", Apply: func(f *check.Attributes) bool {
			if f.Namespace == "" {
				return false
			}
			f.Namespace = ""
			f.EditMetadata(func(object metav1.Object) { object.SetNamespace("") })
			return true
		}},
		{Name: "without a name", Apply: func(f *check.Attributes) bool {
			f.Name = ""
			if f.Operation != admission.Delete { // of a collection: the stored object has a name
				f.EditMetadata(func(object metav1.Object) { object.SetName("") })
			}
			return true
		}},
		{Name: "with only a generateName", Apply: func(f *check.Attributes) bool {
			if f.Operation != admission.Create {
				return false
			}
			f.Name = ""
			return f.EditMetadata(func(object metav1.Object) {
				object.SetName("")
				object.SetGenerateName("odd-")
			})
		}},
		{Name: "with the name of its namespace", Apply: func(f *check.Attributes) bool {
			if f.Namespace == "" {
				f.Namespace = f.Name
				return f.Name != ""
			}
			f.Name = f.Namespace
			f.EditMetadata(func(object metav1.Object) { object.SetName(f.Namespace) })
			return true
		}},
	}
}

// oddOptions returns variants without operation options, or with the options of another operation.
func oddOptions() []check.Variant {
	return []check.Variant{
		{Name: "without options", Apply: func(f *check.Attributes) bool {
			had := f.Options != nil
			f.Options = nil
			return had
		}},
		{Name: "with options of another operation", Apply: func(f *check.Attributes) bool {
			if f.Operation == admission.Create {
				f.Options = &metav1.UpdateOptions{}
			} else {
				f.Options = &metav1.CreateOptions{}
			}
			return true
		}},
		{Name: "with options of a patch", Apply: func(f *check.Attributes) bool { f.Options = &metav1.PatchOptions{}; return true }},
	}
}

// oddObjects returns variants with objects in deletion, and with long and non-ASCII names.
func oddObjects() []check.Variant {
	named := func(name string) func(*check.Attributes) bool {
		return func(f *check.Attributes) bool {
			f.Name = name
			f.EditMetadata(func(object metav1.Object) { object.SetName(name) })
			return true
		}
	}
	return []check.Variant{
		{Name: "in deletion", Apply: func(f *check.Attributes) bool {
			return f.EditMetadata(func(object metav1.Object) {
				now, seconds := metav1.Now(), int64(30)
				object.SetDeletionTimestamp(&now)
				object.SetDeletionGracePeriodSeconds(&seconds)
			})
		}},
		{Name: "with a name of 253 letters", Apply: named(strings.Repeat("a", 253))},
		{Name: "with a name outside ASCII", Apply: named("\u00e9t\u00e9-\u6d4b\u8bd5-\U0001f600")},
	}
}
