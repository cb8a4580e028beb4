package rules_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// TestOtherBrokenPlugins: plugins that break a rule in another way than the plugins of the kill
// matrix.
func TestOtherBrokenPlugins(t *testing.T) {
	built := func(build func(*sound) admission.Interface) mutant { return mutant{build: build} }
	for name, test := range map[string]struct {
		id     string
		broken mutant
		says   string
	}{
		"allows until it is ready":      {"R1", built(inAdmit(yielding)), "while no cache had synced"},
		"calls outlive the request":     {"X1", built(inAdmit(outliving)), "was canceled while the call"},
		"panics without a client":       {"I1", built(func(p *sound) admission.Interface { return &assuming{p} }), "panicked"},
		"error without text":            {"I1", built(func(p *sound) admission.Interface { return &speechless{p} }), "is empty"},
		"has no ValidateInitialization": {"I1", unvalidatedMutant(), "has no ValidateInitialization"},
		"can be validated once":         {"I2", built(func(p *sound) admission.Interface { return &once{sound: p} }), "when called again"},
		"panics without configuration":  {"K1", mutant{factory: func(config io.Reader) (admission.Interface, error) { _, _ = config.Read(nil); return newSound(config) }}, "panicked"},
		"reads forever":                 {"K1", bare(reading), "did not return"},
		"ignores that it cannot read":   {"K1", bare(deaf), "a reader that fails"},
		"refuses what is valid":         {"K1", mutant{build: same, subject: func(s *check.Subject) { s.Configs.Valid = []string{"team: ''\n"} }}, "want a plugin"},
		"accepts what is invalid":       {"K1", mutant{build: same, subject: func(s *check.Subject) { s.Configs.Invalid = []string{"team: x\n"} }}, "the invalid configuration"},
		"needs no configuration":        {"K1", mutant{build: same, subject: func(s *check.Subject) { s.Configs.Required = true }}, "no configuration"},
		"refuses with an aggregate": {"E1", refuses(func(a admission.Attributes, reason string) error {
			return utilerrors.NewAggregate([]error{admission.NewForbidden(a, errors.New(reason))})
		}), "aggregate"},
		"wraps a refusal": {"E1", refuses(func(a admission.Attributes, reason string) error {
			return fmt.Errorf("wrapped: %w", admission.NewForbidden(a, errors.New(reason)))
		}), "wrapError"},
		"refuses with a code that is no failure": {"E1", refuses(func(_ admission.Attributes, reason string) error {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusFound, Message: reason}}
		}), "code 302"},
		"refuses with 500 and no reason": {"E1", refuses(func(_ admission.Attributes, reason string) error {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: reason}}
		}), "code 500"},
		// It reads the namespace, and then uses an empty one.
		"does not use what it reads": {"R3", built(reads(func(namespace *corev1.Namespace, name string, err error) (*corev1.Namespace, error) {
			if err == nil {
				namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			}
			return namespace, err
		})), "it uses the object that it reads"},
		"does not check collections":     {"Y2", built(inValidate(bypassed)), "want what the delete of the object alone gets"},
		"does not check init containers": {"S8", built(inValidate(omitsInit)), "as init containers"},
		"writes before it checks": {"E4", built(func(p *sound) admission.Interface {
			return &validating{p, func(p *sound, a admission.Attributes) {
				if created(a) != nil {
					_ = p.note(context.Background(), a, "early")
				}
			}}
		}), "team-early"},
		"says that nothing was found": {"F4", built(reads(func(namespace *corev1.Namespace, _ string, err error) (*corev1.Namespace, error) {
			if apierrors.IsInternalError(err) {
				return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), "")
			}
			return namespace, err
		})), "refused with 403"},
		"takes the first of an index": {"T2", built(func(p *sound) admission.Interface { return &firstOfIndex{sound: p} }), "with lists in a different order"},
		"replaces a list":             {"A5", built(func(p *sound) admission.Interface { return after{p, replacesSecrets} }), "spec.imagePullSecrets[0]"},
		"replaces a map":              {"A5", built(func(p *sound) admission.Interface { return after{p, replacesSelector} }), "spec.nodeSelector[" + check.ForeignMark + "]"},
		"enforces another field": {"A5", mutant{build: inAdmit(overwrites), subject: func(s *check.Subject) {
			s.Enforced = []string{"metadata.labels[other]", "metadata.annotations", "spec.tolerations[]"}
		}}, "metadata.labels"},
		"ignores 500 of a kind that is not served": {"F2", built(inValidate(optional)), `widgets default/" failed with 500`},
		"factory starts a goroutine":               {"K3", mutant{factory: beginning}, "started goroutines"},
		"waits for foreign caches":                 {"K3", sociable(), "waits for the caches of another plugin"},
		"writes after a dry run":                   {"D1", built(inValidate(belated)), "the plugin wrote"},
		"takes a right from elsewhere":             {"S7", built(inAdmit(borrows)), "moved to other namespaces"},
		"knows only the last of a list":            {"T2", built(inValidate(knowsLast)), "with lists in a different order"},
		"configuration in a package variable":      {"K3", latestConfig(), "with other configurations"},
		"remembers namespaces in a variable":       {"K3", remembersNamespaces(), "after a plugin in an empty World got it"},
		"writes in the background":                 {"E4", built(inValidate(writesLate)), "after the plugin had refused requests"},
		"ignores a selector":                       {"W1", disrupting(ignoresSelector), "whose selector matches nothing"},
		"reads before it is ready":                 {"R1", built(inAdmit(readsEarly)), "after waiting for the caches"},
		"adds handlers later":                      {"L2", built(func(p *sound) admission.Interface { return &hesitating{p} }), "panicked on deletions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes, misuse := checkRules(test.broken.of(), test.id)
			if len(misuse) > 0 && test.id != "K1" {
				t.Fatal(misuse)
			}
			got := outcomes[0]
			if got.Verdict != framework.Fail || !strings.Contains(got.Reason, test.says) {
				t.Errorf("%s, want fail and %q in:\n%s", got.Verdict, test.says, got.Reason)
			}
		})
	}
}

