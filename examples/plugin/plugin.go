// Package plugin is a small compiled-in admission plugin. Its tests show how to test a plugin
// with admissiontest: plugin_test.go has tests with a Harness, contract_test.go runs the
// contract suite, and admission_test.go runs scenarios on a kube-apiserver that has the plugin.
//
// The plugin, Owner, labels each new pod with the owner of its namespace, and refuses pods of
// namespaces without an owner.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"sigs.k8s.io/yaml"
)

// PluginName is the name of the plugin in the flags of the API server.
const PluginName = "Owner"

// Label is the label of pods and the annotation of namespaces that names the owner.
const Label = "owner.example.com/name"

const (
	syncPoll  = 50 * time.Millisecond
	syncLimit = 10 * time.Second
)

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(config io.Reader) (admission.Interface, error) { return New(config) })
}

// Configuration is the plugin's configuration file.
type Configuration struct {
	// DefaultOwner is the owner of namespaces without one. Empty means that pods in them are
	// refused.
	DefaultOwner string `json:"defaultOwner,omitempty"`
}

// Owner is the plugin.
type Owner struct {
	*admission.Handler
	configuration Configuration
	client        kubernetes.Interface
	namespaces    corelisters.NamespaceLister
	synced        func() bool
}

var (
	_ admission.MutationInterface       = &Owner{}
	_ admission.ValidationInterface     = &Owner{}
	_ admission.InitializationValidator = &Owner{}
)

// New returns a plugin. A nil configuration means the zero Configuration.
func New(config io.Reader) (*Owner, error) {
	o := &Owner{Handler: admission.NewHandler(admission.Create)}
	if config == nil {
		return o, nil
	}
	data, err := io.ReadAll(config)
	if err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", PluginName, err)
	}
	if err := yaml.UnmarshalStrict(data, &o.configuration); err != nil {
		return nil, fmt.Errorf("parse configuration of %s: %w", PluginName, err)
	}
	return o, nil
}

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (o *Owner) SetExternalKubeClientSet(client kubernetes.Interface) { o.client = client }

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory.
func (o *Owner) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	namespaces := factory.Core().V1().Namespaces()
	o.namespaces, o.synced = namespaces.Lister(), namespaces.Informer().HasSynced
}

// ValidateInitialization implements admission.InitializationValidator.
func (o *Owner) ValidateInitialization() error {
	if o.client == nil {
		return fmt.Errorf("%s: missing client", PluginName)
	}
	if o.namespaces == nil {
		return fmt.Errorf("%s: missing namespace informer", PluginName)
	}
	return nil
}

// A plugin gets pods in the type of its API server: kube-apiserver has an internal one
// (k8s.io/kubernetes/pkg/apis/core), other servers and the harness have that of k8s.io/api. So this
// plugin uses only the methods of metav1.Object. A plugin that needs the spec of pods in
// kube-apiserver must import the internal type, and so needs k8s.io/kubernetes in its go.mod.

// Admit labels a pod without an owner with the owner of its namespace.
func (o *Owner) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := o.pod(a)
	if pod == nil || err != nil || pod.GetLabels()[Label] != "" {
		return err
	}
	owner, err := o.owner(ctx, a)
	if err != nil || owner == "" {
		return err // Validate refuses a pod without an owner
	}
	labels := pod.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[Label] = owner
	pod.SetLabels(labels)
	return nil
}

// Validate refuses pods without an owner.
func (o *Owner) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, err := o.pod(a)
	if pod == nil || err != nil {
		return err
	}
	if pod.GetLabels()[Label] == "" {
		return admission.NewForbidden(a, fmt.Errorf("namespace %q has no owner: annotate it with %s", a.GetNamespace(), Label))
	}
	return nil
}

// pod returns the pod that a request creates; nil for other requests.
func (o *Owner) pod(a admission.Attributes) (metav1.Object, error) {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" || a.GetOperation() != admission.Create {
		return nil, nil //nolint:nilnil // no pod, and no error either: the plugin ignores other requests
	}
	pod, err := meta.Accessor(a.GetObject())
	if err != nil || a.GetKind().GroupKind() != corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Pod, got %s, %T", a.GetKind(), a.GetObject()))
	}
	return pod, nil
}

// owner returns the owner of a namespace: from the cache, or from the API server if the
// namespace is not in the cache yet.
func (o *Owner) owner(ctx context.Context, a admission.Attributes) (string, error) {
	synced := func(context.Context) (bool, error) { return o.synced(), nil }
	if err := wait.PollUntilContextTimeout(ctx, syncPoll, syncLimit, true, synced); err != nil {
		return "", admission.NewForbidden(a, errors.New("not yet ready to handle request"))
	}
	namespace, err := o.namespaces.Get(a.GetNamespace())
	if apierrors.IsNotFound(err) {
		namespace, err = o.client.CoreV1().Namespaces().Get(ctx, a.GetNamespace(), metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return "", admission.NewForbidden(a, err)
	case err != nil:
		return "", apierrors.NewInternalError(err)
	}
	if owner := namespace.Annotations[Label]; owner != "" {
		return owner, nil
	}
	return o.configuration.DefaultOwner, nil
}
