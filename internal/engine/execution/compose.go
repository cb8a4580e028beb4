package execution

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Composer makes Requests of steps.
type Composer struct {
	// Namespace is the namespace of objects whose step names none.
	Namespace string
	// Namespaced reports whether objects of a kind live in namespaces. It is required.
	Namespaced func(kind schema.GroupVersionKind) (bool, error)
}

// Compose returns the Request of a step, whose placeholders were replaced, and a description of
// the action: "create ConfigMap subject".
func (c Composer) Compose(step scenario.Step) (framework.Request, string, error) {
	request, action, err := c.address(step)
	if err != nil {
		return request, action, err
	}
	if step.Subresource != "" {
		request.Subresource = step.Subresource
		action += " /" + step.Subresource
	}
	if step.Name != "" {
		request.Name = step.Name
	}
	if step.Namespace != nil {
		request.Namespace = *step.Namespace
	}
	request.DryRun, request.User = step.DryRun, step.As
	for key, value := range step.Options {
		if request.HTTP.Query == nil {
			request.HTTP.Query = url.Values{}
		}
		request.HTTP.Query.Set(key, value)
	}
	if step.Body != nil {
		request.HTTP.RawBody = []byte(*step.Body)
	}
	if step.ContentType != "" {
		request.HTTP.ContentType = step.ContentType
	}
	return request, action, nil
}

// address returns the part of a Request that the action determines.
func (c Composer) address(step scenario.Step) (framework.Request, string, error) {
	switch {
	case step.Create != nil:
		return c.withObject(framework.VerbCreate, step.Create, step)
	case step.Update != nil:
		return c.withObject(framework.VerbUpdate, step.Update, step)
	case step.Apply != nil:
		return c.withObject(framework.VerbApply, step.Apply, step)
	case step.Get != nil:
		return c.withReference(framework.VerbGet, *step.Get)
	case step.List != nil:
		return c.withReference(framework.VerbList, *step.List)
	case step.Patch != nil:
		return c.withPatch(*step.Patch)
	case step.Delete != nil:
		request, action, err := c.withReference(framework.VerbDelete, step.Delete.ObjectReference)
		request.HTTP.DeleteOptions = deleteOptions(step.Delete.Options)
		return request, action, err
	case step.DeleteCollection != nil:
		request, action, err := c.withReference(framework.VerbDeleteCollection, step.DeleteCollection.ObjectReference)
		request.HTTP.DeleteOptions = deleteOptions(step.DeleteCollection.Options)
		return request, action, err
	case step.Connect != nil:
		return c.withConnect(*step.Connect)
	default:
		return framework.Request{}, "step", errors.New("the step has no action: write one of create, update, apply, get, list, patch, delete, deleteCollection, connect, parallel, install, remove, script, wait, metrics, files")
	}
}

// withObject addresses the object of a manifest, or the parent if the manifest is a
// subresource.
func (c Composer) withObject(verb framework.Verb, manifest map[string]any, step scenario.Step) (framework.Request, string, error) {
	kind, _ := object.Kind(manifest) // without one, the kind is the zero value
	if step.Parent != nil {
		kind = schema.FromAPIVersionAndKind(step.Parent.APIVersion, step.Parent.Kind)
	} else if step.Subresource != "" {
		kind = parentOf(kind)
	}
	subject := &unstructured.Unstructured{Object: manifest}
	request := framework.Request{Verb: verb, Kind: kind, Name: subject.GetName(), Namespace: subject.GetNamespace(), Object: subject}
	return c.placed(request, fmt.Sprintf("%s %s", verb, object.Describe(manifest)))
}

// parentOf returns the kind that usually has a subresource of this kind. For status it is
// the kind itself.
func parentOf(gvk schema.GroupVersionKind) schema.GroupVersionKind {
	switch gvk.Kind {
	case "Eviction", "Binding":
		return schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	case "TokenRequest":
		return schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	case "Scale":
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	default:
		return gvk
	}
}

func (c Composer) withReference(verb framework.Verb, ref scenario.ObjectReference) (framework.Request, string, error) {
	request := framework.Request{Verb: verb, Kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), Name: ref.Name}
	action := fmt.Sprintf("%s %s %s", verb, ref.Kind, ref.Name)
	if ref.Namespace != nil {
		request.Namespace = *ref.Namespace
	}
	return c.placed(request, action)
}

// placed sets the namespace of the Composer for kinds that live in namespaces.
func (c Composer) placed(request framework.Request, action string) (framework.Request, string, error) {
	namespaced, err := c.Namespaced(request.Kind)
	if err != nil {
		return request, action, err
	}
	if !namespaced {
		request.Namespace = ""
	} else if request.Namespace == "" {
		request.Namespace = c.Namespace
	}
	return request, action, nil
}

func (c Composer) withPatch(p scenario.Patch) (framework.Request, string, error) {
	request, action, err := c.withReference(framework.VerbPatch, p.ObjectReference)
	if err != nil {
		return request, action, err
	}
	var body any
	switch {
	case p.JSON != nil:
		request.HTTP.PatchType, body = types.JSONPatchType, p.JSON
	case p.Merge != nil:
		request.HTTP.PatchType, body = types.MergePatchType, p.Merge
	case p.Strategic != nil:
		request.HTTP.PatchType, body = types.StrategicMergePatchType, p.Strategic
	default:
		return request, action, errors.New("the patch is empty: write one of json, merge, strategic")
	}
	request.HTTP.Patch, err = json.Marshal(body)
	return request, action, err
}

func (c Composer) withConnect(connect scenario.Connect) (framework.Request, string, error) {
	request, action, err := c.withReference(framework.VerbConnect, connect.ObjectReference)
	request.Subresource, request.HTTP.Method, request.HTTP.ProxyPath = connect.Subresource, connect.Method, connect.Path
	request.HTTP.Query = url.Values(connect.Parameters)
	return request, action + "/" + connect.Subresource, err
}

// deleteOptions adds apiVersion and kind to the body of a delete.
func deleteOptions(options map[string]any) map[string]any {
	if options == nil {
		return nil
	}
	out := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
	maps.Copy(out, options)
	return out
}
