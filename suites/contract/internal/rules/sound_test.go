package rules_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// sound is a plugin that follows every rule, and does something for each rule to check. It
// labels pods with the team of their namespace, adds tolerations, and refuses pods that
// their team may not create.
type sound struct {
	*admission.Handler
	config soundConfig

	client     kubernetes.Interface
	namespaces corelisters.NamespaceLister
	configMaps corelisters.ConfigMapLister
	synced     []cache.InformerSynced
	authorizer authorizer.Authorizer
	mapper     meta.RESTMapper
	inspected  bool
	strict     bool
	stop       <-chan struct{}
	now        func() time.Time
	// admitted counts pods, namespaceCount namespaces.
	admitted, namespaceCount atomic.Int64
}

type soundConfig struct {
	// Team is the team of namespaces without one.
	Team string `json:"team"`
	// Tolerations has keys that every pod tolerates.
	Tolerations []string `json:"tolerations"`
}

const (
	teamLabel     = "team"
	teamDefault   = "sound.example.com/default"
	soundGate     = featuregate.Feature("OpenAPIEnums") // any gate of each supported k8s.io/apiserver
	soundPrefix   = "sound.example.com/"
	syncWait      = 5 * time.Second
	syncPoll      = 20 * time.Millisecond
	forbiddenMark = "forbidden"
	protectedMark = "protected"
	singleMark    = "single"
	blocked       = "/bin/blocked"
	scheduler     = corev1.DefaultSchedulerName
)

var (
	_ admission.MutationInterface       = &sound{}
	_ admission.ValidationInterface     = &sound{}
	_ admission.InitializationValidator = &sound{}
)

// newSound is the factory of sound.
func newSound(config io.Reader) (*sound, error) {
	p := &sound{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), config: soundConfig{Team: "none"}, now: time.Now}
	if config == nil {
		return p, nil
	}
	data, err := io.ReadAll(config)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) == 0 {
		return p, nil
	}
	if err := yaml.UnmarshalStrict(data, &p.config); err != nil {
		return nil, fmt.Errorf("parse configuration: %w", err)
	}
	if p.config.Team == "" {
		return nil, fmt.Errorf("parse configuration: team is empty")
	}
	return p, nil
}

func (p *sound) SetDrainedNotification(stop <-chan struct{}) { p.stop = stop }

func (p *sound) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.inspected, p.strict = true, gates.Enabled(soundGate)
}

func (p *sound) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

func (p *sound) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	namespaces, configMaps := factory.Core().V1().Namespaces(), factory.Core().V1().ConfigMaps()
	p.namespaces, p.configMaps = namespaces.Lister(), configMaps.Lister()
	// An error means that the informer was stopped.
	_, _ = namespaces.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { p.namespaceCount.Add(1) },
		DeleteFunc: func(any) { p.namespaceCount.Add(-1) },
	})
	p.synced = []cache.InformerSynced{namespaces.Informer().HasSynced, configMaps.Informer().HasSynced}
}

func (p *sound) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

func (p *sound) SetRESTMapper(mapper meta.RESTMapper) { p.mapper = mapper }

func (p *sound) ValidateInitialization() error {
	switch {
	case p.stop == nil:
		return fmt.Errorf("missing drained notification")
	case !p.inspected:
		return fmt.Errorf("missing feature gates")
	case p.client == nil:
		return fmt.Errorf("missing client")
	case p.namespaces == nil:
		return fmt.Errorf("missing informers")
	case p.authorizer == nil:
		return fmt.Errorf("missing authorizer")
	case p.mapper == nil:
		return fmt.Errorf("missing RESTMapper")
	}
	return nil
}

// ready waits until the caches have synced or the request ends.
func (p *sound) ready(ctx context.Context) error {
	allSynced := func(context.Context) (bool, error) {
		for _, synced := range p.synced {
			if !synced() {
				return false, nil
			}
		}
		return true, nil
	}
	return wait.PollUntilContextTimeout(ctx, syncPoll, syncWait, true, allSynced)
}

// pod returns the pod of a request. It returns false if the request is for another resource or
// has another object.
func (p *sound) pod(a admission.Attributes, object runtime.Object) (*corev1.Pod, bool, error) {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil, false, nil
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, false, apierrors.NewBadRequest(fmt.Sprintf("got %T, want a pod", object))
	}
	return pod, true, nil
}

func (p *sound) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if op := a.GetOperation(); op != admission.Create && op != admission.Update {
		return nil
	}
	pod, ours, err := p.pod(a, a.GetObject())
	if !ours {
		return err
	}
	if err := p.ready(ctx); err != nil {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	if a.GetOperation() == admission.Update {
		return p.admitUpdate(a, pod)
	}
	team, err := p.team(ctx, a)
	if err != nil {
		return err
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Labels[teamLabel] == "" {
		pod.Labels[teamLabel] = team
	}
	for _, key := range p.config.Tolerations {
		wanted := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
		if !slices.Contains(pod.Spec.Tolerations, wanted) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, wanted)
		}
	}
	p.admitted.Add(1)
	return a.AddAnnotation(soundPrefix+"team", team)
}

