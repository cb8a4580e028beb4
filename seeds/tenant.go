package seeds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
)

var (
	group           = schema.GroupVersion{Group: "tenancy.example.com", Version: "v1"}
	tenantsResource = group.WithResource("tenants")
	grantsResource  = group.WithResource("grants")
)

// TenantSpec is the spec of a Tenant, a cluster-scoped custom resource.
type TenantSpec struct {
	ID           string             `json:"id"`
	Owners       []string           `json:"owners,omitempty"`
	Registries   []string           `json:"registries,omitempty"`
	NodeSelector map[string]string  `json:"nodeSelector,omitempty"`
	Dedicated    map[string]string  `json:"dedicated,omitempty"` // taint key -> value
	NamePrefix   string             `json:"namePrefix,omitempty"`
	MaxPods      *int64             `json:"maxPods,omitempty"`
	MaxReplicas  *int32             `json:"maxReplicas,omitempty"`
	MaxStorage   *resource.Quantity `json:"maxStorage,omitempty"`
}

// Tenant is the plugin's view of a Tenant. It shares nothing with a cache.
type Tenant struct {
	Name string
	Spec TenantSpec
}

// Grant is a namespaced custom resource that lets a user exec into pods for some time.
type Grant struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		User        string       `json:"user"`
		Permissions []string     `json:"permissions"`
		Pods        []string     `json:"pods,omitempty"` // empty: all pods of the namespace
		Expires     *metav1.Time `json:"expires,omitempty"`
	} `json:"spec"`
}

func decodeTenant(obj runtime.Object) (*Tenant, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected an unstructured Tenant, got %T", obj))
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	tenant := &Tenant{Name: object.GetName()}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &tenant.Spec); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Tenant %s: %v", tenant.Name, err))
	}
	return tenant, nil
}

func (s TenantSpec) validate(path *field.Path) (errs field.ErrorList) {
	if s.ID == "" {
		errs = append(errs, field.Required(path.Child("id"), ""))
	}
	for i, registry := range s.Registries {
		if registry == "" || strings.HasSuffix(registry, "/") || strings.Contains(registry, " ") {
			errs = append(errs, field.Invalid(path.Child("registries").Index(i), registry, "must be a host with an optional path, without a slash at the end"))
		}
	}
	if s.MaxPods != nil && *s.MaxPods < 0 {
		errs = append(errs, field.Invalid(path.Child("maxPods"), *s.MaxPods, "must not be negative"))
	}
	if s.MaxReplicas != nil && *s.MaxReplicas < 0 {
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), *s.MaxReplicas, "must not be negative"))
	}
	return errs
}

// tenantOf returns the tenant of a request's namespace; nil if the namespace has none.
func (p *Tenancy) tenantOf(ctx context.Context, a admission.Attributes) (*Tenant, error) {
	if bug("memory-of-namespace") { // BUG: remembers the tenant for ever
		p.mu.Lock()
		known := p.remembered[a.GetNamespace()]
		p.mu.Unlock()
		if known != nil {
			return known, nil
		}
	}
	if !bug("not-ready") && !p.WaitForReady() { // BUG: does not wait
		return nil, admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	name := a.GetNamespace()
	if bug("namespace-from-object") { // BUG: the object's namespace
		if object, ok := a.GetObject().(metav1.Object); ok {
			name = object.GetNamespace()
		}
	}
	namespace, err := p.namespaces.Get(name)
	if apierrors.IsNotFound(err) && !bug("stale-namespace") { // BUG: trusts the cache for young namespaces
		namespace, err = p.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, admission.NewForbidden(a, err)
	}
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("namespace %s: %w", name, err))
	}
	if bug("cache-mutated") && namespace.Labels == nil { // BUG: writes a cached object
		namespace.Labels = map[string]string{Label: ""}
	}
	tenantName := namespace.Labels[Label]
	if tenantName == "" {
		return nil, nil //nolint:nilnil // no tenant
	}
	tenant, err := p.tenant(ctx, tenantName)
	if apierrors.IsNotFound(err) {
		if bug("tenant-not-found-allowed") {
			return nil, nil // BUG: an unknown tenant is no tenant
		}
		return nil, admission.NewForbidden(a, fmt.Errorf("namespace %s belongs to tenant %q, which does not exist", name, tenantName))
	}
	if bug("memory-of-namespace") && err == nil {
		p.mu.Lock()
		p.remembered[a.GetNamespace()] = tenant
		p.mu.Unlock()
	}
	return tenant, err
}

