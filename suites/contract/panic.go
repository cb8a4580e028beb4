package contract

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// panicProperties returns the properties of this file: what a plugin survives.
func panicProperties() []Property {
	return append(requestProperties(), oddityProperties()...)
}

// requestProperties are those of what is asked for.
func requestProperties() []Property {
	return []Property{
		{
			ID: "P1", Level: framework.Must,
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
			ID: "P2", Level: framework.Must,
			Title: "An object of another type than expected (unstructured, metadata alone, a wrong one) does not make it panic.",
			Why:   "The type depends on the server: custom resources come unstructured, an aggregated server has types of its own. An unchecked assertion, or a log line about the nil that a failed one left, ends the request.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/40615",
				"https://github.com/kubernetes/kubernetes/issues/73558",
			},
			Check: checkOtherTypes,
		},
		{
			ID: "P3", Level: framework.Must,
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
func oddityProperties() []Property {
	return []Property{
		{
			ID: "P4", Level: framework.Should,
			Title: "Odd names do not make it panic: no namespace, no name, a generateName alone, the name of the namespace.",
			Why:   "A delete of a collection names nothing, a create with generateName has no name yet, and a Namespace is in the namespace that it is.",
			Source: []string{
				"https://github.com/kubernetes/kubernetes/issues/66535",
				"https://github.com/gardener/gardener/pull/537",
			},
			Check: func(t *Trial) { t.survives(oddNames()) },
		},
		{
			ID: "P5", Level: framework.Should,
			Title:  "A request without a user, or of one without a name, does not make it panic.",
			Why:    "Servers without authentication, and loopback requests of some, have no user: GetUserInfo() is nil, and GetUserInfo().GetName() the end of the request.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  func(t *Trial) { t.survives(oddUsers()) },
		},
		{
			ID: "P6", Level: framework.Should,
			Title:  "Unless it uses the ObjectInterfaces, it does the same without them.",
			Why:    "Nearly all tests of plugins pass nil, an API server never does: what depends on that is tested as it never runs.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#ObjectInterfaces"},
			Check:  checkObjectInterfaces,
		},
		{
			ID: "P7", Level: framework.Should,
			Title:  "Odd options and objects do not make it panic: no options or those of another operation, an object in deletion, a name of 253 letters or outside ASCII.",
			Why:    "An apply has other options than an update, a create by PUT others than a create by POST, and names are checked only after admission.",
			Source: []string{"https://pkg.go.dev/k8s.io/apiserver/pkg/admission#Attributes"},
			Check:  func(t *Trial) { t.survives(append(oddOptions(), oddObjects()...)) },
		},
	}
}

// survives is the Check of a plugin that must not panic.
func (t *Trial) survives(variations []variation) {
	if t.mustNotPanic(always(variations...)) > 0 {
		t.Reached()
	}
}

func checkNoObject(t *Trial) {
	t.mustNotPanic(always(unvaried()))
	if t.mustNotPanic(always(withoutObject()...)) == 0 {
		t.Unsupported("it handles neither %s nor %s: nobody calls it without an object", admission.Delete, admission.Connect)
	}
	t.Reached()
}

// withoutObject makes requests of a request that have no object.
func withoutObject() []variation {
	remove := func(f *fields, old runtime.Object) {
		f.operation, f.object, f.old = admission.Delete, nil, old
		f.subresource, f.options = "", &metav1.DeleteOptions{}
	}
	return []variation{
		{"as a delete", func(f *fields) bool {
			if f.operation == admission.Connect {
				return false
			}
			stored := f.old
			if stored == nil {
				stored = f.object
			}
			remove(f, stored)
			return true
		}},
		{"as a delete, with no old object either", func(f *fields) bool {
			remove(f, nil)
			return true
		}},
		{"as a connect without options", func(f *fields) bool {
			f.operation, f.object, f.old, f.options, f.dryRun = admission.Connect, nil, nil, nil, false
			if f.subresource == "" {
				f.subresource = "proxy"
			}
			return true
		}},
	}
}

func checkOtherTypes(t *Trial) {
	calls := t.mustNotPanic(func(h *harness.Harness, request framework.Request, _ framework.Phase) []variation {
		return t.otherTypes(h, request)
	})
	if calls > 0 {
		t.Reached()
	}
}

// otherTypes puts objects of other types in place of a request's, one at a time.
func (t *Trial) otherTypes(h *harness.Harness, request framework.Request) []variation {
	substitute := func(of string, by func(object runtime.Object, f *fields) runtime.Object) []variation {
		return []variation{
			{"with " + of + " as object", func(f *fields) bool {
				if f.object == nil {
					return false
				}
				f.object = by(f.object, f)
				return f.object != nil
			}},
			{"with " + of + " as old object", func(f *fields) bool {
				if f.old == nil {
					return false
				}
				f.old = by(f.old, f)
				return f.old != nil
			}},
		}
	}
	all := substitute("metadata alone (*metav1.PartialObjectMetadata)", func(object runtime.Object, f *fields) runtime.Object {
		return metadataOf(object, f.kind)
	})
	all = append(all, substitute("another type", func(object runtime.Object, _ *fields) runtime.Object {
		return another(object)
	})...)
	return append(all, substitute("*unstructured.Unstructured", func(object runtime.Object, f *fields) runtime.Object {
		if _, already := object.(*unstructured.Unstructured); already {
			return nil
		}
		loose, looseOld := t.loosened(h, request, f.kind)
		if object == f.old {
			return looseOld
		}
		return loose
	})...)
}

// oddNames are names that requests have.
func oddNames() []variation {
	return []variation{
		{"without a namespace", func(f *fields) bool {
			if f.namespace == "" {
				return false
			}
			f.namespace = ""
			f.edit(func(object metav1.Object) { object.SetNamespace("") })
			return true
		}},
		{"without a name", func(f *fields) bool {
			f.name = ""
			if f.operation != admission.Delete { // of a collection: what is stored has a name
				f.edit(func(object metav1.Object) { object.SetName("") })
			}
			return true
		}},
		{"with a generateName alone", func(f *fields) bool {
			if f.operation != admission.Create {
				return false
			}
			f.name = ""
			return f.edit(func(object metav1.Object) {
				object.SetName("")
				object.SetGenerateName("odd-")
			})
		}},
		{"with the name of its namespace", func(f *fields) bool {
			if f.namespace == "" {
				f.namespace = f.name
				return f.name != ""
			}
			f.name = f.namespace
			f.edit(func(object metav1.Object) { object.SetName(f.namespace) })
			return true
		}},
	}
}

// oddUsers leaves out a nil *user.DefaultInfo: its own methods panic.
func oddUsers() []variation {
	return []variation{
		{"without a user", func(f *fields) bool { f.user = nil; return true }},
		{"with a user without a name", func(f *fields) bool { f.user = &user.DefaultInfo{}; return true }},
	}
}

// oddOptions are operation options that are none, or not those of the operation.
func oddOptions() []variation {
	return []variation{
		{"without options", func(f *fields) bool {
			had := f.options != nil
			f.options = nil
			return had
		}},
		{"with options of another operation", func(f *fields) bool {
			if f.operation == admission.Create {
				f.options = &metav1.UpdateOptions{}
			} else {
				f.options = &metav1.CreateOptions{}
			}
			return true
		}},
		{"with options of a patch", func(f *fields) bool { f.options = &metav1.PatchOptions{}; return true }},
	}
}

// oddObjects are objects in deletion, and with long and foreign names.
func oddObjects() []variation {
	named := func(name string) func(*fields) bool {
		return func(f *fields) bool {
			f.name = name
			f.edit(func(object metav1.Object) { object.SetName(name) })
			return true
		}
	}
	return []variation{
		{"in deletion", func(f *fields) bool {
			return f.edit(func(object metav1.Object) {
				now, seconds := metav1.Now(), int64(30)
				object.SetDeletionTimestamp(&now)
				object.SetDeletionGracePeriodSeconds(&seconds)
			})
		}},
		{"with a name of 253 letters", named(strings.Repeat("a", 253))},
		{"with a name outside ASCII", named("\u00e9t\u00e9-\u6d4b\u8bd5-\U0001f600")},
	}
}
