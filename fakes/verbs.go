package fakes

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (r *request) at() key { return key{r.call.Namespace, r.call.Name} }

// stored returns the object of the request.
func (r *request) stored() (runtime.Object, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if object := r.w.store.get(r.kind, r.at()); object != nil {
		return object, nil
	}
	return nil, apierrors.NewNotFound(r.kind.gvr.GroupResource(), r.call.Name)
}

func (r *request) get() (reply, error) {
	object, err := r.stored()
	if err != nil {
		return reply{}, err
	}
	if r.call.Subresource == "scale" {
		return r.scale(http.StatusOK, object)
	}
	return r.objectReply(http.StatusOK, object)
}

func (r *request) create() (reply, error) {
	switch {
	case r.call.Subresource != "":
		if _, err := r.stored(); err != nil {
			return reply{}, err
		}
		return r.objectReply(http.StatusCreated, r.object)
	case r.kind.review:
		return r.review()
	}
	object := r.object.DeepCopyObject()
	if err := r.place(object); err != nil {
		return reply{}, err
	}
	return r.write(http.StatusCreated, object, r.w.createLocked)
}

func (r *request) update() (reply, error) {
	object := r.object.DeepCopyObject()
	switch r.call.Subresource {
	case "status", "scale":
		return r.updatePart(object)
	}
	if err := r.place(object); err != nil {
		return reply{}, err
	}
	return r.write(http.StatusOK, object, func(k *kind, object runtime.Object, dry bool) (runtime.Object, error) {
		return r.w.updateLocked(k, r.track(r.w.store.get(k, r.at()), object), dry)
	})
}

// write stores an object under the World's lock.
func (r *request) write(code int, object runtime.Object, store func(*kind, runtime.Object, bool) (runtime.Object, error)) (reply, error) {
	r.w.mu.Lock()
	stored, err := store(r.kind, object, r.call.DryRun)
	r.w.mu.Unlock()
	if err != nil {
		return reply{}, err
	}
	return r.objectReply(code, stored)
}

// place checks the kind, name and namespace of an object against the request, and sets a name
// or namespace that it leaves out.
func (r *request) place(object runtime.Object) error {
	if gvk := r.gvkOf(object); gvk != r.kind.gvk {
		return apierrors.NewBadRequest(fmt.Sprintf("the object is a %s, the URL is one of %s", gvk, r.kind.gvk))
	}
	accessor := metadata(object)
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace(r.call.Namespace)
	}
	if accessor.GetNamespace() != r.call.Namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the object (%s) does not match the namespace on the URL (%s)", accessor.GetNamespace(), r.call.Namespace))
	}
	if r.call.Name != "" && accessor.GetName() == "" {
		accessor.SetName(r.call.Name)
	}
	switch {
	case r.call.Name != "" && accessor.GetName() != r.call.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", accessor.GetName(), r.call.Name))
	case accessor.GetName() == "" && accessor.GetGenerateName() == "":
		return apierrors.NewInvalid(r.kind.gvk.GroupKind(), "", nil)
	default:
		return nil
	}
}

// deleteOptions returns the options in the body of a delete.
func (r *request) deleteOptions() (metav1.DeleteOptions, error) {
	options, ok := r.object.(*metav1.DeleteOptions)
	if !ok {
		return metav1.DeleteOptions{}, nil
	}
	if wrong := validation.ValidateDeleteOptions(options); len(wrong) > 0 {
		return metav1.DeleteOptions{}, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", wrong)
	}
	return *options, nil
}

func (r *request) delete() (reply, error) {
	options, err := r.deleteOptions()
	if err != nil {
		return reply{}, err
	}
	r.w.mu.Lock()
	pending, err := r.w.deleteLocked(r.kind, r.at(), options, r.call.DryRun)
	r.w.mu.Unlock()
	switch {
	case err != nil:
		return reply{}, err
	case pending != nil:
		return r.objectReply(http.StatusOK, pending)
	}
	return statusReply(metav1.Status{
		Status: metav1.StatusSuccess, Code: http.StatusOK,
		Details: &metav1.StatusDetails{Name: r.call.Name, Group: r.kind.gvr.Group, Kind: r.kind.gvr.Resource},
	}), nil
}

func (r *request) deleteCollection() (reply, error) {
	options, err := r.deleteOptions()
	if err != nil {
		return reply{}, err
	}
	page, err := r.page()
	if err != nil {
		return reply{}, err
	}
	r.w.mu.Lock()
	for _, object := range page.objects {
		at := key{metadata(object).GetNamespace(), metadata(object).GetName()}
		// One that is gone meanwhile is deleted all the same.
		if _, err := r.w.deleteLocked(r.kind, at, options, r.call.DryRun); err != nil && !apierrors.IsNotFound(err) {
			r.w.mu.Unlock()
			return reply{}, err
		}
	}
	r.w.mu.Unlock()
	return r.listReply(page)
}