// optional refuses if the API server does not serve widgets, and ignores every other error.
func optional(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.client.Discovery().RESTClient().Get().AbsPath("/apis/example.com/v1/namespaces/default/widgets").Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return admission.NewForbidden(a, errors.New("there are no widgets"))
	}
	return p.Validate(ctx, a, o)
}

// belated writes in the background, also for dry runs.
func belated(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if created(a) != nil {
		time.AfterFunc(20*time.Millisecond, func() { _ = p.note(context.WithoutCancel(ctx), notDry{a}, "late") })
	}
	return p.Validate(ctx, a, o)
}

// restless writes in the background, without a request, again and again for some seconds.
type restless struct{ *sound }

func (p restless) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.sound.SetExternalKubeClientSet(client)
	heartbeat := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "heartbeat-"}}
	var write func(left int)
	write = func(left int) {
		_, _ = client.CoreV1().ConfigMaps("default").Create(context.Background(), heartbeat, metav1.CreateOptions{})
		if left > 0 {
			time.AfterFunc(50*time.Millisecond, func() { write(left - 1) })
		}
	}
	time.AfterFunc(50*time.Millisecond, func() { write(100) })
}

// TestWritesWithoutRequest: what a plugin writes in the background is not known to be of a dry run.
func TestWritesWithoutRequest(t *testing.T) {
	background := mutant{build: func(p *sound) admission.Interface { return restless{p} }}
	outcomes, _ := checkRules(background.of(), "D1")
	if got := outcomes[0]; got.Verdict != framework.Inconclusive || !strings.Contains(got.Reason, "without a request too") {
		t.Errorf("got %s: %s", got.Verdict, got.Reason)
	}
}

// hesitating adds the handler of asserting, its only one, in the background and after some time.
type hesitating struct{ *sound }

func (p *hesitating) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	namespaces, configMaps := factory.Core().V1().Namespaces(), factory.Core().V1().ConfigMaps()
	p.namespaces, p.configMaps = namespaces.Lister(), configMaps.Lister()
	informer := namespaces.Informer()
	p.synced = []cache.InformerSynced{informer.HasSynced, configMaps.Informer().HasSynced}
	go func() {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // it waits for nothing: it is slow
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) { _ = object.(*corev1.Namespace).Name }})
	}()
}

// ownPodsOnly does not look at the subresources of pods that it has not admitted.
func ownPodsOnly(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if old, ok := a.GetOldObject().(*corev1.Pod); ok && a.GetSubresource() != "" && old.Labels[teamLabel] == "" {
		return nil
	}
	return p.Validate(ctx, a, o)
}

// labelsAny labels objects of each type, also in an update.
type labelsAny struct{ *sound }

func (labelsAny) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if object, err := meta.Accessor(a.GetObject()); err == nil {
		object.SetLabels(withKey(object.GetLabels(), teamLabel, "blue"))
	}
	return nil
}

func (labelsAny) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return nil
}

