package rules_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// readyMutants returns the broken plugins of caches, initialization, configuration and
// life.
func readyMutants() map[string]mutant {
	all := map[string]mutant{
		"R1": {build: func(p *sound) admission.Interface { return &eager{p} }},
		"R2": {build: func(p *sound) admission.Interface { return &patient{sound: p} }},
		"X1": {build: func(p *sound) admission.Interface { return &contextless{p} }},
		"I1": {build: func(p *sound) admission.Interface { return &content{p} }},
		"I2": {build: func(p *sound) admission.Interface { return &busyValidator{p} }},
		"I3": {build: func(p *sound) admission.Interface { return &ordered{p} }},
		"I4": {build: func(p *sound) admission.Interface { return &unheard{p} }},
		"I5": {build: func(p *sound) admission.Interface { return &global{p, gatesOfProcess()} }},
		"I6": {build: func(p *sound) admission.Interface { return &fragile{sound: p} }},
		"T1": {build: func(p *sound) admission.Interface { return &muddled{sound: p} }},
		"T2": {build: func(p *sound) admission.Interface { return &firstCome{p} }},
		"L1": {build: func(p *sound) admission.Interface { return &endless{p} }},
		"B1": {build: func(p *sound) admission.Interface { return &chatty{p} }},
	}
	maps.Copy(all, factoryMutants())
	return all
}

// eager does not wait for its caches.
type eager struct{ *sound }

func (p *eager) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	p.synced = nil
}

// patient waits for its caches, whatever becomes of the request.
type patient struct {
	*sound
	caches []cache.InformerSynced
}

func (p *patient) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	p.sound.SetExternalKubeInformerFactory(factory)
	p.caches, p.synced = p.synced, nil
}

func (p *patient) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" || a.GetOperation() == admission.Delete {
		return p.sound.Admit(ctx, a, o)
	}
	err := wait.PollUntilContextTimeout(context.WithoutCancel(ctx), syncPoll, syncWait, true, func(context.Context) (bool, error) {
		for _, synced := range p.caches {
			if !synced() {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("not yet ready to handle request"))
	}
	return p.sound.Admit(ctx, a, o)
}

// contextless asks the authorizer with a context of its own.
type contextless struct{ *sound }

func (p *contextless) Validate(_ context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return p.sound.Validate(context.Background(), a, o)
}

// content does not mind that it has no authorizer.
type content struct{ *sound }

func (p *content) ValidateInitialization() error {
	if p.authorizer == nil && p.stop != nil && p.inspected && p.client != nil && p.namespaces != nil {
		return nil
	}
	return p.sound.ValidateInitialization()
}

// busyValidator begins its worker in ValidateInitialization.
type busyValidator struct{ *sound }

func (p *busyValidator) ValidateInitialization() error {
	if stop := p.stop; stop != nil {
		go func() { <-stop }()
	}
	return p.sound.ValidateInitialization()
}

// ordered needs the feature gates before the informers.
type ordered struct{ *sound }

func (p *ordered) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if p.inspected {
		p.sound.SetExternalKubeInformerFactory(factory)
	}
}

// unheard has a setter that nobody knows.
type unheard struct{ *sound }

func (*unheard) SetExternalKubeClientset(kubernetes.Interface) {}

// global goes by the gates of the process.
type global struct {
	*sound
	gates string
}

func (p *global) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if gatesOfProcess() != p.gates {
		return admission.NewForbidden(a, fmt.Errorf("a gate is not as it was"))
	}
	return p.sound.Validate(ctx, a, o)
}

func gatesOfProcess() string {
	on := map[string]bool{}
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		on[string(name)] = utilfeature.DefaultFeatureGate.Enabled(name)
	}
	return fmt.Sprint(on)
}

// fragile cannot be had with a gate on that is off by default.
type fragile struct {
	*sound
	broken bool
}

func (p *fragile) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.sound.InspectFeatureGates(gates)
	p.broken = gates.Enabled("SoundOnStilts")
}

func (p *fragile) ValidateInitialization() error {
	if p.broken {
		return fmt.Errorf("missing stilts")
	}
	return p.sound.ValidateInitialization()
}

