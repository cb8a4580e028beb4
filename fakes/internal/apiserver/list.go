package apiserver

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// selection has the namespace and selectors of a list or watch.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (r *Request) selection() (selection, error) {
	s := selection{namespace: r.Call.Namespace}
	var err error
	if s.labels, err = labels.Parse(r.query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(fmt.Sprintf("parse labelSelector: %v", err))
	}
	if s.fields, err = fields.ParseSelector(r.query.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest(fmt.Sprintf("parse fieldSelector: %v", err))
	}
	return s, nil
}

func (s selection) has(object runtime.Object) bool {
	accessor := kinds.Metadata(object)
	if s.namespace != "" && s.namespace != accessor.GetNamespace() || !s.labels.Matches(labels.Set(accessor.GetLabels())) {
		return false
	}
	if s.fields.Empty() {
		return true
	}
	tree, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(object) // an object without a tree has no fields
	values := fields.Set{}
	for _, requirement := range s.fields.Requirements() {
		if value, ok, _ := unstructured.NestedFieldNoCopy(tree, strings.Split(requirement.Field, ".")...); ok && value != nil {
			values[requirement.Field] = fmt.Sprint(value)
		}
	}
	return s.fields.Matches(values)
}

// event returns the type of the event that a watch with this selection gets for a change. It
// returns false if the watch gets none.
func (s selection) event(c Change) (watch.EventType, bool) {
	is, was := s.has(c.Object), c.Old != nil && s.has(c.Old)
	switch {
	case c.Type == watch.Deleted:
		return watch.Deleted, was
	case is && !was:
		return watch.Added, true
	case is:
		return watch.Modified, true
	default:
		return watch.Deleted, was
	}
}

func (r *Request) list() (reply, error) {
	objects, revision, err := r.found()
	if err != nil {
		return reply{}, err
	}
	if r.Call.Informer {
		r.server.Informers.list(r)
	}
	return r.listReply(objects, revision)
}

// found returns the objects that a request selects, and the version of the list.
func (r *Request) found() (objects []runtime.Object, revision string, err error) {
	s, err := r.selection()
	if err != nil {
		return nil, "", err
	}
	r.objects.Lock()
	defer r.objects.Unlock()
	for _, object := range r.objects.List(r.kind, s.namespace) {
		if s.has(object) {
			objects = append(objects, object)
		}
	}
	r.objects.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	return objects, r.objects.Version(), nil
}
