// Package seeds has Tenancy, a plugin in which bugs can be switched on: see bugs.go and run.sh.
package seeds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// PluginName is the name of the plugin in the flags of the API server.
	PluginName = "Tenancy"
	// Label names the tenant of namespaces, pods and claims.
	Label = "tenancy.example.com/tenant"
	// UnmeteredLabel is on pods of the platform, which use no quota.
	UnmeteredLabel = "tenancy.example.com/unmetered"
	// ProtectedAnnotation "true" protects namespaces from deletion, and pods from eviction.
	ProtectedAnnotation = "tenancy.example.com/protected"
	// exemptKey and tenantKey are keys of audit annotations.
	exemptKey = "tenancy.example.com/exempt"
	tenantKey = "tenancy.example.com/admitted-for"
)

var everything = labels.Everything()

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(config io.Reader) (admission.Interface, error) { return New(config) })
}

// Tenancy is the plugin. It enforces the rules of Tenants in the namespaces that belong to them.
type Tenancy struct {
	*admission.Handler
	config     *Configuration
	client     kubernetes.Interface
	dynamic    dynamic.Interface
	authorizer authorizer.Authorizer
	namespaces corelisters.NamespaceLister
	tenants    cache.GenericLister
	drained    <-chan struct{}
	now        func() time.Time

	namespacesSynced, tenantsSynced cache.InformerSynced

	// only for seeded bugs
	pods       corelisters.PodLister
	mu         sync.Mutex
	remembered map[string]*Tenant
	current    *Tenant
}

var (
	_ admission.MutationInterface       = &Tenancy{}
	_ admission.ValidationInterface     = &Tenancy{}
	_ admission.InitializationValidator = &Tenancy{}
)

// New returns a plugin. A nil configuration means the defaults.
func New(config io.Reader) (*Tenancy, error) {
	c, err := loadConfiguration(config)
	if err != nil {
		return nil, err
	}
	p := &Tenancy{config: c, now: time.Now, remembered: map[string]*Tenant{}}
	p.Handler = admission.NewHandler(admission.Create, admission.Update, admission.Delete, admission.Connect)
	if bug("handler-without-update") {
		p.Handler = admission.NewHandler(admission.Create, admission.Delete, admission.Connect) // BUG
	}
	p.SetReadyFunc(func() bool {
		if bug("ready-without-tenants") {
			return p.namespacesSynced != nil && p.namespacesSynced() // BUG: not the own informer
		}
		return p.namespacesSynced != nil && p.tenantsSynced != nil && p.namespacesSynced() && p.tenantsSynced()
	})
	return p, nil
}

// SetDrainedNotification implements initializer.WantsDrainedNotification. An API server calls it first.
func (p *Tenancy) SetDrainedNotification(drained <-chan struct{}) { p.drained = drained }

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Tenancy) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// SetAuthorizer implements initializer.WantsAuthorizer.
func (p *Tenancy) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (p *Tenancy) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	namespaces := factory.Core().V1().Namespaces()
	p.namespaces, p.namespacesSynced = namespaces.Lister(), namespaces.Informer().HasSynced
	if bug("quota-from-cache") {
		pods := factory.Core().V1().Pods()
		synced := p.namespacesSynced
		p.pods = pods.Lister()
		podsSynced := pods.Informer().HasSynced
		p.namespacesSynced = func() bool { return synced() && podsSynced() }
	}
}

// SetDynamicClient implements initializer.WantsDynamicClient. It starts the informer of Tenants.
func (p *Tenancy) SetDynamicClient(client dynamic.Interface) {
	p.dynamic = client
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	tenants := factory.ForResource(tenantsResource)
	p.tenants, p.tenantsSynced = tenants.Lister(), tenants.Informer().HasSynced
	if bug("informer-never-stops") {
		factory.Start(make(chan struct{})) // BUG: leaks
		return
	}
	factory.Start(p.drained)
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *Tenancy) ValidateInitialization() error {
	switch {
	case p.client == nil:
		return fmt.Errorf("%s: missing client", PluginName)
	case p.dynamic == nil || p.tenants == nil:
		return fmt.Errorf("%s: missing dynamic client", PluginName)
	case p.namespaces == nil:
		return fmt.Errorf("%s: missing namespace informer", PluginName)
	case p.authorizer == nil && !bug("init-without-authorizer"): // BUG
		return fmt.Errorf("%s: missing authorizer", PluginName)
	case p.drained == nil:
		return fmt.Errorf("%s: missing drained notification", PluginName)
	}
	return nil
}