// TestOtherSoundPlugins: what must not be reported.
func TestOtherSoundPlugins(t *testing.T) {
	for name, test := range map[string]struct {
		id    string
		sound mutant
	}{
		// A project has one list of injectors for all its plugins.
		"does not want all injectors": {"I4", mutant{build: same, subject: func(s *check.Subject) {
			inject := s.Inject
			s.Inject = func(w *fakes.World) []fakes.Injector {
				return append(inject(w), fakes.Inject("WantsNothing", func(interface{ SetNothing() }) {}))
			}
		}}},
		"fails with an InternalError": {"E1", refuses(func(_ admission.Attributes, reason string) error {
			return apierrors.NewInternalError(errors.New(reason))
		})},
		"decides about names": {"S5", mutant{build: inValidate(onlySubject)}},
		"labels with the name": {"S5", mutant{build: func(p *sound) admission.Interface {
			return after{p, func(pod *corev1.Pod) { pod.Labels = withKey(pod.Labels, "name", pod.Name) }}
		}}},
		"needs one container of many": {"S8", mutant{build: inValidate(needsImage), subject: func(s *check.Subject) {
			other := s.Allow[0].Object.DeepCopyObject().(*corev1.Pod)
			other.Spec.Containers[0].Image = "example.com/other"
			s.Reject = append(s.Reject, framework.Create(other))
		}}},
		"completes the elements of the user": {"A5", mutant{build: func(p *sound) admission.Interface { return after{p, addsSidecar} }}},
		"enforces a field": {"A5", mutant{build: inAdmit(overwrites), subject: func(s *check.Subject) {
			s.Enforced = []string{"metadata.labels"}
		}}},
		"looks only at pods that it has labelled": {"S3", mutant{build: inValidate(ownPodsOnly)}},
		"labels unstructured objects": {"Y1", mutant{build: func(p *sound) admission.Interface { return labelsAny{p} }, subject: func(s *check.Subject) {
			s.Allow, s.Reject = []framework.Request{s.Allow[0].AsUnstructured()}, nil
		}}},
		"enforces a field of each element": {"A5", mutant{build: func(p *sound) admission.Interface { return after{p, namesItsImages} }, subject: func(s *check.Subject) {
			s.Enforced = []string{"spec.containers[].image"}
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes, misuse := checkRules(test.sound.of(), test.id)
			if len(misuse) > 0 || outcomes[0].Verdict != framework.Pass {
				t.Errorf("%v, %s: %s", misuse, outcomes[0].Verdict, outcomes[0].Reason)
			}
		})
	}
}

// omitsInit does not check init containers.
func omitsInit(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil {
		others := pod.DeepCopy()
		others.Spec.InitContainers = nil
		a = withPod{a, others}
	}
	return p.Validate(ctx, a, o)
}

// replacesSecrets sets its pull secret, and drops the secrets of the user.
func replacesSecrets(pod *corev1.Pod) {
	ours := corev1.LocalObjectReference{Name: "registry"}
	if !slices.Contains(pod.Spec.ImagePullSecrets, ours) {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{ours}
	}
}

// replacesSelector sets its node selector, and drops the keys of the user.
func replacesSelector(pod *corev1.Pod) {
	if pod.Spec.NodeSelector["pool"] == "" {
		pod.Spec.NodeSelector = map[string]string{"pool": "blue"}
	}
}

// firstOfIndex uses the first default that the index of its cache returns.
type firstOfIndex struct {
	*sound
	indexer cache.Indexer
}

func (p *firstOfIndex) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	p.indexer = factory.Core().V1().ConfigMaps().Informer().GetIndexer()
}

func (p *firstOfIndex) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	err := p.sound.Admit(ctx, a, o)
	pod := created(a)
	if err != nil || pod == nil || pod.Labels["first"] != "" {
		return err
	}
	if found, failed := p.indexer.ByIndex(cache.NamespaceIndex, a.GetNamespace()); failed == nil && len(found) > 0 {
		pod.Labels["first"] = found[0].(*corev1.ConfigMap).Name
	}
	return nil
}

// onlySubject refuses new pods with another name.
func onlySubject(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if pod := created(a); pod != nil && pod.Name != "subject" {
		return admission.NewForbidden(a, errors.New("the name is not subject"))
	}
	return p.Validate(ctx, a, o)
}

// needsImage refuses new pods without a container of its image.
func needsImage(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod := created(a)
	has := func(each corev1.Container) bool { return each.Image == "example.com/c" }
	if pod != nil && !slices.ContainsFunc(pod.Spec.Containers, has) {
		return admission.NewForbidden(a, errors.New("no container of this image"))
	}
	return p.Validate(ctx, a, o)
}

// addsSidecar adds a container, and a default to all containers.
func addsSidecar(pod *corev1.Pod) {
	isSidecar := func(each corev1.Container) bool { return each.Name == "sidecar" }
	if !slices.ContainsFunc(pod.Spec.Containers, isSidecar) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar", Image: "example.com/s"})
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].ImagePullPolicy == "" {
			pod.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}
}

// namesItsImages overwrites the image of each container.
func namesItsImages(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = "example.com/ours"
	}
}

// bypassed does not check the deletion of what has no name.
func bypassed(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete && a.GetName() == "" {
		return nil
	}
	return p.Validate(ctx, a, o)
}

func same(p *sound) admission.Interface { return p }

