package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"

	"github.com/admissiontest/admissiontest/internal/kinds"
)

// applyLocked carries out a server-side apply. The owners of fields are tracked for each object
// from its first apply on: "before-first-apply" owns what it had before.
// See https://kubernetes.io/docs/reference/using-api/server-side-apply/
func (r *Request) applyLocked(current runtime.Object) (object runtime.Object, code int, err error) {
	options, err := r.patchOptions()
	if err != nil {
		return nil, 0, err
	}
	if current == nil && r.Call.Subresource != "" {
		return nil, 0, apierrors.NewNotFound(r.kind.GVR.GroupResource(), r.Call.Name)
	}
	given, err := r.applied()
	if err != nil {
		return nil, 0, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(r.kind.GVK)
	if current != nil {
		if live.Object, err = r.server.tree(current); err != nil {
			return nil, 0, apierrors.NewInternalError(err)
		}
	}
	manager, err := r.fieldManager()
	if err != nil {
		return nil, 0, apierrors.NewInternalError(err)
	}
	merged, err := manager.Apply(live, given, options.FieldManager, options.Force != nil && *options.Force)
	if err != nil {
		return nil, 0, refused(err)
	}
	object, err = r.fromUnstructured(merged)
	if err != nil {
		return nil, 0, err
	}
	if current == nil {
		object, err = r.server.createLocked(r.kind, object, r.Call.DryRun)
		return object, http.StatusCreated, err
	}
	if r.Call.Subresource == "status" {
		fields := kinds.Metadata(object).GetManagedFields()
		if object, err = r.part(current, merged.(*unstructured.Unstructured).Object); err != nil { //nolint:forcetypeassert // fromUnstructured has checked it
			return nil, 0, err
		}
		kinds.Metadata(object).SetManagedFields(fields)
	}
	object, err = r.server.updateLocked(r.kind, object, r.Call.DryRun)
	return object, http.StatusOK, err
}

// patchOptions returns the options in the query of a patch.
func (r *Request) patchOptions() (metav1.PatchOptions, error) {
	options := metav1.PatchOptions{FieldManager: r.query.Get("fieldManager")}
	if text := r.query.Get("force"); text != "" {
		force, err := strconv.ParseBool(text)
		if err != nil {
			return options, apierrors.NewBadRequest(fmt.Sprintf("force %q is neither true nor false", text))
		}
		options.Force = &force
	}
	if wrong := validation.ValidatePatchOptions(&options, types.PatchType(r.media)); len(wrong) > 0 {
		return options, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", wrong)
	}
	return options, nil
}

// applied returns the configuration in the body of an apply.
func (r *Request) applied() (*unstructured.Unstructured, error) {
	body, err := yamlToJSON(r.body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode applied configuration: %v", err))
	}
	given := &unstructured.Unstructured{}
	if err := given.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode applied configuration: %v", err))
	}
	if r.Call.Subresource == "status" { // as on a server, an apply of the status ignores other fields
		maps.DeleteFunc(given.Object, func(field string, _ any) bool {
			return !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, field)
		})
	}
	return given, r.checkIdentity(given)
}

// track records the client as owner of the fields that it changes, if the object's fields have
// owners.
func (r *Request) track(current, updated runtime.Object) runtime.Object {
	if current == nil || len(kinds.Metadata(current).GetManagedFields()) == 0 {
		return updated
	}
	object, err := r.tracked(current, updated)
	if err != nil {
		return updated
	}
	return object
}

func (r *Request) tracked(current, updated runtime.Object) (runtime.Object, error) {
	before, err := r.server.tree(current)
	if err != nil {
		return nil, err
	}
	after, err := r.server.tree(updated)
	if err != nil {
		return nil, err
	}
	manager, err := r.fieldManager()
	if err != nil {
		return nil, err
	}
	name := r.query.Get("fieldManager")
	if name == "" {
		name, _, _ = strings.Cut(r.http.Header.Get("User-Agent"), "/")
	}
	object, err := manager.Update(&unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: after}, name)
	if err != nil {
		return nil, err
	}
	return r.fromUnstructured(object)
}

func (r *Request) fromUnstructured(object runtime.Object) (runtime.Object, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("apply %s: got %T, want an unstructured object", r.Call, object))
	}
	made, err := r.server.fromTree(r.kind, u.Object)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode applied %s: %v", r.kind.GVK.Kind, err))
	}
	return made, nil
}

// refused converts an error of the field manager as a server does: a configuration that does not
// fit the schema gets code 500, not 400.
func refused(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return &apierrors.StatusError{ErrStatus: status.Status()}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown, Message: err.Error()}}
}

// fieldManager returns the manager of the owners of an object's fields. It knows Kubernetes' own
// types. Of other types it derives the schema from the object, as a server does for custom
// resources without a schema: lists are atomic.
func (r *Request) fieldManager() (*managedfields.FieldManager, error) {
	converter := managedfields.NewDeducedTypeConverter()
	if builtin := r.server.Kinds.Builtin(); r.kind.Scheme == builtin {
		converter = applyconfigurations.NewTypeConverter(builtin)
	}
	gv := r.kind.GVK.GroupVersion()
	return managedfields.NewDefaultFieldManager(converter, unconverted{}, unconverted{}, unconverted{}, r.kind.GVK, gv, r.Call.Subresource, nil)
}

// unconverted makes and converts the unstructured objects of one version for a field manager.
type unconverted struct{}

// Convert implements runtime.ObjectConvertor. Nothing calls it.
func (unconverted) Convert(_, _, _ any) error { return errors.New("convert objects: not supported") }

// ConvertToVersion implements runtime.ObjectConvertor.
func (unconverted) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor. Nothing calls it.
func (unconverted) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (unconverted) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (unconverted) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