// exempt reports whether nothing is checked for the request, and why.
func (p *Tenancy) exempt(a admission.Attributes) (string, bool) {
	if a.GetNamespace() != "" && slices.Contains(p.config.ExemptNamespaces, a.GetNamespace()) && a.GetResource().Resource != "namespaces" {
		return "namespace", true
	}
	name := a.GetUserInfo().GetName()
	if slices.Contains(p.config.ExemptUsers, name) {
		return "user", true
	}
	for _, exempt := range p.config.ExemptUsers {
		if bug("user-case") && strings.EqualFold(exempt, name) || bug("user-prefix") && strings.HasPrefix(name, exempt) { // BUGS
			return "user", true
		}
	}
	for _, group := range a.GetUserInfo().GetGroups() {
		if slices.Contains(p.config.ExemptGroups, group) {
			return "group", true
		}
	}
	return "", false
}

type target struct{ group, resource, subresource string }

func targetOf(a admission.Attributes) target {
	return target{a.GetResource().Group, a.GetResource().Resource, a.GetSubresource()}
}

// Admit sets the defaults of the tenant.
func (p *Tenancy) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if _, exempt := p.exempt(a); exempt {
		return nil
	}
	if a.GetOperation() != admission.Create && !(bug("mutates-updates") && a.GetOperation() == admission.Update && a.GetSubresource() == "") { // BUG
		return nil
	}
	switch targetOf(a) {
	case target{"", "pods", ""}:
		tenant, err := p.tenantOf(ctx, a)
		if tenant == nil || err != nil {
			return err
		}
		if bug("state-in-plugin") {
			p.current = tenant
		}
		if bug("generate-name-refused") && !strings.HasPrefix(a.GetName(), tenant.prefix()) {
			return admission.NewForbidden(a, fmt.Errorf("the name must begin with %q", tenant.prefix())) // BUG: the name is not yet generated
		}
		return mutate(a, func(pod *corev1.Pod) error { return p.defaultPod(tenant, pod) })
	case target{"", "persistentvolumeclaims", ""}:
		tenant, err := p.tenantOf(ctx, a)
		if tenant == nil || err != nil {
			return err
		}
		return mutate(a, func(claim *corev1.PersistentVolumeClaim) error {
			setLabel(claim, tenant.Name)
			return nil
		})
	}
	return nil
}

func (p *Tenancy) defaultPod(tenant *Tenant, pod *corev1.Pod) error {
	setLabel(pod, tenant.Name)
	if bug("config-aliased") && pod.Spec.NodeSelector == nil && len(p.config.NodeSelector) > 0 {
		pod.Spec.NodeSelector = p.config.NodeSelector // BUG: the pod shares the map of the configuration
	}
	for _, selector := range []map[string]string{tenant.Spec.NodeSelector, p.config.NodeSelector} {
		for key, value := range selector {
			if _, ok := pod.Spec.NodeSelector[key]; ok && !bug("overwrites-user") { // BUG: silently overwrites
				continue // Validate refuses another value of the tenant
			}
			if pod.Spec.NodeSelector == nil {
				pod.Spec.NodeSelector = map[string]string{}
			}
			pod.Spec.NodeSelector[key] = value
		}
	}
	keys := make([]string, 0, len(tenant.Spec.Dedicated))
	for key := range tenant.Spec.Dedicated {
		keys = append(keys, key)
	}
	if !bug("map-order") { // BUG: the order of a map
		sort.Strings(keys)
	}
	for _, key := range keys {
		addToleration(pod, corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual, Value: tenant.Spec.Dedicated[key], Effect: corev1.TaintEffectNoSchedule})
	}
	for _, toleration := range p.config.Tolerations {
		addToleration(pod, toleration)
	}
	return nil
}

