package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sharedObject is a cluster-scoped object that scenarios have in common.
type sharedObject struct {
	manifest map[string]any
	ready    chan struct{}
	err      error
}

// Open makes the place of a scenario: its namespace, which has its ID as name.
func (t *Target) Open(ctx context.Context, id string) error {
	t.mu.Lock()
	t.owners[id] = &owner{touched: map[schema.GroupVersionResource]bool{}}
	t.mu.Unlock()
	_, err := t.request(ctx, call{method: http.MethodPost, path: "/api/v1/namespaces", body: mustJSON(map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": id, "labels": t.labels(id)},
	})})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", id, err)
	}
	return nil
}

func (t *Target) labels(id string) map[string]any {
	return map[string]any{RunLabel: t.options.Run, ScenarioLabel: id}
}

// Put installs one object of a scenario, in place of one of the same name.
// Webhook configurations and policies are narrowed, and webhooks without a
// clientConfig are led to a Hook with the script of their name.
func (t *Target) Put(ctx context.Context, id string, manifest map[string]any, scripts map[string]hook.Script) error {
	gvk, err := kindOf(manifest)
	if err != nil {
		return err
	}
	res, err := t.resources.of(gvk)
	if err != nil {
		return err
	}
	name, _ := nestedString(manifest, "metadata", "name")
	switch {
	case governs(gvk):
		manifest, err = t.connect(gvk, manifest, id, scripts)
		if err != nil {
			return fmt.Errorf("install %s %s: %w", gvk.Kind, name, err)
		}
		manifest = labelled(t.resources.narrow(gvk, manifest, id), map[string]string{RunLabel: t.options.Run, ScenarioLabel: id})
		ref := reference{resource: res, name: id + "-" + name}
		t.remember(id, func(o *owner) { o.governing = append(o.governing, ref) })
		return t.replace(ctx, ref, manifest)
	case gvk.Kind == "CustomResourceDefinition":
		return t.putShared(ctx, id, res, manifest)
	case !res.Namespaced && !strings.Contains(name, id) && gvk.Kind != "Namespace":
		return t.putShared(ctx, id, res, manifest)
	default:
		return t.putOwn(ctx, id, res, manifest)
	}
}

// putOwn installs an object that is the scenario's alone.
func (t *Target) putOwn(ctx context.Context, id string, res resource, manifest map[string]any) error {
	ref := reference{resource: res}
	ref.name, _ = nestedString(manifest, "metadata", "name")
	if res.Namespaced {
		if ref.namespace, _ = nestedString(manifest, "metadata", "namespace"); ref.namespace == "" {
			ref.namespace = id
		}
		if !strings.Contains(ref.namespace, id) {
			return fmt.Errorf("install %s %s: namespace %s is not the scenario's: leave it out, or put $(id) in the name of one that the scenario gives", res.Resource, ref.name, ref.namespace)
		}
		t.touch(id, res)
	} else {
		if res.Resource == "customresourcedefinitions" {
			var err error
			if manifest, err = t.connectConversion(manifest, id); err != nil {
				return err
			}
		}
		manifest = t.own(id, manifest)
	}
	if err := t.replace(ctx, ref, manifest); err != nil {
		return err
	}
	if res.Resource == "customresourcedefinitions" {
		return t.serveCRD(ctx, manifest)
	}
	return nil
}