// tenant returns a tenant from the cache, or from the API server if it is not in the cache.
func (p *Tenancy) tenant(ctx context.Context, name string) (*Tenant, error) {
	object, err := p.tenants.Get(name)
	if apierrors.IsNotFound(err) {
		var live *unstructured.Unstructured
		if live, err = p.dynamic.Resource(tenantsResource).Get(ctx, name, metav1.GetOptions{}); err == nil {
			object = live
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, err
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("tenant %s: %w", name, err))
	}
	tenant, err := decodeTenant(object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return tenant, nil
}

// usedPods counts the pods of a namespace that use the quota: not those that have ended, and not
// those of the platform, which are labelled as unmetered. It reads from the API server, because a
// cache lets bursts through.
func (p *Tenancy) usedPods(ctx context.Context, namespace string) (int64, error) {
	options := metav1.ListOptions{LabelSelector: "!" + UnmeteredLabel}
	var pods []*corev1.Pod
	switch {
	case bug("quota-all-namespaces"):
		namespace = metav1.NamespaceAll // BUG: counts all namespaces
	case bug("quota-no-selector"):
		options = metav1.ListOptions{} // BUG: counts unmetered pods
	case bug("quota-background-context"):
		ctx = context.Background() // BUG: not the context of the request
	}
	if bug("quota-from-cache") { // BUG: stale
		cached, err := p.pods.Pods(namespace).List(everything)
		if err != nil {
			return 0, err
		}
		for _, pod := range cached {
			if _, unmetered := pod.Labels[UnmeteredLabel]; !unmetered {
				pods = append(pods, pod)
			}
		}
	} else {
		list, err := p.client.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			if bug("quota-error-swallowed") {
				return 0, nil // BUG: fails open
			}
			return 0, apierrors.NewInternalError(fmt.Errorf("count pods: %w", err))
		}
		for i := range list.Items {
			pods = append(pods, &list.Items[i])
		}
	}
	var count int64
	for _, pod := range pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if bug("quota-counts-finished") {
			ended = false // BUG: finished pods count
		}
		if !ended {
			count++
		}
	}
	return count, nil
}

// usedStorage adds up what the claims of a namespace request, except the named claim.
func (p *Tenancy) usedStorage(ctx context.Context, namespace, except string) (resource.Quantity, error) {
	total := resource.Quantity{}
	list, err := p.client.CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return total, apierrors.NewInternalError(fmt.Errorf("add up storage: %w", err))
	}
	for _, claim := range list.Items {
		if (claim.Name == except && !bug("pvc-counts-itself")) || (claim.DeletionTimestamp != nil && !bug("pvc-counts-terminating")) { // BUGS
			continue
		}
		request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if bug("pvc-last-entry-only") {
			total = request.DeepCopy() // BUG: only the last claim
			continue
		}
		total.Add(request)
	}
	return total, nil
}

// granted reports whether a grant lets the user do this with the pod.
func (p *Tenancy) granted(ctx context.Context, a admission.Attributes, permission string) (bool, error) {
	namespace := a.GetNamespace()
	if bug("grants-all-namespaces") {
		namespace = "" // BUG: grants of all namespaces
	}
	list, err := p.dynamic.Resource(grantsResource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("list grants: %w", err))
	}
	now := p.now()
	for i := range list.Items {
		grant := &Grant{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, grant); err != nil {
			continue // a broken grant grants nothing
		}
		if grant.Spec.User != a.GetUserInfo().GetName() || !slices.Contains(grant.Spec.Permissions, permission) {
			continue
		}
		if len(grant.Spec.Pods) > 0 && !slices.Contains(grant.Spec.Pods, a.GetName()) && !bug("grant-pods-ignored") { // BUG
			continue
		}
		if grant.DeletionTimestamp == nil && p.valid(grant, now) {
			return true, nil
		}
		if bug("grant-first-only") {
			return false, nil // BUG: only the first grant of the user counts
		}
	}
	return false, nil
}

func (p *Tenancy) valid(grant *Grant, now time.Time) bool {
	if bug("grant-nil-expiry") { // BUG: panics for a grant that does not expire
		return now.Before(grant.Spec.Expires.Time)
	}
	if bug("grant-expiry-ignored") {
		return true // BUG
	}
	return grant.Spec.Expires == nil || now.Before(grant.Spec.Expires.Time)
}