func addToleration(pod *corev1.Pod, toleration corev1.Toleration) {
	for i := range pod.Spec.Tolerations {
		if pod.Spec.Tolerations[i].MatchToleration(&toleration) && !bug("not-idempotent") { // BUG: appends again
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, *toleration.DeepCopy())
}

func setLabel(object metav1.Object, tenant string) {
	labels := object.GetLabels()
	if _, ok := labels[Label]; ok {
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[Label] = tenant
	object.SetLabels(labels)
}

// Validate enforces the rules of the tenant.
func (p *Tenancy) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if reason, exempt := p.exempt(a); exempt {
		key := exemptKey
		if bug("audit-key-unprefixed") {
			key = "exempt" // BUG: no domain
		}
		return p.annotate(a, key, reason)
	}
	switch t := targetOf(a); {
	case t.group == "" && t.resource == "pods":
		return p.validatePods(ctx, a)
	case t == target{"", "persistentvolumeclaims", ""}:
		return p.validateClaim(ctx, a)
	case t.group == "apps" && t.resource == "deployments":
		return p.validateDeployment(ctx, a)
	case t == target{"", "namespaces", ""}:
		return p.validateNamespace(ctx, a)
	case t == target{group.Group, "tenants", ""}:
		return p.validateTenant(ctx, a)
	}
	return nil
}

func (p *Tenancy) validatePods(ctx context.Context, a admission.Attributes) error {
	subresource, operation := a.GetSubresource(), a.GetOperation()
	switch {
	case operation == admission.Connect && (subresource == "exec" || subresource == "attach"):
		return p.validateExec(ctx, a)
	case operation == admission.Create && subresource == "eviction":
		return p.validateEviction(ctx, a)
	case operation == admission.Update && subresource == "ephemeralcontainers" && bug("ephemeral-ignored"):
		return nil // BUG
	case operation == admission.Update && subresource == "status" && bug("status-as-pod"): // BUG: status updates are checked
	case operation == admission.Update && (subresource == "" || subresource == "ephemeralcontainers"):
	case operation == admission.Create && subresource == "":
	case operation == admission.Update && subresource == "resize":
		return nil // resources only
	default:
		return nil
	}
	pod, err := decode[corev1.Pod](a.GetObject())
	if err != nil {
		if bug("type-fail-open") {
			return nil // BUG: other types are admitted
		}
		return err
	}
	var old *corev1.Pod
	if operation == admission.Update {
		if old, err = decode[corev1.Pod](a.GetOldObject()); err != nil {
			return err
		}
		if old.DeletionTimestamp != nil && !bug("deletion-refused") { // BUG: objects in deletion are checked
			return nil // finalizers must be removable
		}
	}
	tenant, err := p.tenantOf(ctx, a)
	if tenant == nil || err != nil {
		return err
	}
	if bug("state-in-plugin") && operation == admission.Create && p.current != nil {
		tenant = p.current // BUG: what Admit found, perhaps for another request
	}
	if err := p.validatePod(ctx, a, tenant, pod, old); err != nil {
		return err
	}
	if bug("event-on-dry-run") || bug("event-in-goroutine") && !a.IsDryRun() {
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "tenancy-", Namespace: a.GetNamespace()}, Reason: "Admitted", Type: "Normal", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: a.GetNamespace(), Name: a.GetName()}}
		record := func(ctx context.Context) {
			_, _ = p.client.CoreV1().Events(a.GetNamespace()).Create(ctx, event, metav1.CreateOptions{})
		}
		if bug("event-in-goroutine") {
			go record(context.WithoutCancel(ctx)) // BUG
		} else {
			record(ctx) // BUG: also in a dry run
		}
	}
	return p.annotate(a, tenantKey, tenant.Name)
}

func (t *Tenant) prefix() string {
	if t.Spec.NamePrefix == "" {
		return ""
	}
	if bug("name-prefix-separator") {
		return t.Spec.NamePrefix // BUG: no separator
	}
	return t.Spec.NamePrefix + "-"
}