// admitUpdate copies the priority of the old pod if the update omits it.
func (p *sound) admitUpdate(a admission.Attributes, pod *corev1.Pod) error {
	old, ok := a.GetOldObject().(*corev1.Pod)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("got %T, want a pod", a.GetOldObject()))
	}
	if pod.Spec.Priority == nil && old.Spec.Priority != nil {
		priority := *old.Spec.Priority
		pod.Spec.Priority = &priority
	}
	return nil
}

// team returns the team of the namespace, from the cache or from the API server.
func (p *sound) team(ctx context.Context, a admission.Attributes) (string, error) {
	namespace, err := p.namespaces.Get(a.GetNamespace())
	if apierrors.IsNotFound(err) {
		namespace, err = p.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", admission.NewForbidden(a, fmt.Errorf("namespace %q does not exist", a.GetNamespace()))
	case err != nil:
		return "", apierrors.NewInternalError(err)
	}
	if team := namespace.Annotations[teamLabel]; team != "" {
		return team, nil
	}
	defaults, err := p.configMaps.ConfigMaps(a.GetNamespace()).List(labels.SelectorFromSet(labels.Set{teamDefault: "true"}))
	if err != nil {
		return "", apierrors.NewInternalError(err)
	}
	team, first := p.config.Team, ""
	for _, each := range p.current(defaults) {
		if first == "" || each.Name < first {
			first, team = each.Name, each.Data[teamLabel]
		}
	}
	return team, nil
}

// current returns the defaults that have not expired.
func (p *sound) current(defaults []*corev1.ConfigMap) []*corev1.ConfigMap {
	return slices.DeleteFunc(defaults, func(each *corev1.ConfigMap) bool {
		expires, err := time.Parse(time.RFC3339, each.Data["expires"])
		return err == nil && p.now().After(expires)
	})
}

// note creates a ConfigMap for each team with pods, except in a dry run.
func (p *sound) note(ctx context.Context, a admission.Attributes, team string) error {
	name := "team-" + team
	if a.IsDryRun() {
		return nil
	}
	if _, err := p.configMaps.ConfigMaps(a.GetNamespace()).Get(name); err == nil {
		return nil
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: a.GetNamespace()}}
	_, err := p.client.CoreV1().ConfigMaps(a.GetNamespace()).Create(ctx, note, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return apierrors.NewInternalError(err)
	}
	return nil
}

func (p *sound) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object, mark := a.GetObject(), forbiddenMark
	switch a.GetOperation() {
	case admission.Create, admission.Update:
	case admission.Delete:
		object, mark = a.GetOldObject(), protectedMark
		if object == nil {
			return nil // the request does not have the deleted object
		}
	default:
		return nil
	}
	if a.GetResource().GroupResource() == corev1.Resource("pods") && a.GetSubresource() == "ephemeralcontainers" {
		return refuseBlocked(a)
	}
	pod, ours, err := p.pod(a, object)
	if !ours {
		return err
	}
	if a.GetOperation() == admission.Update && pod.DeletionTimestamp != nil {
		return nil
	}
	if err := refuseBlocked(a); err != nil {
		return err
	}
	if old, update := a.GetOldObject().(*corev1.Pod); pod.Labels[mark] == "true" && (!update || a.GetOperation() != admission.Update || old.Labels[mark] != "true") {
		return admission.NewForbidden(a, fmt.Errorf("the pod is %s", mark))
	}
	if name := pod.Spec.SchedulerName; a.GetOperation() == admission.Create && name != "" && name != scheduler {
		return admission.NewForbidden(a, fmt.Errorf("no scheduler %s", name))
	}
	if p.strict && len(pod.Spec.Containers) == 0 {
		return admission.NewForbidden(a, fmt.Errorf("the pod has no containers"))
	}
	if a.GetOperation() == admission.Delete || a.GetUserInfo() == nil {
		return nil
	}
	if err := p.mayLabel(ctx, a); err != nil || a.GetOperation() != admission.Create {
		return err
	}
	if err := p.knowsOwners(a, pod); err != nil {
		return err
	}
	if err := p.isSingle(ctx, a, pod); err != nil {
		return err
	}
	if err := p.authorize(ctx, a, pod.Labels[teamLabel]); err != nil {
		return err
	}
	return p.note(ctx, a, pod.Labels[teamLabel])
}

// knowsOwners returns an error if an owner of the pod is of an unknown kind.
func (p *sound) knowsOwners(a admission.Attributes, pod *corev1.Pod) error {
	for _, owner := range pod.OwnerReferences {
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		_, err := p.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err):
			return admission.NewForbidden(a, fmt.Errorf("owner %s is of unknown kind %s", owner.Name, kind))
		case err != nil:
			return apierrors.NewInternalError(err)
		}
	}
	return nil
}

