package execution

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
)

// Of returns the requests of a scenario as far as they are known before it runs: a
// create for each object that it is given or installs, a delete for each object that it
// removes, and the requests of its steps. Placeholders are not replaced. Namespace is
// empty if it is the namespace of the scenario.
//
// A step without a valid request is left out; running it reports the problem.
func Of(s scenario.Scenario) []framework.Request {
	return append(Given(s), Composer{Namespaced: unknown}.Steps(s)...)
}

// Given returns the requests that create what a scenario is given.
func Given(s scenario.Scenario) []framework.Request { return installed(s.Spec.Given) }

// Steps returns the requests of the steps and webhooks of a scenario, as far as they are known before it
// runs.
func (c Composer) Steps(s scenario.Scenario) []framework.Request {
	var out []framework.Request
	_ = EachStep(s.Spec, func(_ string, step scenario.Step) error { // it returns no error
		out = append(out, c.requests(step)...)
		return nil
	})
	return out
}

// unknown is the Composer.Namespaced of an API server that is not started yet: it leaves the
// namespace empty.
func unknown(schema.GroupVersionKind) (bool, error) { return false, nil }

// requests returns the requests of one step.
func (c Composer) requests(step scenario.Step) []framework.Request {
	out := installed(step.Install)
	for _, ref := range step.Remove {
		out = append(out, framework.Request{Verb: framework.VerbDelete, Kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), Name: ref.Name})
	}
	if step.Wait != nil {
		step.Get = &step.Wait.ObjectReference
	}
	if request, _, err := c.Compose(step); err == nil { // another step has no request for an object
		out = append(out, request)
	}
	return out
}

func installed(manifests []map[string]any) []framework.Request {
	var out []framework.Request
	for _, manifest := range manifests {
		kind, _ := object.Kind(manifest) // without one, the kind is the zero value
		subject := &unstructured.Unstructured{Object: manifest}
		request := framework.Request{Verb: framework.VerbCreate, Kind: kind, Name: subject.GetName(), Object: subject}
		out = append(out, request)
		if manifest["status"] != nil && kind.Kind != "CustomResourceDefinition" && !object.IsAdmission(manifest) {
			request.Verb, request.Subresource = framework.VerbUpdate, "status"
			out = append(out, request)
		}
	}
	return out
}

// EachStep calls a function for each step of a scenario that sends requests, parallel
// steps and the steps of a Meanwhile included, until it returns an error, which EachStep returns.
// Where describes the place of the step: "step 2, parallel 1".
func EachStep(spec scenario.Spec, do func(where string, step scenario.Step) error) error {
	if err := inHooks(spec.Hooks, do); err != nil {
		return err
	}
	return steps("step", spec.When, do)
}

// inHooks is EachStep for the steps of a Meanwhile.
func inHooks(hooks map[string]scenario.Hook, do func(where string, step scenario.Step) error) error {
	for name, h := range hooks {
		for _, reply := range append([]scenario.Reply{h.Reply}, h.Replies...) {
			if err := steps("meanwhile of "+name, reply.Meanwhile, do); err != nil {
				return err
			}
		}
	}
	return nil
}

func steps(where string, list []scenario.Step, do func(where string, step scenario.Step) error) error {
	for i, step := range list {
		at := fmt.Sprintf("%s %d", where, i+1)
		err := steps(at+", parallel", step.Parallel, do)
		if err == nil {
			err = inHooks(step.Script, do)
		}
		if err == nil && step.Parallel == nil {
			err = do(at, step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

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

// manifest is a manifest of a scenario.
type manifest struct {
	// path is its field path in the spec: "given[1]".
	path   string
	object map[string]any
}

// given reports whether the scenario is given the manifest. Otherwise, a step writes it.
func (m manifest) given() bool { return strings.HasPrefix(m.path, "given[") }

// manifests returns what the scenario is given, and what its steps install or write. Placeholders of results that are
// not known are not replaced.
func (c *Case) manifests() []manifest {
	var all []manifest
	for i, given := range c.Given {
		all = append(all, manifest{fmt.Sprintf("given[%d]", i), given})
	}
	_ = EachStep(c.Scenario.Spec, func(where string, raw scenario.Step) error { // it returns no error
		step, err := scenario.Replace(raw, c.lookup)
		if err != nil {
			step = raw
		}
		for i, installed := range step.Install {
			all = append(all, manifest{fmt.Sprintf("%s.install[%d]", where, i), installed})
		}
		for name, written := range map[string]map[string]any{"create": step.Create, "update": step.Update, "apply": step.Apply} {
			if written != nil {
				all = append(all, manifest{where + "." + name, written})
			}
		}
		return nil
	})
	return all
}

// Own returns the manifests of the webhooks and policies that the scenario gives, that its steps install or
// write, and that the run installed for all scenarios.
func (c *Case) Own() []map[string]any {
	var all []map[string]any
	for _, m := range c.manifests() {
		all = append(all, m.object)
	}
	var own []map[string]any
	for _, one := range append(all, c.project.Objects()...) {
		if object.IsAdmission(one) {
			own = append(own, one)
		}
	}
	return own
}

// groups returns the groups of the CustomResourceDefinitions and APIServices that the scenario is given, and of
// those that its steps write.
func (c *Case) groups() (given, written []string) {
	for _, m := range c.manifests() {
		spec, _ := m.object["spec"].(map[string]any)
		group, ok := spec["group"].(string)
		switch defines := m.object["kind"] == "CustomResourceDefinition" || m.object["kind"] == "APIService"; {
		case !ok || !defines:
		case m.given():
			given = append(given, group)
		default:
			written = append(written, group)
		}
	}
	return given, written
}