func (p *Tenancy) validatePod(ctx context.Context, a admission.Attributes, tenant *Tenant, pod, old *corev1.Pod) error {
	var errs field.ErrorList
	if err := immutable(pod, old, tenant.Name); err != nil {
		errs = append(errs, err)
	}
	oldImages := map[string]bool{}
	if old != nil && !bug("no-ratcheting") { // BUG: refuses updates of older pods
		for _, c := range containers(&old.Spec) {
			oldImages[c.image] = true
		}
	}
	all, verdict := containers(&pod.Spec), true
	for _, c := range all {
		if oldImages[c.image] {
			continue
		}
		ok := tenant.allows(c.image)
		if bug("last-container-only") {
			verdict = ok // BUG: only the last container counts
		} else if !ok {
			verdict = false
			message := fmt.Sprintf("must be in one of the registries of tenant %s: %s", tenant.Name, strings.Join(tenant.Spec.Registries, ", "))
			errs = append(errs, field.Invalid(c.path.Child("image"), c.image, message))
		}
		p.warnDeprecated(ctx, c)
	}
	if bug("last-container-only") && !verdict {
		errs = append(errs, field.Invalid(all[len(all)-1].path.Child("image"), all[len(all)-1].image, "registry of another tenant"))
	}
	if old == nil {
		for key, value := range tenant.Spec.NodeSelector {
			if got := pod.Spec.NodeSelector[key]; got != value && !bug("node-selector-unchecked") { // BUG
				errs = append(errs, field.Invalid(field.NewPath("spec", "nodeSelector").Key(key), got, fmt.Sprintf("must be %q, the nodes of tenant %s", value, tenant.Name)))
			}
		}
		if !strings.HasPrefix(pod.Name, tenant.prefix()) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), pod.Name, fmt.Sprintf("must begin with %q", tenant.prefix())))
		}
	}
	if len(errs) > 0 {
		if bug("plain-error") {
			return errors.New("tenancy: invalid pod") // BUG: no Status, no fields
		}
		if bug("error-as-internal") {
			return apierrors.NewInternalError(errs.ToAggregate()) // BUG: a client's mistake as 500
		}
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), a.GetName(), errs)
	}
	oldPrivileged := map[string]bool{}
	if old != nil {
		for _, c := range containers(&old.Spec) {
			oldPrivileged[c.path.String()] = c.privileged()
		}
	}
	for _, c := range all {
		if bug("privileged-only-on-create") && old != nil {
			break // BUG: privileged ephemeral containers
		}
		if c.privileged() && !oldPrivileged[c.path.String()] {
			if err := p.authorize(ctx, a, "use", "privileged", tenant.Name); err != nil {
				return err
			}
			break
		}
	}
	if _, unmetered := pod.Labels[UnmeteredLabel]; unmetered {
		if old == nil || old.Labels[UnmeteredLabel] != pod.Labels[UnmeteredLabel] {
			return p.authorize(ctx, a, "unmeter", "", tenant.Name)
		}
		return nil
	}
	if old == nil && tenant.Spec.MaxPods != nil {
		used, err := p.usedPods(ctx, a.GetNamespace())
		if err != nil {
			return err
		}
		if used >= *tenant.Spec.MaxPods && !(bug("quota-off-by-one") && used == *tenant.Spec.MaxPods) { // BUG
			return admission.NewForbidden(a, fmt.Errorf("tenant %s may have %d pods in namespace %s, and has %d", tenant.Name, *tenant.Spec.MaxPods, a.GetNamespace(), used))
		}
	}
	return nil
}

func (p *Tenancy) warnDeprecated(ctx context.Context, c container) {
	for _, registry := range p.config.DeprecatedRegistries {
		if under(c.image, registry) {
			if bug("warning-lost") {
				ctx = context.Background() // BUG: the warning is lost
			}
			warning.AddWarning(ctx, "", fmt.Sprintf("%s: registry %s is deprecated", c.path.Child("image"), registry))
		}
	}
}

// immutable compares the label of an object with that of its old object or its tenant.
func immutable(object, old metav1.Object, tenant string) *field.Error {
	got, path := object.GetLabels()[Label], field.NewPath("metadata", "labels").Key(Label)
	if pod, ok := old.(*corev1.Pod); ok && pod == nil {
		old = nil
	}
	if claim, ok := old.(*corev1.PersistentVolumeClaim); ok && claim == nil {
		old = nil
	}
	if old == nil {
		if got != tenant {
			return field.Invalid(path, got, fmt.Sprintf("must be %q", tenant))
		}
		return nil
	}
	if before := old.GetLabels()[Label]; got != before && (before != "" || got != tenant) {
		if got == "" && bug("label-removable") {
			return nil // BUG: the label can be removed
		}
		return field.Invalid(path, got, fmt.Sprintf("is immutable, was %q", before))
	}
	return nil
}

type container struct {
	path    *field.Path
	image   string
	context *corev1.SecurityContext
}

func (c container) privileged() bool {
	if bug("nil-privileged") && c.context != nil {
		return *c.context.Privileged // BUG: panics for nil
	}
	return c.context != nil && c.context.Privileged != nil && *c.context.Privileged
}

