package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver/client"
	"github.com/admissiontest/admissiontest/internal/object"
	"github.com/admissiontest/admissiontest/internal/runid"
)

// Installer installs the objects of the scenarios of one run. All exported fields are
// required. Its methods can be called by several goroutines at the same time.
type Installer struct {
	Client *client.Client
	Hooks  *hook.Server
	// Run is the ID of the run.
	Run string
	// ClientConfig returns the clientConfig by which the API server calls a Hook.
	ClientConfig func(hook.ClientConfig) map[string]any
	// HookAddress is how the API server reaches the Hook server by address.
	HookAddress hook.Address
	// Endpoints says where the webhooks under test are.
	Endpoints Endpoints

	// WebhooksForReviews is true if the API server calls webhooks for reviews: see reach.Request.
	WebhooksForReviews bool
	// DefaultAccounts is true if the ServiceAccount default of a namespace is created with it. On a
	// cluster kube-controller-manager creates it; without it the API server refuses each Pod.
	DefaultAccounts bool

	// Shared is true if the API server can have other clients, from which configurations and policies must be kept.
	Shared bool

	// NewCRD returns why the scenario of that ID may not create a CustomResourceDefinition, or nil.
	// Nil allows each.
	NewCRD func(id string, manifest map[string]any) error

	definitions sync.Mutex // held while a CustomResourceDefinition is installed: several scenarios can give it

	mu sync.Mutex
	// created are objects of the run: the API server notes no field manager for an object without fields.
	created map[types.UID]bool
	scopes  []*Scope
	// project is the scope of InstallForRun, or nil.
	project *Scope
}

// Scope is what one scenario has on the API server.
type Scope struct {
	// ID is the ID of the scenario and the name of its namespace.
	ID string
	// Conversion is how the Hooks of its CustomResourceDefinitions convert.
	Conversion hook.Conversion
	// Open is true for a scenario that runs alone: its objects are installed as they are, wherever they belong.
	Open bool
	// DryRuns is true if the policies of an Open scope decide about dry runs only.
	DryRuns bool
	// Requests are the requests of the scenario as far as they are known before it: configurations match those in its
	// namespaces. Names can have placeholders.
	Requests []framework.Request
	// Probes is true for the scope of the fences: its rules can match cluster-scoped objects.
	Probes bool
	// Accounts reports whether a namespace needs the ServiceAccount of Installer.DefaultAccounts. Nil means
	// the configurations of the scenario.
	Accounts func(namespace string) bool

	mu sync.Mutex
	// installed has what Uninstall deletes, in the order of creation: the webhook
	// configurations and policies, and what the scenario created in namespaces of others.
	installed []client.Object
	// stored has the cluster-scoped objects that RemoveStored deletes, in the order of creation.
	stored []client.Object
	// given has the webhook configurations, policies and bindings as the scenario gives them.
	given []given
	// namespaces are the Namespaces that were installed.
	namespaces []string
}

// NewScope creates the namespace of a scenario.
func (i *Installer) NewScope(ctx context.Context, id string, conversion hook.Conversion) (*Scope, error) {
	scope := &Scope{ID: id, Conversion: conversion}
	i.mu.Lock()
	i.scopes = append(i.scopes, scope)
	i.mu.Unlock()
	_, err := i.Client.Create(ctx, client.Namespace(id), i.ownNamespace(id, map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": id},
	}))
	if err != nil && !apierrors.IsAlreadyExists(err) { // no one else can know its name: the response was lost
		return nil, err
	}
	return scope, nil
}

// ownNamespace returns the manifest of a namespace of a scenario or of the run, with labels. On an API
// server without other clients, a scenario's own namespaces have no labels: nothing needs them there, and
// policies see them.
func (i *Installer) ownNamespace(id string, manifest map[string]any) map[string]any {
	if _, scenario := runid.ScenarioIn(id); scenario && !i.Shared {
		return manifest
	}
	return WithLabels(manifest, i.Labels(id))
}