// yielding admits everything until its caches have synced.
func yielding(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, synced := range p.synced {
		if !synced() {
			return nil
		}
	}
	return p.Admit(ctx, a, o)
}

// outliving calls with the values of the context of the request, but not with its end.
func outliving(ctx context.Context, p *sound, a admission.Attributes, o admission.ObjectInterfaces) error {
	return p.Admit(context.WithoutCancel(ctx), a, o)
}

// assuming uses its client without checking for nil.
type assuming struct{ *sound }

func (p *assuming) ValidateInitialization() error {
	_ = p.client.CoreV1()
	return p.sound.ValidateInitialization()
}

// speechless returns an error without a string.
type speechless struct{ *sound }

func (p *speechless) ValidateInitialization() error {
	if p.sound.ValidateInitialization() != nil {
		return errors.New(" ")
	}
	return nil
}

// bare returns a factory that gets the configuration itself. A registered plugin gets what
// admission.Plugins has read.
func bare(factory func(io.Reader) (admission.Interface, error)) mutant {
	return mutant{factory: factory, subject: func(s *check.Subject) { s.Source = harness.FromFactory(factory) }}
}

// unvalidated is injected by its own interface.
type unvalidated struct{ *admission.Handler }

type wantsNumber interface{ SetNumber(number int) }

func unvalidatedMutant() mutant {
	return mutant{
		build: func(p *sound) admission.Interface { return &unvalidated{p.Handler} },
		subject: func(s *check.Subject) {
			s.Inject = func(*fakes.World) []fakes.Injector {
				return []fakes.Injector{fakes.Inject("a number", func(p wantsNumber) { p.SetNumber(1) })}
			}
		},
	}
}

func (p *unvalidated) SetNumber(int) {}

func (p *unvalidated) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return nil
}

// once can be validated once.
type once struct {
	*sound
	validated bool
}

func (p *once) ValidateInitialization() error {
	if p.validated {
		return errors.New("validated already")
	}
	err := p.sound.ValidateInitialization()
	p.validated = err == nil
	return err
}

// reading reads until the end, which a reader that fails never reaches.
func reading(config io.Reader) (admission.Interface, error) {
	var text strings.Builder
	buffer := make([]byte, 64)
	for config != nil {
		n, err := config.Read(buffer)
		text.Write(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			<-time.NewTimer(time.Millisecond).C // it goes on as long as the tests run
		}
	}
	return newSound(strings.NewReader(text.String()))
}

// deaf treats a configuration that it cannot read as empty.
func deaf(config io.Reader) (admission.Interface, error) {
	if config == nil {
		return newSound(nil)
	}
	data, err := io.ReadAll(config)
	if err != nil {
		return newSound(nil)
	}
	return newSound(strings.NewReader(string(data)))
}

// TestOneOther: one plugin of many that answers otherwise, as one that is not ready yet on a busy
// machine, says nothing about memory that objects share.
func TestOneOther(t *testing.T) {
	for _, id := range []string{"C3", "U1"} {
		for odd := range int64(6) {
			var made atomic.Int64
			m := mutant{build: func(p *sound) admission.Interface {
				if made.Add(1)-1 == odd {
					return unready{p}
				}
				return p
			}}
			outcomes, _ := checkRules(m.of(), id)
			if outcomes[0].Verdict != framework.Pass {
				t.Errorf("%s, plugin %d: %s: %s", id, odd, outcomes[0].Verdict, outcomes[0].Reason)
			}
		}
	}
}

// unready answers that it is not ready.
type unready struct{ *sound }

func (p unready) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return apierrors.NewServiceUnavailable("not yet ready to handle request")
}

// beginning starts its worker in the factory.
func beginning(config io.Reader) (admission.Interface, error) {
	go func() { <-make(chan struct{}) }()
	return newSound(config)
}

// sociable returns a plugin that shares its ready functions with other plugins.
func sociable() mutant {
	var mu = make(chan struct{}, 1)
	var ready []func() bool
	return mutant{build: func(p *sound) admission.Interface {
		return &social{p, func(ctx context.Context, own func() bool) bool {
			mu <- struct{}{}
			defer func() { <-mu }()
			if own != nil {
				ready = append(ready, own)
				return true
			}
			for _, one := range ready {
				if !one() {
					return false
				}
			}
			return ctx.Err() == nil
		}}
	}}
}

type social struct {
	*sound
	all func(context.Context, func() bool) bool
}

func (p *social) ValidateInitialization() error {
	if err := p.sound.ValidateInitialization(); err != nil {
		return err
	}
	p.all(context.Background(), func() bool {
		for _, synced := range p.synced {
			if !synced() {
				return false
			}
		}
		return true
	})
	return nil
}

func (p *social) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() == corev1.Resource("pods") && !p.all(ctx, nil) {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	return p.sound.Admit(ctx, a, o)
}