// containers returns all containers of a pod.
func containers(spec *corev1.PodSpec) (all []container) {
	path := field.NewPath("spec")
	for i, c := range spec.InitContainers {
		if bug("no-init-containers") {
			break // BUG
		}
		all = append(all, container{path.Child("initContainers").Index(i), c.Image, c.SecurityContext})
	}
	for i, c := range spec.Containers {
		all = append(all, container{path.Child("containers").Index(i), c.Image, c.SecurityContext})
	}
	for i, c := range spec.EphemeralContainers {
		all = append(all, container{path.Child("ephemeralContainers").Index(i), c.Image, c.SecurityContext})
	}
	return all
}

func under(image, registry string) bool {
	if bug("registry-no-separator") {
		return strings.HasPrefix(image, registry) // BUG: registry.example.com.evil.org
	}
	return strings.HasPrefix(image, registry+"/")
}

// allows reports whether an image is from a registry of the tenant. Without registries all are.
func (t *Tenant) allows(image string) bool {
	if len(t.Spec.Registries) == 0 {
		return true
	}
	for _, registry := range t.Spec.Registries {
		if under(image, registry) {
			return true
		}
		if bug("first-registry-only") {
			return false // BUG
		}
	}
	return false
}

// authorize asks whether the user may do this with a tenant.
func (p *Tenancy) authorize(ctx context.Context, a admission.Attributes, verb, subresource, tenant string) error {
	attributes := authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verb, APIGroup: group.Group, APIVersion: group.Version,
		Resource: tenantsResource.Resource, Subresource: subresource, Name: tenant, ResourceRequest: true,
	}
	switch {
	case bug("authorize-without-name"):
		attributes.Name = "" // BUG: any tenant
	case bug("authorize-without-subresource"):
		attributes.Subresource = "" // BUG
	case bug("authorize-as-plugin"):
		attributes.User = &user.DefaultInfo{Name: "system:apiserver", Groups: []string{"system:masters"}} // BUG: not the user
	}
	decision, reason, err := p.authorizer.Authorize(ctx, attributes)
	switch {
	case bug("authorize-noopinion") && err == nil && decision != authorizer.DecisionDeny:
		return nil // BUG: refuses only DecisionDeny
	case bug("authorize-error-open") && err != nil:
		return nil // BUG: fails open
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return admission.NewForbidden(a, fmt.Errorf("cannot authorize: %w", err))
	}
	what := tenantsResource.Resource
	if subresource != "" {
		what += "/" + subresource
	}
	message := fmt.Sprintf("user %q may not %s %s %q", a.GetUserInfo().GetName(), verb, what, tenant)
	if reason != "" {
		message += ": " + reason
	}
	return admission.NewForbidden(a, errors.New(message))
}

func (p *Tenancy) annotate(a admission.Attributes, key, value string) error {
	if err := a.AddAnnotation(key, value); err != nil {
		return apierrors.NewInternalError(err)
	}
	return nil
}

func (p *Tenancy) validateExec(ctx context.Context, a admission.Attributes) error {
	tenant, err := p.tenantOf(ctx, a)
	if tenant == nil || err != nil {
		return err
	}
	if slices.Contains(tenant.Spec.Owners, a.GetUserInfo().GetName()) {
		return nil
	}
	granted, err := p.granted(ctx, a, a.GetSubresource())
	if err != nil {
		return err
	}
	if !granted {
		return admission.NewForbidden(a, fmt.Errorf("user %q has no valid grant to %s in namespace %s", a.GetUserInfo().GetName(), a.GetSubresource(), a.GetNamespace()))
	}
	return nil
}

func (p *Tenancy) validateEviction(ctx context.Context, a admission.Attributes) error {
	tenant, err := p.tenantOf(ctx, a)
	if tenant == nil || err != nil {
		return err
	}
	name := a.GetName()
	if bug("eviction-name-from-object") {
		eviction, err := decode[policyv1.Eviction](a.GetObject()) // BUG: the name in the body
		if err != nil {
			return err
		}
		name = eviction.Name
	}
	if bug("eviction-wrong-type") {
		if _, err := decode[corev1.Pod](a.GetObject()); err != nil {
			return err // BUG: the body is an Eviction
		}
	}
	pod, err := p.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return err
	case err != nil:
		if bug("eviction-error-swallowed") {
			return nil // BUG: fails open
		}
		return apierrors.NewInternalError(err)
	}
	if pod.Annotations[ProtectedAnnotation] == "true" && !slices.Contains(tenant.Spec.Owners, a.GetUserInfo().GetName()) {
		return admission.NewForbidden(a, fmt.Errorf("the pod is protected: only owners of tenant %s may evict it", tenant.Name))
	}
	return nil
}