// DefaultAccount creates the ServiceAccount default of a namespace, if DefaultAccounts is true and the
// scenario needs it.
func (i *Installer) DefaultAccount(ctx context.Context, scope *Scope, namespace string) error {
	needs := scope.Accounts
	if needs == nil {
		needs = func(namespace string) bool { return runid.Has(namespace, scope.ID) }
	}
	if !i.DefaultAccounts || !needs(namespace) {
		return nil
	}
	account := map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"}}
	res, err := i.Client.Resources.Of(schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"})
	if err != nil {
		return nil //nolint:nilerr // an API server without ServiceAccounts needs none
	}
	o := client.Object{Resource: res, Namespace: namespace, Name: "default"}
	created, err := i.Client.Create(ctx, o, account)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if scope.Open { // it runs alone: no other scenario needs the account
		o.UID = created.GetUID()
		i.noteCreated(scope, o)
	}
	return nil
}

// Install creates one object of a scenario, or replaces the object of the same name.
// Webhook configurations and policies are narrowed to the scenario, and their webhooks
// are connected to Hooks with the scripts of their names.
func (i *Installer) Install(ctx context.Context, scope *Scope, manifest map[string]any, scripts map[string]hook.Script) error {
	kind, res, err := i.resourceOf(manifest)
	if err != nil {
		return err
	}
	if IsAdmission(kind) {
		_, err := i.InstallAdmission(ctx, scope, manifest, scripts)
		return err
	}
	return i.installOwn(ctx, scope, res, manifest)
}

// resourceOf returns the kind and the resource of a manifest.
func (i *Installer) resourceOf(manifest map[string]any) (schema.GroupVersionKind, client.Resource, error) {
	kind, err := object.Kind(manifest)
	if err != nil {
		return kind, client.Resource{}, err
	}
	res, err := i.Client.Resources.Of(kind)
	return kind, res, err
}

// Store installs an object as it is, also a webhook configuration or policy: it only exists to be the
// object of a request.
func (i *Installer) Store(ctx context.Context, scope *Scope, manifest map[string]any) error {
	_, res, err := i.resourceOf(manifest)
	if err != nil {
		return err
	}
	return i.installOwn(ctx, scope, res, manifest)
}

// InstallAdmission narrows a webhook configuration, policy or binding to the scenario,
// connects its webhooks, and installs it. It returns the installed object. A webhook configuration
// that is replaced is changed once more.
func (i *Installer) InstallAdmission(ctx context.Context, scope *Scope, manifest map[string]any, scripts map[string]hook.Script) (client.Object, error) {
	kind, res, err := i.resourceOf(manifest)
	if err != nil {
		return client.Object{}, err
	}
	name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
	authored := manifest
	manifest, err = i.connectWebhooks(kind, manifest, scope.ID, scripts)
	if err != nil {
		return client.Object{}, fmt.Errorf("install %s %s: %w", kind.Kind, name, err)
	}
	if scope.Open {
		manifest = i.opened(scope, kind, manifest)
	} else {
		manifest = narrow(kind, manifest, i.toScenario(scope))
	}
	manifest = WithLabels(manifest, i.Labels(scope.ID))
	if err := i.dropped(ctx, res, manifest); err != nil {
		return client.Object{}, err
	}
	installed := client.Object{Resource: res, Name: scope.nameOf(kind, name), Manager: scope.ID}
	scope.note(installed)
	if _, err := i.createOrReplace(ctx, installed, manifest); err != nil {
		return installed, err
	}
	scope.remember(kind, name, authored)
	return installed, nil
}

// changedAgain returns a copy of a webhook configuration with an annotation. A kube-apiserver can lose
// a change of a webhook configuration until the next change: see docs/findings.md, and
// k8s.io/apiserver/pkg/admission/configuration/mutating_webhook_manager.go.
func changedAgain(manifest map[string]any) map[string]any {
	return withMetadata(manifest, func(metadata map[string]any) {
		annotations := cloneMap(metadata["annotations"])
		annotations["admissiontest.dev/changed"] = "again"
		metadata["annotations"] = annotations
	})
}

// installOwn installs an object as it is, without labels. The field manager of the object is the ID of
// the scenario: by it, RunOf recognizes the run.
func (i *Installer) installOwn(ctx context.Context, scope *Scope, res client.Resource, manifest map[string]any) error {
	o := client.Object{Resource: res, Manager: scope.ID}
	o.Name, _, _ = unstructured.NestedString(manifest, "metadata", "name")
	switch {
	case res.Namespaced:
		if o.Namespace, _, _ = unstructured.NestedString(manifest, "metadata", "namespace"); o.Namespace == "" {
			o.Namespace = scope.ID
		}
		if !scope.Open && !runid.Has(o.Namespace, scope.ID) && !scope.hasNamespace(o.Namespace) {
			return fmt.Errorf("install %s %s: %w: namespace %s does not belong to the scenario: use $(namespace) or one of spec.namespaces", res.Resource, o.Name, framework.ErrForeign, o.Namespace)
		}
	case res.Resource == "customresourcedefinitions":
		return i.installDefinition(ctx, scope, o, manifest)
	case res.GroupVersionResource == client.Namespaces() && runid.Has(o.Name, scope.ID):
		manifest = i.ownNamespace(scope.ID, manifest)
	}
	if err := i.createNoted(ctx, scope, o, manifest); err != nil {
		return err
	}
	if res.GroupVersionResource != client.Namespaces() {
		return nil
	}
	scope.noteNamespace(o.Name)
	if (&unstructured.Unstructured{Object: manifest}).GetDeletionTimestamp() != nil {
		return nil // nothing can be created in it
	}
	return i.DefaultAccount(ctx, scope, o.Name)
}

// RunOf returns the ID of the run that installed an object, or "": by its label or by its field manager.
func RunOf(o metav1.Object) string {
	if run := o.GetLabels()[RunLabel]; run != "" {
		return run
	}
	return ManagerOf(o)
}

// ManagerOf returns the ID of the run that is a field manager of an object, or "".
func ManagerOf(o metav1.Object) string {
	for _, entry := range o.GetManagedFields() {
		if run, ok := runid.OfManager(entry.Manager); ok {
			return run
		}
	}
	return ""
}

// parallelScopes limits how many scenarios UninstallAll uninstalls at the same time.
const parallelScopes = 16

// replacements limits how often the replacement of an object is repeated.
const replacements = 3

// createNoted is createOrReplace for an object that is removed, if it was created.
func (i *Installer) createNoted(ctx context.Context, scope *Scope, o client.Object, manifest map[string]any) error {
	created, err := i.createOrReplace(ctx, o, manifest)
	if created == nil {
		return err
	}
	o.UID = created.GetUID()
	i.noteCreated(scope, o)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.created == nil {
		i.created = map[types.UID]bool{}
	}
	i.created[o.UID] = true
	return err
}

// createOrReplace creates an object, or replaces the object of the same name, and makes it what the
// manifest says: see complete. It returns the object if it was created. A cluster-scoped object that this run did not
// create is not replaced. A webhook configuration that is replaced is changed once more. If the response to the creation
// was lost, the object is replaced by itself.
func (i *Installer) createOrReplace(ctx context.Context, o client.Object, manifest map[string]any) (created *unstructured.Unstructured, err error) {
	created, err = i.Client.Create(ctx, o, manifest)
	if err == nil {
		return created, i.complete(ctx, o, manifest, created)
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	stored, err := i.replace(ctx, o, manifest)
	if err == nil && strings.HasSuffix(o.Resource.Resource, "webhookconfigurations") {
		_, err = i.replace(ctx, o, changedAgain(manifest))
	}
	if err != nil {
		return nil, err
	}
	return nil, i.complete(ctx, o, manifest, stored)
}

// replace replaces an object, and returns it. One that cannot be replaced, as a Pod, and need not be, stays.
func (i *Installer) replace(ctx context.Context, o client.Object, manifest map[string]any) (*unstructured.Unstructured, error) {
	for left := replacements; ; left-- { // its conflict can be with itself, if its response was lost
		current, err := i.Client.Get(ctx, o)
		if err != nil {
			return nil, err
		}
		if !o.Resource.Namespaced && !i.isOurs(current) {
			return nil, notOurs(o)
		}
		stored, err := i.Client.Update(ctx, o, withMetadata(manifest, func(metadata map[string]any) {
			metadata["name"], metadata["resourceVersion"] = o.Name, current.GetResourceVersion()
		}))
		switch {
		case apierrors.IsInvalid(err) && i.isOurs(current) && lostFields(manifest, current.Object) == nil:
			return current, nil
		case err == nil, !apierrors.IsConflict(err), left == 0:
			return stored, err
		}
	}
}

// isOurs reports whether the run created an object.
func (i *Installer) isOurs(o *unstructured.Unstructured) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return RunOf(o) == i.Run || i.created[o.GetUID()]
}

func notOurs(o client.Object) error {
	return fmt.Errorf("install %s: the cluster has an object of that name, which this run did not create: use another name", o)
}

// servedLimit limits the wait for a CustomResourceDefinition to be served.
const servedLimit = 30 * time.Second

// waitUntilServed waits until each API server serves each version of a
// CustomResourceDefinition.
func (i *Installer) waitUntilServed(ctx context.Context, crd map[string]any) error {
	for _, res := range i.Client.Resources.AddCRD(crd) {
		err := client.Poll(ctx, client.Later, servedLimit, func() (bool, error) {
			list := client.HTTPRequest{Method: http.MethodGet, Path: client.URLPath(res.GroupVersionResource, "", "", ""), Query: url.Values{"limit": {"1"}}}
			answer, _, err := i.Client.SendToAll(ctx, list, notServed)
			return err == nil && answer.Allowed(), err
		})
		if err != nil {
			return fmt.Errorf("wait for the API server to serve %s: %w", res.GroupVersionResource, err)
		}
	}
	return nil
}

func notServed(answer framework.Result) string {
	if answer.Allowed() {
		return ""
	}
	return "a list of its objects"
}

// Delete deletes an object that Install installed.
func (i *Installer) Delete(ctx context.Context, scope *Scope, kind schema.GroupVersionKind, name string) error {
	res, err := i.Client.Resources.Of(kind)
	if err != nil {
		return err
	}
	o := client.Object{Resource: res, Name: scope.nameOf(kind, name)}
	scope.forget(kind, name)
	if res.Namespaced {
		o.Namespace = scope.ID
	}
	return i.Client.Delete(ctx, o)
}

// Uninstall deletes the webhook configurations and policies of a scenario, and what an Open one
// created outside of its namespaces, and unregisters its Hooks: it no longer decides about
// requests.
func (i *Installer) Uninstall(ctx context.Context, scope *Scope) error {
	scope.mu.Lock()
	installed := scope.installed
	scope.installed, scope.given = nil, nil
	scope.mu.Unlock()
	slices.SortStableFunc(installed, func(a, b client.Object) int { return RemovalRank(a.Resource) - RemovalRank(b.Resource) })
	var errs []error
	for _, one := range installed {
		errs = append(errs, client.WhileRefused(ctx, func() error { return i.Client.Delete(ctx, one) }))
	}
	i.Hooks.Unregister(scope.ID)
	return errors.Join(errs...)
}

// UninstallAll is Uninstall and RemoveStored for every scenario that has something installed, and for the run.
func (i *Installer) UninstallAll(ctx context.Context) error {
	i.mu.Lock()
	scopes := slices.Clone(i.scopes)
	i.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(parallelScopes)
	for _, scope := range scopes {
		g.Go(func() error { return errors.Join(i.Uninstall(ctx, scope), i.RemoveStored(ctx, scope)) })
	}
	return g.Wait()
}

// ErrDiffers marks an object of the cluster that another client created and that differs from the one
// to install.
var ErrDiffers = errors.New("the cluster has another CustomResourceDefinition of this name")

// installDefinition installs a CustomResourceDefinition, and waits until it is served. One that the API server has already
// is used if it is the same, or of a scenario that runs at the same time: see lanes of package engine.
func (i *Installer) installDefinition(ctx context.Context, scope *Scope, o client.Object, manifest map[string]any) error {
	i.definitions.Lock()
	used, err := i.useExisting(ctx, scope, o, manifest)
	if err == nil && !used {
		err = i.createDefinition(ctx, scope, o, manifest)
	}
	i.definitions.Unlock()
	if err != nil {
		return err
	}
	return i.waitUntilServed(ctx, manifest)
}

func (i *Installer) createDefinition(ctx context.Context, scope *Scope, o client.Object, manifest map[string]any) error {
	if i.NewCRD != nil {
		if err := i.NewCRD(scope.ID, manifest); err != nil {
			return err
		}
	}
	connected, err := i.connectConversion(manifest, scope.Conversion)
	if err != nil {
		return err
	}
	return i.createNoted(ctx, scope, o, connected)
}

// useExisting reports whether the API server has a CustomResourceDefinition already that the run uses unchanged. One
// that this run did not create is not removed. The error is an ErrDiffers if its spec differs from the manifest, apart
// from defaults of the API server and the caBundle of the conversion webhook.
func (i *Installer) useExisting(ctx context.Context, scope *Scope, o client.Object, manifest map[string]any) (bool, error) {
	current, err := i.Client.Get(ctx, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	run := RunOf(current)
	switch {
	case run == i.Run:
		return !scope.Open, nil // of a scenario that runs alone it is replaced
	case run != "":
		return false, fmt.Errorf("install %s: %w: run %s created it and will remove it: wait for its end, or remove it with `admissiontest cleanup --run %s`", o, ErrDiffers, run, run)
	case current.GetDeletionTimestamp() != nil:
		return false, fmt.Errorf("install %s: %w, which is being deleted: wait until it is gone", o, ErrDiffers)
	}
	wanted := maps.Clone(current.Object)
	wanted["apiVersion"], wanted["spec"] = manifest["apiVersion"], manifest["spec"]
	updated, err := i.Client.TryUpdate(ctx, o, wanted) // the API server sets defaults
	if err != nil {
		return false, fmt.Errorf("compare %s with the one of the cluster: %w", o, err)
	}
	for _, one := range []*unstructured.Unstructured{current, updated} {
		unstructured.RemoveNestedField(one.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle") // a controller can inject it
	}
	if !reflect.DeepEqual(current.Object["spec"], updated.Object["spec"]) {
		return false, fmt.Errorf("install %s: %w, which differs: update it, or remove it to install yours for the run; `kubectl diff` shows the difference", o, ErrDiffers)
	}
	return true, nil
}

// complete makes a stored object what its manifest says, where an API server ignores fields of a create
// or update: it deletes an object with a deletionTimestamp, which its finalizers keep, and writes the
// status to its subresource. The error is a framework.ManifestError with the first field that the object
// does not have then. CustomResourceDefinitions, whose status is of the API server, and what decides about
// requests are not compared.
func (i *Installer) complete(ctx context.Context, o client.Object, manifest map[string]any, stored *unstructured.Unstructured) error {
	if o.Resource.Group == AdmissionGroup || o.Resource.Resource == "customresourcedefinitions" {
		return nil
	}
	var err error
	given := &unstructured.Unstructured{Object: manifest}
	if given.GetDeletionTimestamp() != nil && stored.GetDeletionTimestamp() == nil {
		if stored, err = i.markDeleted(ctx, o, given, stored); err != nil {
			return err
		}
	}
	if status := manifest["status"]; status != nil && lostField("status", status, stored.Object["status"]) != nil {
		next := maps.Clone(stored.Object)
		next["status"] = status
		updated, err := i.Client.Update(ctx, o, next, "status")
		switch {
		case err == nil:
			stored = updated
		case !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err): // it has no such subresource
			return fmt.Errorf("write the status: %w", err)
		}
	}
	if lost := lostFields(manifest, stored.Object); lost != nil {
		stands := "does not store it"
		if lost.stored != nil && stored.GetKind() != "Secret" {
			stands = fmt.Sprintf("stores %.*s instead", shortLength, fmt.Sprint(lost.stored))
		}
		return &framework.ManifestError{Field: lost.path, Err: fmt.Errorf("%s: the API server %s, so no request would meet the object as written: remove the field, or write what the API server stores", lost.path, stands)}
	}
	return nil
}

// markDeleted deletes an object that has finalizers, and returns it.
func (i *Installer) markDeleted(ctx context.Context, o client.Object, given, stored *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	const field = "metadata.deletionTimestamp"
	if len(stored.GetFinalizers()) == 0 && o.Resource.GroupVersionResource != client.Namespaces() {
		return nil, &framework.ManifestError{Field: field, Err: fmt.Errorf("%s: the API server removes an object without finalizers at once: add metadata.finalizers, such as [example.com/wait]", field)}
	}
	if err := i.Client.DeleteGracefully(ctx, o, given.GetDeletionGracePeriodSeconds()); err != nil {
		return nil, err
	}
	return i.Client.Get(ctx, o)
}

// shortLength is the largest length of a value in an error.
const shortLength = 60

// lost is a field that a stored object does not have, or has with another value.
type lost struct {
	path   string
	stored any
}

// lostFields returns the first field of a manifest that the stored object lacks or has with another
// value, or nil. Not compared are the namespace, which the run sets, the time of a deletion, and
// stringData of a Secret, which the API server moves to data.
func lostFields(manifest, stored map[string]any) *lost {
	given := maps.Clone(manifest)
	for _, field := range []string{"apiVersion", "kind", "stringData"} {
		delete(given, field)
	}
	metadata := cloneMap(given["metadata"])
	for _, field := range []string{"name", "namespace", "generateName", "deletionTimestamp"} {
		delete(metadata, field)
	}
	given["metadata"] = metadata
	return lostField("", given, stored)
}

// lostField returns the first field of given that stored lacks or has with another value. Fields
// without a value can be absent, lists can be longer and in another order, and numbers and quantities can be written
// in another way.
func lostField(path string, given, stored any) *lost {
	switch given := given.(type) {
	case nil:
		return nil
	case map[string]any:
		fields, _ := stored.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(given)) {
			at := name
			if path != "" {
				at = path + "." + name
			}
			if found := lostField(at, given[name], fields[name]); found != nil {
				return found
			}
		}
		return nil
	case []any:
		items, _ := stored.([]any)
		for k, item := range given {
			if slices.ContainsFunc(items, func(other any) bool { return lostField("", item, other) == nil }) {
				continue
			}
			var at any
			if k < len(items) {
				at = items[k]
			}
			if found := lostField(fmt.Sprintf("%s[%d]", path, k), item, at); found != nil {
				return found
			}
		}
		return nil
	default:
		if stored == nil && slices.Contains([]any{"", false, int64(0), float64(0)}, given) || sameValue(given, stored) {
			return nil
		}
		return &lost{path, stored}
	}
}

// sameValue reports whether two values mean the same.
func sameValue(a, b any) bool {
	left, right := fmt.Sprint(a), fmt.Sprint(b)
	x, err := resource.ParseQuantity(left)
	y, other := resource.ParseQuantity(right)
	return left == right || err == nil && other == nil && x.Cmp(y) == 0
}