// putShared installs an object once, however many scenarios give it.
func (t *Target) putShared(ctx context.Context, id string, res resource, manifest map[string]any) error {
	name, _ := nestedString(manifest, "metadata", "name")
	key := res.GroupResource().String() + " " + name
	t.mu.Lock()
	object, known := t.shared[key]
	if !known {
		object = &sharedObject{manifest: manifest, ready: make(chan struct{})}
		t.shared[key] = object
	}
	t.mu.Unlock()
	if !known {
		object.err = t.putOwn(ctx, id, res, manifest)
		close(object.ready)
		return object.err
	}
	if !reflect.DeepEqual(object.manifest, manifest) {
		return fmt.Errorf("install %s %s: another scenario gives one of the same name and other content: put $(id) in the name, or make them equal", res.Resource, name)
	}
	select {
	case <-object.ready:
		return object.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Own returns the manifest of a cluster-scoped object with the labels by which
// it is found again.
func (t *Target) own(id string, manifest map[string]any) map[string]any {
	return labelled(manifest, map[string]string{RunLabel: t.options.Run, ScenarioLabel: id})
}

// Claim prepares the body of a request for a cluster: cluster-scoped objects get
// the labels by which they are removed again. Of namespaced ones the resource is
// remembered.
func (t *Target) Claim(id string, request framework.Request) framework.Request {
	res, err := t.resources.of(request.Kind)
	if err != nil {
		return request
	}
	if res.Namespaced {
		t.touch(id, res)
		return request
	}
	// To finalize a namespace replaces its labels too.
	other := request.Subresource != "" && (request.Subresource != "finalize" || request.Kind.Kind != "Namespace")
	if request.Object == nil || other || (request.Kind.Group != "" && hasReviewName(request.Kind.Kind)) {
		return request
	}
	switch request.Verb {
	case framework.VerbUpdate, framework.VerbApply:
		if !strings.Contains(request.Name, id) {
			return request // it may be somebody else's, and a label would have it removed
		}
		fallthrough
	case framework.VerbCreate:
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.Object)
		if err != nil {
			return request
		}
		request.Object = &unstructured.Unstructured{Object: t.own(id, fields)}
	}
	return request
}

// hasReviewName reports whether a kind is one of the reviews, which are not
// stored and refuse metadata.
func hasReviewName(kind string) bool { return len(kind) > 6 && kind[len(kind)-6:] == "Review" }

// touch remembers that a scenario has objects of a resource in its namespaces.
// Reviews and the like are not stored.
func (t *Target) touch(id string, res resource) {
	if res.Deletable {
		t.remember(id, func(o *owner) { o.touched[res.GroupVersionResource] = true })
	}
}

func (t *Target) remember(id string, change func(*owner)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owners[id]; o != nil {
		change(o)
	}
}

// connect fills what a webhook needs to reach its Hook.
func (t *Target) connect(gvk schema.GroupVersionKind, manifest map[string]any, id string, scripts map[string]hook.Script) (map[string]any, error) {
	var phase framework.Phase
	switch gvk.Kind {
	case kindMutatingWebhooks:
		phase = framework.Mutating
	case kindValidatingWebhooks:
		phase = framework.Validating
	default:
		return manifest, nil
	}
	configuration, _ := nestedString(manifest, "metadata", "name")
	out := maps.Clone(manifest)
	var webhooks []any
	for _, item := range asList(manifest["webhooks"]) {
		webhook, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("webhook is %T, want a mapping", item)
		}
		webhook = maps.Clone(webhook)
		setDefault(webhook, "sideEffects", "None")
		setDefault(webhook, "admissionReviewVersions", []any{"v1"})
		name, _ := webhook["name"].(string)
		client := cloneMap(webhook["clientConfig"])
		also, own := t.atHooks(id, client)
		if len(client) == 0 || own {
			endpoint, err := t.hooks.Register(hook.Hook{
				Owner: id, Configuration: configuration, Webhook: name, Phase: phase, Script: scripts[name],
				Also: also,
			})
			if err != nil {
				return nil, err
			}
			if len(client) == 0 {
				client = t.options.ClientConfig(endpoint)
			}
			setDefault(client, "caBundle", base64.StdEncoding.EncodeToString(endpoint.CABundle))
			webhook["clientConfig"] = client
		} else if client["service"] != nil {
			webhook["clientConfig"] = t.redirect(client)
		}
		webhooks = append(webhooks, webhook)
	}
	if webhooks != nil {
		out["webhooks"] = webhooks
	}
	return out, nil
}

// byURL is a clientConfig with the URL of a Hook.
func byURL(endpoint hook.Endpoint) map[string]any {
	return map[string]any{"url": endpoint.URL, "caBundle": base64.StdEncoding.EncodeToString(endpoint.CABundle)}
}