func (p *Tenancy) validateClaim(ctx context.Context, a admission.Attributes) error {
	if a.GetOperation() != admission.Create && a.GetOperation() != admission.Update {
		return nil
	}
	claim, err := decode[corev1.PersistentVolumeClaim](a.GetObject())
	if err != nil {
		return err
	}
	var old *corev1.PersistentVolumeClaim
	if a.GetOperation() == admission.Update {
		if old, err = decode[corev1.PersistentVolumeClaim](a.GetOldObject()); err != nil {
			return err
		}
		if old.DeletionTimestamp != nil {
			return nil
		}
	}
	tenant, err := p.tenantOf(ctx, a)
	if tenant == nil || err != nil {
		return err
	}
	if bug("nil-storage-class") && *claim.Spec.StorageClassName == "" { // BUG: panics for nil
		return admission.NewForbidden(a, errors.New("storage class required"))
	}
	if err := immutable(claim, old, tenant.Name); err != nil {
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim").GroupKind(), a.GetName(), field.ErrorList{err})
	}
	if tenant.Spec.MaxStorage == nil {
		return nil
	}
	request := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if old != nil && request.Cmp(old.Spec.Resources.Requests[corev1.ResourceStorage]) <= 0 {
		return nil // no growth
	}
	used, err := p.usedStorage(ctx, a.GetNamespace(), a.GetName())
	if err != nil {
		return err
	}
	total := used.DeepCopy()
	total.Add(request)
	if bug("pvc-off-by-one") && total.Cmp(*tenant.Spec.MaxStorage) >= 0 || total.Cmp(*tenant.Spec.MaxStorage) > 0 { // BUG
		return admission.NewForbidden(a, fmt.Errorf("tenant %s may use %s of storage in namespace %s, uses %s, and requests %s", tenant.Name, tenant.Spec.MaxStorage, a.GetNamespace(), used.String(), request.String()))
	}
	return nil
}

func (p *Tenancy) validateDeployment(ctx context.Context, a admission.Attributes) error {
	if a.GetOperation() != admission.Create && a.GetOperation() != admission.Update {
		return nil
	}
	var replicas, before int32
	path := field.NewPath("spec", "replicas")
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()
	switch a.GetSubresource() {
	case "":
		deployment, err := decode[appsv1.Deployment](a.GetObject())
		if err != nil {
			return err
		}
		replicas = replicasOf(deployment)
		if a.GetOperation() == admission.Update {
			old, err := decode[appsv1.Deployment](a.GetOldObject())
			if err != nil {
				return err
			}
			if old.DeletionTimestamp != nil {
				return nil
			}
			before = replicasOf(old)
		}
	case "scale":
		if bug("scale-ignored") {
			return nil // BUG
		}
		if bug("scale-wrong-type") {
			replicas = replicasOf(a.GetObject().(*appsv1.Deployment)) // BUG: the object is a Scale
			break
		}
		scale, err := decode[autoscalingv1.Scale](a.GetObject())
		if err != nil {
			return err
		}
		old, err := decode[autoscalingv1.Scale](a.GetOldObject())
		if err != nil {
			return err
		}
		replicas, before = scale.Spec.Replicas, old.Spec.Replicas
		kind = autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind()
	default:
		return nil
	}
	if replicas <= before && a.GetOperation() == admission.Update && !bug("deployment-no-ratcheting") { // BUG
		return nil // not more than before
	}
	tenant, err := p.tenantOf(ctx, a)
	if tenant == nil || err != nil {
		return err
	}
	limit := defaultMaxReplicas
	switch {
	case tenant.Spec.MaxReplicas != nil:
		limit = *tenant.Spec.MaxReplicas
	case p.config.MaxReplicas != nil:
		limit = *p.config.MaxReplicas
	}
	if replicas > limit {
		return apierrors.NewInvalid(kind, a.GetName(), field.ErrorList{field.Invalid(path, replicas, fmt.Sprintf("tenant %s may have at most %d", tenant.Name, limit))})
	}
	return nil
}