// muddled keeps in a field what belongs to one request.
type muddled struct {
	*sound
	mu      sync.Mutex
	request int
}

func (p *muddled) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	p.mu.Lock()
	p.request++
	mine := p.request
	p.mu.Unlock()
	for range 100 {
		runtime.Gosched() // as long as it takes to look something up
	}
	p.mu.Lock()
	current := p.request
	p.mu.Unlock()
	if current != mine {
		return admission.NewForbidden(a, fmt.Errorf("request %d is not %d", current, mine))
	}
	return p.sound.Admit(ctx, a, o)
}

// firstCome takes the first of the defaults that its lister has.
type firstCome struct{ *sound }

func (p *firstCome) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := p.sound.Admit(ctx, a, o); err != nil {
		return err
	}
	pod, mine, _ := p.pod(a, a.GetObject())
	if !mine || pod == nil || a.GetOperation() != admission.Create {
		return nil
	}
	defaults, err := p.configMaps.ConfigMaps(a.GetNamespace()).List(labels.SelectorFromSet(labels.Set{teamDefault: "true"}))
	if err == nil && len(defaults) > 0 && pod.Labels["first"] == "" {
		pod.Labels["first"] = defaults[0].Name
	}
	return nil
}

// endless begins what nobody can end.
type endless struct{ *sound }

func (p *endless) SetDrainedNotification(stop <-chan struct{}) {
	p.sound.SetDrainedNotification(stop)
	go func() { <-make(chan struct{}) }()
}

// chatty asks the API server for what its cache has.
type chatty struct{ *sound }

func (p *chatty) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if _, mine, _ := p.pod(a, a.GetObject()); mine && a.GetOperation() == admission.Create && a.GetNamespace() != "" {
		_, _ = p.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	}
	return p.sound.Admit(ctx, a, o)
}

// factoryMutants returns the broken factories.
func factoryMutants() map[string]mutant {
	var latest atomic.Pointer[kubernetes.Interface]
	return map[string]mutant{
		"K1": {factory: swallowing},
		"K2": {factory: forgiving},
		"K3": {build: func(p *sound) admission.Interface { return &shared{p, &latest} }},
		"K4": {
			build: func(p *sound) admission.Interface { return p },
			subject: func(s *check.Subject) {
				factory := func(config io.Reader) (admission.Interface, error) { return newSound(config) }
				s.Source = harness.FromRegister("Sound", func(plugins *admission.Plugins) {
					plugins.Register("Sound", factory)
					plugins.Register("SoundAlias", factory)
				})
			},
		},
	}
}

// swallowing goes on without a configuration that it cannot parse.
func swallowing(config io.Reader) (admission.Interface, error) {
	if config == nil {
		return newSound(nil)
	}
	data, err := io.ReadAll(config)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if yaml.Unmarshal(data, new(any)) != nil {
		return newSound(nil)
	}
	return newSound(strings.NewReader(string(data)))
}

// forgiving passes over fields that it does not know.
func forgiving(config io.Reader) (admission.Interface, error) {
	if config == nil {
		return newSound(nil)
	}
	data, err := io.ReadAll(config)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	fields := map[string]any{}
	if yaml.Unmarshal(data, &fields) != nil || len(fields) == 0 {
		return newSound(strings.NewReader(string(data)))
	}
	maps.DeleteFunc(fields, func(name string, _ any) bool { return name != "team" && name != "tolerations" })
	known, err := yaml.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return newSound(strings.NewReader(string(known)))
}

// shared uses the client that the last of its kind was given.
type shared struct {
	*sound
	latest *atomic.Pointer[kubernetes.Interface]
}

func (p *shared) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.latest.Store(&client)
	p.sound.SetExternalKubeClientSet(sharedClient{client, p.latest})
}

type sharedClient struct {
	kubernetes.Interface
	latest *atomic.Pointer[kubernetes.Interface]
}

func (c sharedClient) CoreV1() corev1client.CoreV1Interface { return (*c.latest.Load()).CoreV1() }
