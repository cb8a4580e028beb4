package apiserver

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/admissiontest/admissiontest/fakes/internal/store"
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
func (s selection) event(c store.Change) (watch.EventType, bool) {
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

// page is a list, or one chunk of it.
// See https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
type page struct {
	objects []runtime.Object
	// revision is the revision of the store at which the whole list was read.
	revision uint64
	// next is the continue token of the next chunk, and empty for the last.
	next string
	// remaining is the number of objects in later chunks. It is nil if there are none, and for
	// lists with a selector.
	remaining *int64
}

// start is where a list begins: at the revision of its first chunk, after the last object of the previous chunk. The
// zero value is the beginning of a list at the present revision.
type start struct {
	revision uint64
	last     store.Key
}

// start returns where the list of a request begins.
func (r *Request) start() (start, error) {
	token := r.query.Get("continue")
	if token == "" {
		return start{}, nil
	}
	if version := r.query.Get("resourceVersion"); version != "" && version != "0" {
		return start{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	path, revision, err := storage.DecodeContinue(token, "/")
	if err != nil {
		return start{}, apierrors.NewBadRequest(fmt.Sprintf("continue token is not valid: %v", err))
	}
	at := strings.LastIndex(path, "/")
	return start{uint64(revision), store.Key{Namespace: strings.Trim(path[:at], "/"), Name: path[at+1:]}}, nil //nolint:gosec // revisions of a store are small
}

func (r *Request) list() (reply, error) {
	page, err := r.page()
	if err != nil {
		return reply{}, err
	}
	if r.Call.Informer {
		r.server.Informers.list(r)
	}
	return r.listReply(page)
}

// page returns the objects that a request selects. All chunks of one list show the objects at the
// same revision.
func (r *Request) page() (page, error) {
	s, err := r.selection()
	if err != nil {
		return page{}, err
	}
	limit := int64(0)
	if text := r.query.Get("limit"); text != "" {
		if limit, err = strconv.ParseInt(text, 10, 64); err != nil {
			return page{}, apierrors.NewBadRequest(fmt.Sprintf("limit %q is not a number", text))
		}
	}
	from, err := r.start()
	if err != nil {
		return page{}, err
	}
	return r.chunk(s, from, limit)
}

// chunk returns the first objects of a list, or all without a limit.
func (r *Request) chunk(s selection, from start, limit int64) (page, error) {
	r.objects.Lock()
	defer r.objects.Unlock()
	p := page{revision: cmp.Or(from.revision, r.objects.Revision())}
	for _, object := range r.objects.ListAt(r.kind, s.namespace, p.revision) {
		if s.has(object) && store.KeyOf(object).Compare(from.last) > 0 {
			p.objects = append(p.objects, object)
		}
	}
	if remaining := int64(len(p.objects)) - limit; limit > 0 && remaining > 0 {
		p.objects = p.objects[:limit]
		last := store.KeyOf(p.objects[limit-1])
		token, err := storage.EncodeContinue("/"+last.Namespace+"/"+last.Name, "/", int64(p.revision)) //nolint:gosec // revisions of a store are small
		if err != nil {
			return page{}, err
		}
		p.next = token
		if s.labels.Empty() && s.fields.Empty() {
			p.remaining = &remaining
		}
	}
	return p, nil
}