func replicasOf(deployment *appsv1.Deployment) int32 {
	if bug("nil-replicas") {
		return *deployment.Spec.Replicas // BUG: panics for nil
	}
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}

func (p *Tenancy) validateNamespace(ctx context.Context, a admission.Attributes) error {
	if a.GetOperation() == admission.Delete {
		object := a.GetOldObject()
		if bug("delete-reads-object") {
			object = a.GetObject() // BUG: nil on delete
		}
		old, err := meta.Accessor(object)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if old.GetAnnotations()[ProtectedAnnotation] == "true" {
			return admission.NewForbidden(a, fmt.Errorf("the namespace is protected: first remove the annotation %s", ProtectedAnnotation))
		}
		return nil
	}
	namespace, err := decode[corev1.Namespace](a.GetObject())
	if err != nil {
		return err
	}
	before := ""
	if a.GetOperation() == admission.Update {
		old, err := decode[corev1.Namespace](a.GetOldObject())
		if err != nil {
			return err
		}
		if old.DeletionTimestamp != nil {
			return nil
		}
		before = old.Labels[Label]
	}
	name := namespace.Labels[Label]
	if name == before {
		return nil
	}
	if before != "" {
		if err := p.authorize(ctx, a, "release", "", before); err != nil {
			return err
		}
	}
	if name == "" {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	if _, err := p.tenant(ctx, name); apierrors.IsNotFound(err) {
		return admission.NewForbidden(a, fmt.Errorf("tenant %q does not exist", name))
	} else if err != nil {
		return err
	}
	return p.authorize(ctx, a, "use", "", name)
}

func (p *Tenancy) validateTenant(ctx context.Context, a admission.Attributes) error {
	if a.GetOperation() == admission.Delete {
		return p.validateTenantDeletion(ctx, a)
	}
	tenant, err := decodeTenant(a.GetObject())
	if err != nil {
		return err
	}
	path := field.NewPath("spec")
	errs := tenant.Spec.validate(path)
	if a.GetOperation() == admission.Update {
		old, err := decodeTenant(a.GetOldObject())
		if err != nil {
			return err
		}
		if accessor, err := meta.Accessor(a.GetOldObject()); err == nil && accessor.GetDeletionTimestamp() != nil && !bug("tenant-deletion-refused") { // BUG
			return nil
		}
		before := old.Spec.validate(path)
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
			return slices.ContainsFunc(before, func(b *field.Error) bool { return b.Error() == e.Error() })
		})
		if old.Spec.ID != tenant.Spec.ID && old.Spec.ID != "" && !bug("id-mutable") { // BUG
			errs = append(errs, field.Invalid(path.Child("id"), tenant.Spec.ID, fmt.Sprintf("is immutable, was %q", old.Spec.ID)))
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: group.Group, Kind: "Tenant"}, a.GetName(), errs)
	}
	return nil
}

func (p *Tenancy) validateTenantDeletion(ctx context.Context, a admission.Attributes) error {
	old, err := meta.Accessor(a.GetOldObject())
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	name := old.GetName() // a deletecollection has no name
	if bug("deletecollection") {
		if name = a.GetName(); name == "" {
			return nil // BUG
		}
	}
	namespaces, err := p.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: labels.Set{Label: name}.String()})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list namespaces of tenant %s: %w", name, err))
	}
	for _, namespace := range namespaces.Items {
		if namespace.DeletionTimestamp == nil {
			return admission.NewForbidden(a, fmt.Errorf("namespace %s belongs to the tenant", namespace.Name))
		}
	}
	return nil
}

// decode returns the object of a request in its Go type. API servers without the type give an
// unstructured object.
func decode[T any](object runtime.Object) (*T, error) {
	if typed, ok := any(object).(*T); ok && typed != nil {
		return typed, nil
	}
	into := new(T)
	raw, ok := object.(*unstructured.Unstructured)
	if !ok || bug("type-fail-open") {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected %T, got %T", into, object))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, into); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return into, nil
}

// mutate lets a function change the object of a request.
func mutate[T any](a admission.Attributes, change func(*T) error) error {
	object, err := decode[T](a.GetObject())
	if err != nil {
		return err
	}
	if err := change(object); err != nil {
		return err
	}
	if raw, ok := a.GetObject().(*unstructured.Unstructured); ok {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		raw.SetUnstructuredContent(content)
	}
	return nil
}
