package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

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

func (s selection) has(k *kinds.Kind, object runtime.Object) bool {
	accessor := kinds.Metadata(object)
	if s.namespace != "" && s.namespace != accessor.GetNamespace() || !s.labels.Matches(labels.Set(accessor.GetLabels())) {
		return false
	}
	return s.fields.Empty() || s.fields.Matches(&fieldsOf{k: k, object: object})
}

// event returns the type of the event that a watch with this selection gets for a change. It
// returns false if the watch gets none.
func (s selection) event(c store.Change) (watch.EventType, bool) {
	is, was := s.has(c.Kind, c.Object), c.Old != nil && s.has(c.Kind, c.Old)
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

// token is the content of a continue token: the revision of the first chunk, and the last object of
// the previous chunk.
type token struct {
	Revision        uint64
	Namespace, Name string
}

func (t token) String() string {
	encoded, _ := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(encoded)
}

// parseToken is the reverse of token.String.
func parseToken(text string) (t token, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &t)
	}
	if err == nil && t.Revision == 0 {
		err = errors.New("it has no revision")
	}
	if err != nil {
		return token{}, apierrors.NewBadRequest(fmt.Sprintf("continue token is not valid: %v", err))
	}
	return t, nil
}

// covers reports whether an object is in an earlier chunk.
func (t token) covers(object runtime.Object) bool {
	accessor := kinds.Metadata(object)
	if accessor.GetNamespace() != t.Namespace {
		return accessor.GetNamespace() < t.Namespace
	}
	return accessor.GetName() <= t.Name
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
	var after *token
	if text := r.query.Get("continue"); text != "" {
		given, err := parseToken(text)
		if err != nil {
			return page{}, err
		}
		if version := r.query.Get("resourceVersion"); version != "" && version != "0" {
			return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		after = &given
	}
	return r.chunk(s, after, limit), nil
}

// chunk returns the first objects after the chunk of the token, or all without a limit.
func (r *Request) chunk(s selection, after *token, limit int64) page {
	r.objects.Lock()
	defer r.objects.Unlock()
	p := page{revision: r.objects.Revision()}
	if after != nil {
		p.revision = after.Revision
	}
	for _, object := range r.objects.ListAt(r.kind, s.namespace, p.revision) {
		if s.has(r.kind, object) && (after == nil || !after.covers(object)) {
			p.objects = append(p.objects, object)
		}
	}
	if remaining := int64(len(p.objects)) - limit; limit > 0 && remaining > 0 {
		p.objects = p.objects[:limit]
		last := kinds.Metadata(p.objects[limit-1])
		p.next = token{p.revision, last.GetNamespace(), last.GetName()}.String()
		if s.labels.Empty() && s.fields.Empty() {
			p.remaining = &remaining
		}
	}
	return p
}
