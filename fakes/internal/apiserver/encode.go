package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// decode decodes the body of a request into Call.Object, or the options of a delete.
func (r *Request) decode() error {
	if len(r.body) == 0 {
		if r.Call.Verb == "create" || r.Call.Verb == "update" {
			return apierrors.NewBadRequest("the request has no body: expected an object")
		}
		return nil
	}
	switch r.Call.Verb {
	case "delete", "deletecollection":
		return r.decodeDeleteOptions()
	case "create", "update":
		object, err := r.server.decodeObject(r.body, r.kind)
		if err != nil {
			return err
		}
		r.Call.Object = object
	}
	return nil
}

func (r *Request) decodeDeleteOptions() error {
	options := &metav1.DeleteOptions{}
	if err := utiljson.Unmarshal(r.body, options); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("decode delete options: %v", err))
	}
	for _, run := range options.DryRun {
		r.Call.DryRun = r.Call.DryRun || run == metav1.DryRunAll
	}
	r.options = options
	return nil
}

// decodeObject decodes an object of the kind that the body names. If the body names no kind, the
// kind is k.
func (s *Server) decodeObject(body []byte, k *kinds.Kind) (runtime.Object, error) {
	if bytes.HasPrefix(body, []byte("k8s\x00")) {
		return s.decodeProtobuf(body, k)
	}
	var header metav1.TypeMeta
	if err := json.Unmarshal(body, &header); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode object: %v", err))
	}
	if header.Kind != "" && header.GroupVersionKind() != k.GVK {
		return s.decodeOther(body, header.GroupVersionKind())
	}
	object := k.Empty()
	if err := unmarshal(body, object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode %s: %v", k.GVK, err))
	}
	if k.Type != nil {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return object, nil
}

// decodeOther decodes the body of a request for a subresource, whose kind is not that of the
// resource.
func (s *Server) decodeOther(body []byte, gvk schema.GroupVersionKind) (runtime.Object, error) {
	object := s.Kinds.NewObject(gvk)
	if err := unmarshal(body, object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode %s: %v", gvk, err))
	}
	return object, nil
}

func (s *Server) decodeProtobuf(body []byte, k *kinds.Kind) (runtime.Object, error) {
	scheme := k.Scheme
	if scheme == nil {
		scheme = s.Kinds.Builtin()
	}
	object, _, err := protobuf.NewSerializer(scheme, scheme).Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode protobuf: %v", err))
	}
	if s.Kinds.KindOf(object) == k.GVK {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return object, nil
}

func unmarshal(body []byte, object runtime.Object) error {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u.UnmarshalJSON(body)
	}
	return utiljson.Unmarshal(body, object)
}

// encode returns an object as JSON, with its kind.
func (s *Server) encode(object runtime.Object) ([]byte, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u.MarshalJSON()
	}
	gvk := s.Kinds.KindOf(object)
	// Stored objects are never changed: a copy of the outermost struct gets the kind.
	named := reflect.New(reflect.TypeOf(object).Elem())
	named.Elem().Set(reflect.ValueOf(object).Elem())
	copied, ok := named.Interface().(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("encode %T: it is not an object", object)
	}
	copied.GetObjectKind().SetGroupVersionKind(gvk)
	return json.Marshal(copied)
}

// encodeFor returns an object in the form that the client requested.
func (r *Request) encodeFor(object runtime.Object) ([]byte, error) {
	if !r.partial {
		return r.server.encode(object)
	}
	partial := meta.AsPartialObjectMetadata(kinds.Metadata(object))
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return json.Marshal(partial)
}

func (r *Request) objectReply(code int, object runtime.Object) (reply, error) {
	body, err := r.encodeFor(object)
	if err != nil {
		return reply{}, apierrors.NewInternalError(fmt.Errorf("encode %s: %w", r.Call, err))
	}
	return reply{code: code, body: body}, nil
}

func (r *Request) listReply(objects []runtime.Object, revision string) (reply, error) {
	list := struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta   `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}{
		TypeMeta: metav1.TypeMeta{APIVersion: r.kind.GVK.GroupVersion().String(), Kind: r.kind.GVK.Kind + "List"},
		Metadata: metav1.ListMeta{ResourceVersion: revision},
		Items:    make([]json.RawMessage, len(objects)),
	}
	if r.partial {
		list.TypeMeta = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadataList"}
	}
	for i, object := range objects {
		var err error
		if r.partial || r.kind.Type == nil {
			list.Items[i], err = r.encodeFor(object)
		} else {
			list.Items[i], err = json.Marshal(object) // items of a list have no kind
		}
		if err != nil {
			return reply{}, apierrors.NewInternalError(fmt.Errorf("encode %s: %w", r.Call, err))
		}
	}
	return jsonReply(http.StatusOK, list)
}

// tree returns an object as maps. fromTree is the reverse.
func (s *Server) tree(object runtime.Object) (map[string]any, error) {
	encoded, err := s.encode(object)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	return tree, utiljson.Unmarshal(encoded, &tree)
}

// fromTree returns an object of a kind from maps.
func (s *Server) fromTree(k *kinds.Kind, tree map[string]any) (runtime.Object, error) {
	encoded, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return s.decodeObject(encoded, k)
}

func yamlToJSON(body []byte) ([]byte, error) { return yaml.YAMLToJSON(body) }
