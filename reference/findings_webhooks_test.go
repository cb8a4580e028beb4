package reference

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission/configuration"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	informersv1 "k8s.io/client-go/informers/admissionregistration/v1"
	listersv1 "k8s.io/client-go/listers/admissionregistration/v1"

	"github.com/admissiontest/admissiontest/fakes"
)

// A configuration changes while the webhooks are read, after the list and before the cache of
// prepared webhooks. The old webhook is then put back into this cache, and stays there.
func TestFindingWebhookUpdateIsLost(t *testing.T) {
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "old.example.com", AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionv1.WebhookClientConfig{URL: new(string)},
	}}}
	w := fakes.NewWorld(t, fakes.WithObjects(hook))
	changing := &changingFactory{SharedInformerFactory: w.Informers()}
	manager := configuration.NewValidatingWebhookConfigurationManager(changing, nil)
	w.Informers().Start(t.Context().Done())
	w.Informers().WaitForCacheSync(t.Context().Done())

	changing.afterList = func() {
		changed := hook.DeepCopy()
		changed.Webhooks[0].Name = "new.example.com"
		if _, err := w.Client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		if err := w.WaitHandlers(t.Context()); err != nil { // the handler empties the cache, before the old webhook is put back
			t.Error(err)
		}
	}
	_ = manager.Webhooks()
	for range 3 {
		if got := manager.Webhooks(); len(got) != 1 || got[0].GetName() != "old.example.com" {
			t.Fatalf("is the defect fixed? got webhooks %v", got)
		}
	}
	listed, err := changing.Admissionregistration().V1().ValidatingWebhookConfigurations().Lister().Get("a")
	if err != nil || listed.Webhooks[0].Name != "new.example.com" {
		t.Errorf("the informer has %v, %v; want the changed configuration", listed, err)
	}
}

// changingFactory calls afterList once, when webhook configurations have been listed.
type changingFactory struct {
	informers.SharedInformerFactory
	afterList func()
}

func (f *changingFactory) Admissionregistration() admissionregistration.Interface {
	return changingGroup{f.SharedInformerFactory.Admissionregistration(), f}
}

type changingGroup struct {
	admissionregistration.Interface
	factory *changingFactory
}

func (g changingGroup) V1() informersv1.Interface {
	return changingVersion{g.Interface.V1(), g.factory}
}

type changingVersion struct {
	informersv1.Interface
	factory *changingFactory
}

func (v changingVersion) ValidatingWebhookConfigurations() informersv1.TypedValidatingWebhookConfigurationInformer {
	return changingInformer{v.Interface.ValidatingWebhookConfigurations(), v.factory}
}

type changingInformer struct {
	informersv1.TypedValidatingWebhookConfigurationInformer
	factory *changingFactory
}

func (i changingInformer) Lister() listersv1.ValidatingWebhookConfigurationLister {
	return changingLister{i.TypedValidatingWebhookConfigurationInformer.Lister(), i.factory}
}

type changingLister struct {
	listersv1.ValidatingWebhookConfigurationLister
	factory *changingFactory
}

func (l changingLister) List(selector labels.Selector) ([]*admissionv1.ValidatingWebhookConfiguration, error) {
	all, err := l.ValidatingWebhookConfigurationLister.List(selector)
	if change := l.factory.afterList; change != nil {
		l.factory.afterList = nil
		change()
	}
	return all, err
}
