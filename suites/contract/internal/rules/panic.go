package rules

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// panicProperties returns the properties of this file: what a plugin survives.
func panicRules() []check.Rule {
	return append(requestRules(), oddityRules()...)
}

// requestProperties are those of what is asked for.
func requestRules() []check.Rule {
	return []check.Rule{
		{
			ID: "P1", Name: "no-panic-without-object", Level: framework.Must,
			Title: "It does not panic on its own requests, nor on those that have no object: deletes, connects.",
			Why:   "An API server recovers the panic, and the client sees a closed connection: every delete of the resource failed, clusters could not be cleaned up.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/66425",
				"https://github.com/kubernetes/kubernetes/issues/66412",
				"https://github.com/open-policy-agent/gatekeeper/issues/3743",
			},
			Check: checkNoObject,
		},
		{
			ID: "P2", Name: "no-panic-on-other-types", Level: framework.Must,
			Title: "An object of another type than expected (unstructured, metadata alone, a wrong one) does not make it panic.",
			Why:   "The type depends on the server: custom resources come unstructured, an aggregated server has types of its own. An unchecked assertion, or a log line about the nil that a failed one left, ends the request.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/40615",
				"https://github.com/kubernetes/kubernetes/issues/73558",
			},
			Check: checkOtherTypes,
		},
		{
			ID: "P3", Name: "unknown-subresources-are-ignored", Level: framework.Must,
			Title: "Subresources it does not know, the options of a connect and unknown resources do not make it panic; subresources that the Subject does not declare it leaves alone.",
			Why:   "Who asks only for the resource takes the Scale, Binding or PodExecOptions of its subresources for the resource itself: kubectl exec and status updates failed for being no pod.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/8868",
				"https://github.com/kubernetes/kubernetes/issues/10052",
				"https://github.com/kubernetes/kubernetes/issues/59759",
			},
			Check: checkSubresources,
		},
	}
}

// oddityProperties are those of how it is asked for.
func oddityRules() []check.Rule {
	return []check.Rule{
		{
			ID: "P4", Name: "no-panic-on-odd-names", Level: framework.Should,
			Title: "Odd names do not make it panic: no namespace, no name, a generateName alone, the name of the namespace.",
			Why:   "A delete of a collection names nothing, a create with generateName has no name yet, and a Namespace is in the namespace that it is.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/66535",
				"https://github.com/gardener/gardener/pull/537",
			},
			Check: func(t *check.T) { survives(t, oddNames()) },
		},
		{
			ID: "P5", Name: "no-panic-without-user", Level: framework.Should,
			Title:  "A request without a user, or of one without a name, does not make it panic.",
			Why:    "Servers without authentication, and loopback requests of some, have no user: GetUserInfo() is nil, and GetUserInfo().GetName() the end of the request.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  func(t *check.T) { survives(t, oddUsers()) },
		},
		{
			ID: "P6", Name: "object-interfaces-are-optional", Level: framework.Should,
			Title:  "Unless it uses the ObjectInterfaces, it does the same without them.",
			Why:    "Nearly all tests of plugins pass nil, an API server never does: what depends on that is tested as it never runs.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#ObjectInterfaces"},
			Check:  checkObjectInterfaces,
		},
		{
			ID: "P7", Name: "no-panic-on-odd-options", Level: framework.Should,
			Title:  "Odd options and objects do not make it panic: no options or those of another operation, an object in deletion, a name of 253 letters or outside ASCII.",
			Why:    "An apply has other options than an update, a create by PUT others than a create by POST, and names are checked only after admission.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  func(t *check.T) { survives(t, append(oddOptions(), oddObjects()...)) },
		},
	}
}

// survives is the Check of a plugin that must not panic.
func survives(t *check.T, variations []check.Variant) {
	if t.MustNotPanic(check.SameVariants(variations...)) > 0 {
		t.Reached()
	}
}

func checkNoObject(t *check.T) {
	t.MustNotPanic(check.SameVariants(check.Unchanged()))
	if t.MustNotPanic(check.SameVariants(withoutObject()...)) == 0 {
		t.Unsupported("it handles neither %s nor %s: nobody calls it without an object", admission.Delete, admission.Connect)
	}
	t.Reached()
}

// withoutObject makes requests of a request that have no object.
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
		{Name: "as a delete, with no old object either", Apply: func(f *check.Attributes) bool {
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

// otherTypes puts objects of other types in place of a request's, one at a time.
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
	all := substitute("metadata alone (*metav1.PartialObjectMetadata)", func(object runtime.Object, f *check.Attributes) runtime.Object {
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

// oddNames are names that requests have.
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
			if f.Operation != admission.Delete { // of a collection: what is stored has a name
				f.EditMetadata(func(object metav1.Object) { object.SetName("") })
			}
			return true
		}},
		{Name: "with a generateName alone", Apply: func(f *check.Attributes) bool {
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

// oddUsers leaves out a nil *user.DefaultInfo: its own methods panic.
func oddUsers() []check.Variant {
	return []check.Variant{
		{Name: "without a user", Apply: func(f *check.Attributes) bool { f.User = nil; return true }},
		{Name: "with a user without a name", Apply: func(f *check.Attributes) bool { f.User = &user.DefaultInfo{}; return true }},
	}
}

// oddOptions are operation options that are none, or not those of the operation.
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

// oddObjects are objects in deletion, and with long and foreign names.
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
