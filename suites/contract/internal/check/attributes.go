package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
)

// Attributes has the fields of admission.Attributes, so that a check can change them.
type Attributes struct {
	Object, OldObject, Options runtime.Object
	Kind                       schema.GroupVersionKind
	Resource                   schema.GroupVersionResource
	Subresource                string
	Namespace, Name            string
	Operation                  admission.Operation
	DryRun                     bool
	User                       user.Info
}

// AttributesFor returns the attributes that a plugin gets for a request in a phase, with copies of
// the request's objects. It returns false for an impossible request, which Plan.Misuse reports.
func (t *T) AttributesFor(h *harness.Harness, request framework.Request, phase framework.Phase) (Attributes, bool) {
	a, err := h.Attributes(request, phase)
	if err != nil {
		t.LogOnce("ignored: " + err.Error())
		return Attributes{}, false
	}
	return Attributes{
		Object: a.GetObject(), OldObject: a.GetOldObject(), Options: a.GetOperationOptions(),
		Kind: a.GetKind(), Resource: a.GetResource(), Subresource: a.GetSubresource(),
		Namespace: a.GetNamespace(), Name: a.GetName(),
		Operation: a.GetOperation(), DryRun: a.IsDryRun(), User: a.GetUserInfo(),
	}, true
}

// Record returns a new attributes record of the API server's type, with the same objects.
func (a Attributes) Record() admission.Attributes {
	return admission.NewAttributesRecord(a.Object, a.OldObject, a.Kind, a.Namespace, a.Name, a.Resource, a.Subresource, a.Operation, a.Options, a.DryRun, a.User)
}

// String returns the request in short: "CREATE pods default/a".
func (a Attributes) String() string {
	text := fmt.Sprintf("%s %s", a.Operation, a.Resource.GroupResource())
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	switch {
	case a.Namespace != "" && a.Name != "":
		return text + " " + a.Namespace + "/" + a.Name
	case a.Namespace != "":
		return text + " in namespace " + a.Namespace
	default:
		return text + " " + a.Name
	}
}

// EditMetadata changes the metadata of the object and the old object. It returns false if
// neither has metadata.
func (a *Attributes) EditMetadata(change func(metav1.Object)) bool {
	edited := false
	for _, object := range []runtime.Object{a.Object, a.OldObject} {
		if object == nil {
			continue
		}
		if accessor, err := meta.Accessor(object); err == nil {
			change(accessor)
			edited = true
		}
	}
	return edited
}
