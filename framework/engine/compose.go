package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// compose makes the Request of a step, and names what it does.
func (c *scenarioCase) compose(step scenario.Step) (framework.Request, string, error) {
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
		if request.Options == nil {
			request.Options = url.Values{}
		}
		request.Options.Set(key, value)
	}
	if step.Body != nil {
		request.RawBody = []byte(*step.Body)
	}
	if step.ContentType != "" {
		request.ContentType = step.ContentType
	}
	return request, action, nil
}

// address makes the part of a Request that its action says.
func (c *scenarioCase) address(step scenario.Step) (framework.Request, string, error) {
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
		request.DeleteOptions = deleteOptions(step.Delete.Options)
		return request, action, err
	case step.DeleteCollection != nil:
		request, action, err := c.withReference(framework.VerbDeleteCollection, step.DeleteCollection.ObjectReference)
		request.DeleteOptions = deleteOptions(step.DeleteCollection.Options)
		return request, action, err
	case step.Connect != nil:
		return c.withConnect(*step.Connect)
	default:
		return framework.Request{}, "step", errors.New("the step has no action: write one of create, update, apply, get, list, patch, delete, deleteCollection, connect, parallel, install, remove, script, wait")
	}
}

// withObject addresses the object that a manifest describes, or the parent that
// it is a subresource of.
func (c *scenarioCase) withObject(verb framework.Verb, manifest map[string]any, step scenario.Step) (framework.Request, string, error) {
	kind := kindOf(manifest)
	if step.Parent != nil {
		kind = schema.FromAPIVersionAndKind(step.Parent.APIVersion, step.Parent.Kind)
	} else if step.Subresource != "" {
		kind = parentOf(kind)
	}
	object := &unstructured.Unstructured{Object: manifest}
	request := framework.Request{Verb: verb, Kind: kind, Name: object.GetName(), Namespace: object.GetNamespace(), Object: object}
	return c.placed(request, fmt.Sprintf("%s %s", verb, describe(manifest)))
}

// parentOf returns the kind that a kind is most often a subresource of: its own
// for status, say.
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

func (c *scenarioCase) withReference(verb framework.Verb, ref scenario.ObjectReference) (framework.Request, string, error) {
	request := framework.Request{Verb: verb, Kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), Name: ref.Name}
	action := fmt.Sprintf("%s %s %s", verb, ref.Kind, ref.Name)
	if ref.Namespace != nil {
		request.Namespace = *ref.Namespace
	}
	return c.placed(request, action)
}

// placed fills in the scenario's namespace for kinds that live in one.
func (c *scenarioCase) placed(request framework.Request, action string) (framework.Request, string, error) {
	namespaced, err := c.target.Namespaced(request.Kind)
	if err != nil {
		return request, action, err
	}
	if !namespaced {
		request.Namespace = ""
	} else if request.Namespace == "" {
		request.Namespace = c.id
	}
	return request, action, nil
}

func (c *scenarioCase) withPatch(p scenario.Patch) (framework.Request, string, error) {
	request, action, err := c.withReference(framework.VerbPatch, p.ObjectReference)
	if err != nil {
		return request, action, err
	}
	var body any
	switch {
	case p.JSON != nil:
		request.PatchType, body = types.JSONPatchType, p.JSON
	case p.Merge != nil:
		request.PatchType, body = types.MergePatchType, p.Merge
	case p.Strategic != nil:
		request.PatchType, body = types.StrategicMergePatchType, p.Strategic
	default:
		return request, action, errors.New("the patch is empty: write one of json, merge, strategic")
	}
	request.Patch, err = json.Marshal(body)
	return request, action, err
}

func (c *scenarioCase) withConnect(connect scenario.Connect) (framework.Request, string, error) {
	request, action, err := c.withReference(framework.VerbConnect, connect.ObjectReference)
	request.Subresource, request.Method, request.ProxyPath = connect.Subresource, connect.Method, connect.Path
	request.Options = url.Values(connect.Parameters)
	return request, action + "/" + connect.Subresource, err
}

// deleteOptions completes the body of a deletion with its kind.
func deleteOptions(options map[string]any) map[string]any {
	if options == nil {
		return nil
	}
	out := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
	maps.Copy(out, options)
	return out
}
