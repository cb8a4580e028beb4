package apiserver

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

func (r *Request) at() Key { return Key{Namespace: r.Call.Namespace, Name: r.Call.Name} }

// stored returns the object of the request.
func (r *Request) stored() (runtime.Object, error) {
	r.server.Store.Lock()
	defer r.server.Store.Unlock()
	if object := r.server.Store.Get(r.kind, r.at()); object != nil {
		return object, nil
	}
	return nil, apierrors.NewNotFound(r.kind.GVR.GroupResource(), r.Call.Name)
}

func (r *Request) get() (reply, error) {
	object, err := r.stored()
	if err != nil {
		return reply{}, err
	}
	if r.Call.Subresource == "scale" {
		return r.scale(http.StatusOK, object)
	}
	return r.objectReply(http.StatusOK, object)
}

func (r *Request) create() (reply, error) {
	switch {
	case r.Call.Subresource != "":
		if _, err := r.stored(); err != nil {
			return reply{}, err
		}
		return r.objectReply(http.StatusCreated, r.Call.Object)
	case r.kind.Review:
		return r.review()
	}
	object := r.Call.Object.DeepCopyObject()
	if err := r.checkIdentity(object); err != nil {
		return reply{}, err
	}
	return r.write(http.StatusCreated, object, r.server.createLocked)
}

func (r *Request) update() (reply, error) {
	object := r.Call.Object.DeepCopyObject()
	switch r.Call.Subresource {
	case "status", "scale":
		return r.updatePart(object)
	}
	if err := r.checkIdentity(object); err != nil {
		return reply{}, err
	}
	return r.write(http.StatusOK, object, func(k *kinds.Kind, object runtime.Object, dry bool) (runtime.Object, error) {
		return r.server.updateLocked(k, r.track(r.server.Store.Get(k, r.at()), object), dry)
	})
}

// write stores an object under the lock.
func (r *Request) write(code int, object runtime.Object, change func(*kinds.Kind, runtime.Object, bool) (runtime.Object, error)) (reply, error) {
	r.server.Store.Lock()
	stored, err := change(r.kind, object, r.Call.DryRun)
	r.server.Store.Unlock()
	if err != nil {
		return reply{}, err
	}
	return r.objectReply(code, stored)
}

// checkIdentity checks that the kind, name and namespace of an object agree with the request, and sets a
// missing name or namespace.
func (r *Request) checkIdentity(object runtime.Object) error {
	if gvk := r.server.Kinds.KindOf(object); gvk != r.kind.GVK {
		return apierrors.NewBadRequest(fmt.Sprintf("the object is a %s, the URL is one of %s", gvk, r.kind.GVK))
	}
	accessor := kinds.Metadata(object)
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace(r.Call.Namespace)
	}
	if accessor.GetNamespace() != r.Call.Namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the object (%s) does not match the namespace on the URL (%s)", accessor.GetNamespace(), r.Call.Namespace))
	}
	if r.Call.Name != "" && accessor.GetName() == "" {
		accessor.SetName(r.Call.Name)
	}
	switch {
	case r.Call.Name != "" && accessor.GetName() != r.Call.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", accessor.GetName(), r.Call.Name))
	case accessor.GetName() == "" && accessor.GetGenerateName() == "":
		return apierrors.NewInvalid(r.kind.GVK.GroupKind(), "", nil)
	default:
		return nil
	}
}

// deleteOptions returns the options in the body of a delete.
func (r *Request) deleteOptions() (metav1.DeleteOptions, error) {
	if r.options == nil {
		return metav1.DeleteOptions{}, nil
	}
	if wrong := validation.ValidateDeleteOptions(r.options); len(wrong) > 0 {
		return metav1.DeleteOptions{}, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", wrong)
	}
	return *r.options, nil
}

func (r *Request) delete() (reply, error) {
	options, err := r.deleteOptions()
	if err != nil {
		return reply{}, err
	}
	r.server.Store.Lock()
	pending, err := r.server.deleteLocked(r.kind, r.at(), options, r.Call.DryRun)
	r.server.Store.Unlock()
	switch {
	case err != nil:
		return reply{}, err
	case pending != nil:
		return r.objectReply(http.StatusOK, pending)
	}
	return statusReply(metav1.Status{
		Status: metav1.StatusSuccess, Code: http.StatusOK,
		Details: &metav1.StatusDetails{Name: r.Call.Name, Group: r.kind.GVR.Group, Kind: r.kind.GVR.Resource},
	}), nil
}

func (r *Request) deleteCollection() (reply, error) {
	options, err := r.deleteOptions()
	if err != nil {
		return reply{}, err
	}
	objects, revision, err := r.found()
	if err != nil {
		return reply{}, err
	}
	r.server.Store.Lock()
	for _, object := range objects {
		// An object that was deleted in the meantime is no error.
		if _, err := r.server.deleteLocked(r.kind, KeyOf(object), options, r.Call.DryRun); err != nil && !apierrors.IsNotFound(err) {
			r.server.Store.Unlock()
			return reply{}, err
		}
	}
	r.server.Store.Unlock()
	return r.listReply(objects, revision)
}