// isSingle returns an error if a namespace would have two pods with the label single.
func (p *sound) isSingle(ctx context.Context, a admission.Attributes, pod *corev1.Pod) error {
	if pod.Labels[singleMark] == "" {
		return nil
	}
	others, err := p.client.CoreV1().Pods(a.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: singleMark})
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case len(others.Items) > 0:
		return admission.NewForbidden(a, fmt.Errorf("namespace %q has a single pod already", a.GetNamespace()))
	}
	return nil
}

// authorize returns an error if the user may not use a team.
func (p *sound) authorize(ctx context.Context, a admission.Attributes, team string) error {
	return p.ask(ctx, a, authorizer.AttributesRecord{Verb: "use", APIGroup: "sound.example.com", Resource: "teams", Name: team})
}

// mayLabel returns an error if the user may not label the pod.
func (p *sound) mayLabel(ctx context.Context, a admission.Attributes) error {
	return p.ask(ctx, a, authorizer.AttributesRecord{Verb: "label", Resource: "pods", Namespace: a.GetNamespace(), Name: a.GetName()})
}

func (p *sound) ask(ctx context.Context, a admission.Attributes, question authorizer.AttributesRecord) error {
	question.User, question.ResourceRequest = a.GetUserInfo(), true
	decision, _, err := p.authorizer.Authorize(ctx, question)
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case decision != authorizer.DecisionAllow:
		return admission.NewForbidden(a, fmt.Errorf("user %q may not %s %s %q", a.GetUserInfo().GetName(), question.Verb, question.Resource, question.Name))
	}
	return nil
}

// refuseBlocked returns an error if a container of the pod has a blocked command that it did not have before.
func refuseBlocked(a admission.Attributes) error {
	if hasBlocked(a.GetObject()) && !hasBlocked(a.GetOldObject()) {
		return admission.NewForbidden(a, fmt.Errorf("command %s is blocked", blocked))
	}
	return nil
}

func hasBlocked(object runtime.Object) bool {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return false
	}
	var commands []string
	for _, each := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		commands = append(commands, each.Command...)
	}
	for _, each := range pod.Spec.EphemeralContainers {
		commands = append(commands, each.Command...)
	}
	return slices.Contains(commands, blocked)
}

// soundSubject returns the Subject of sound, or of a plugin that embeds it.
func soundSubject(build func(io.Reader) (admission.Interface, error)) check.Subject {
	priority := int32(7)
	pod := func(edit func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "subject", Namespace: "default"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
		}
		edit(pod)
		return pod
	}
	plain := pod(func(*corev1.Pod) {})
	stored := pod(func(p *corev1.Pod) { p.Spec.Priority, p.Labels = &priority, map[string]string{teamLabel: "blue"} })
	return check.Subject{
		Name:   "sound",
		Source: harness.FromRegister("Sound", func(plugins *admission.Plugins) { plugins.Register("Sound", build) }),
		World: []fakes.Option{fakes.WithObjects(
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "red", Annotations: map[string]string{teamLabel: "red"}}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", Labels: map[string]string{teamDefault: "true"}}, Data: map[string]string{teamLabel: "blue", "expires": "2999-01-01T00:00:00Z"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default", Labels: map[string]string{teamDefault: "true"}}, Data: map[string]string{teamLabel: "green"}},
		)},
		Inject: func(*fakes.World) []fakes.Injector {
			return []fakes.Injector{fakes.InjectAuthorizer(fakes.Allow().Unless("mallory", "use", "teams"))}
		},
		Config:           "team: none\ntolerations: [spot, arm]\n",
		Configs:          check.Configs{Valid: []string{"team: blue\n"}, Invalid: []string{"team: ''\n"}},
		AnnotationPrefix: soundPrefix,
		Subresources:     []string{"ephemeralcontainers"},
		Allow: []framework.Request{
			framework.Create(plain),
			framework.Create(pod(func(p *corev1.Pod) { p.Namespace, p.Spec.SchedulerName = "red", scheduler })),
			framework.UpdateWith(stored, func(p *corev1.Pod) { p.Spec.Priority, p.Annotations = nil, map[string]string{"a": "b"} }),
			framework.Delete(stored),
			framework.Create(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: stored.Name, Namespace: stored.Namespace}}).WithSubresource("eviction", stored),
			framework.Create(pod(func(p *corev1.Pod) { p.Labels = map[string]string{singleMark: "true"} })),
		},
		Reject: []framework.Request{
			framework.Create(pod(func(p *corev1.Pod) { p.Labels = map[string]string{forbiddenMark: "true"} })),
			framework.Create(pod(func(p *corev1.Pod) { p.Namespace = "absent" })),
			framework.Create(plain).As("mallory"),
			framework.Delete(pod(func(p *corev1.Pod) { p.Labels = map[string]string{protectedMark: "true"} })),
			framework.Create(pod(func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{blocked} })),
			framework.Create(pod(func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Unknown", Name: "owner", UID: "1"}}
			})),
		},
	}
}