// connectConversion leads the conversion webhook of a CustomResourceDefinition
// without a clientConfig to one of ours. It belongs to the definition, which may
// outlast the scenario that gave it first.
func (t *Target) connectConversion(crd map[string]any, id string) (map[string]any, error) {
	name, _ := nestedString(crd, "metadata", "name")
	strategy, _ := nestedString(crd, "spec", "conversion", "strategy")
	spec := cloneMap(crd["spec"])
	conversion := cloneMap(spec["conversion"])
	webhook := cloneMap(conversion["webhook"])
	if _, given := webhook["clientConfig"]; given || strategy != "Webhook" {
		return crd, nil
	}
	t.mu.Lock()
	wanted := hook.Conversion{}
	if o := t.owners[id]; o != nil {
		wanted = o.conversion
	}
	t.mu.Unlock()
	endpoint, err := t.hooks.RegisterConversion("crd-"+t.options.Run, name, wanted)
	if err != nil {
		return nil, err
	}
	webhook["clientConfig"] = t.options.ClientConfig(endpoint)
	setDefault(webhook, "conversionReviewVersions", []any{"v1"})
	conversion["webhook"], spec["conversion"] = webhook, conversion
	out := maps.Clone(crd)
	out["spec"] = spec
	return out, nil
}

// SetConversion sets how the custom resources are converted whose definitions a
// scenario gives. It comes before they are put.
func (t *Target) SetConversion(id string, conversion hook.Conversion) error {
	t.remember(id, func(o *owner) { o.conversion = conversion })
	return nil
}

func setDefault(object map[string]any, key string, value any) {
	if _, ok := object[key]; !ok {
		object[key] = value
	}
}

// replace creates an object, or updates the one that has its name. A
// cluster-scoped object that is not this run's is left as it is.
func (t *Target) replace(ctx context.Context, ref reference, manifest map[string]any) error {
	request := framework.Request{Namespace: ref.namespace, Name: ref.name}
	create := call{method: http.MethodPost, path: urlOf(ref.resource, request, false), body: mustJSON(manifest)}
	answer, err := t.request(ctx, create, http.StatusConflict)
	if err != nil || answer.Status.Code != http.StatusConflict {
		return err
	}
	path := urlOf(ref.resource, request, true)
	current, err := t.request(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	if run, _ := nestedString(current.Fields(), "metadata", "labels", RunLabel); !ref.resource.Namespaced && run != t.options.Run {
		return fmt.Errorf("install %s %s: the cluster has one of that name, which is not this run's: put $(id) in the name", ref.resource.Resource, ref.name)
	}
	version, _ := nestedString(current.Fields(), "metadata", "resourceVersion")
	manifest = renamed(manifest, ref.name)
	metadata, _ := manifest["metadata"].(map[string]any)
	metadata["resourceVersion"] = version
	_, err = t.request(ctx, call{method: http.MethodPut, path: path, body: mustJSON(manifest)})
	return err
}

// serveCRD waits until the API server serves each version of a
// CustomResourceDefinition.
func (t *Target) serveCRD(ctx context.Context, crd map[string]any) error {
	t.resources.addCRD(crd)
	group, _ := nestedString(crd, "spec", "group")
	plural, _ := nestedString(crd, "spec", "names", "plural")
	for _, version := range servedVersions(crd) {
		res := resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: plural}}
		err := poll(ctx, later, crdLimit, func() (bool, error) {
			answer, err := t.send(ctx, call{method: http.MethodGet, path: urlOf(res, framework.Request{}, false), query: map[string][]string{"limit": {"1"}}})
			return err == nil && answer.Allowed(), err
		})
		if err != nil {
			return fmt.Errorf("wait for %s to be served: %w", res.GroupVersionResource, err)
		}
	}
	return nil
}

// crdLimit bounds the wait for a CustomResourceDefinition.
const crdLimit = 30 * time.Second
