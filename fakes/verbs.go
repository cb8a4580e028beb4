package fakes

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
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

// selection has the namespace and selectors of a list or watch.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (r *request) selection() (selection, error) {
	s := selection{namespace: r.call.Namespace}
	var err error
	if s.labels, err = labels.Parse(r.query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(fmt.Sprintf("parse labelSelector: %v", err))
	}
	if s.fields, err = fields.ParseSelector(r.query.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest(fmt.Sprintf("parse fieldSelector: %v", err))
	}
	return s, nil
}

func (s selection) has(k *kind, object runtime.Object) bool {
	accessor := metadata(object)
	if s.namespace != "" && s.namespace != accessor.GetNamespace() || !s.labels.Matches(labels.Set(accessor.GetLabels())) {
		return false
	}
	return s.fields.Empty() || s.fields.Matches(&fieldsOf{k: k, object: object})
}

// selected returns the objects that a request selects, and their resource version.
func (r *request) selected(s selection) (objects []runtime.Object, version string) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	for _, object := range r.w.store.list(r.kind, s.namespace) {
		if s.has(r.kind, object) {
			objects = append(objects, object)
		}
	}
	return objects, r.w.store.version()
}

func (r *request) list() (reply, error) {
	s, err := r.selection()
	if err != nil {
		return reply{}, err
	}
	objects, version := r.selected(s)
	return r.listReply(objects, version)
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
	return r.write(http.StatusOK, object, r.w.updateLocked)
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
	return *options, nil
}

func (r *request) delete() (reply, error) {
	options, err := r.deleteOptions()
	if err != nil {
		return reply{}, err
	}
	r.w.mu.Lock()
	_, err = r.w.deleteLocked(r.kind, r.at(), options.Preconditions, r.call.DryRun)
	r.w.mu.Unlock()
	if err != nil {
		return reply{}, err
	}
	return statusReply(metav1.Status{
		Status: metav1.StatusSuccess, Code: http.StatusOK,
		Details: &metav1.StatusDetails{Name: r.call.Name, Group: r.kind.gvr.Group, Kind: r.kind.gvr.Resource},
	}), nil
}

func (r *request) deleteCollection() (reply, error) {
	s, err := r.selection()
	if err != nil {
		return reply{}, err
	}
	objects, version := r.selected(s)
	r.w.mu.Lock()
	for _, object := range objects {
		at := key{metadata(object).GetNamespace(), metadata(object).GetName()}
		// One that is gone meanwhile is deleted all the same.
		if _, err := r.w.deleteLocked(r.kind, at, nil, r.call.DryRun); err != nil && !apierrors.IsNotFound(err) {
			r.w.mu.Unlock()
			return reply{}, err
		}
	}
	r.w.mu.Unlock()
	return r.listReply(objects, version)
}

// event returns the event of a watch for a change, if it has one.
func (s selection) event(c change) (watch.EventType, bool) {
	is, was := s.has(c.kind, c.object), c.old != nil && s.has(c.kind, c.old)
	switch {
	case c.typ == watch.Deleted:
		return watch.Deleted, was
	case is && !was:
		return watch.Added, true
	case is:
		return watch.Modified, true
	default:
		return watch.Deleted, was
	}
}
