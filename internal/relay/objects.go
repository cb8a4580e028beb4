package relay

import (
	"context"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/admissiontest/admissiontest/framework/hook"
	"github.com/admissiontest/admissiontest/internal/apiserver"
)

// NamespacePrefix is the first part of the namespace's name. The ID of the run follows.
const NamespacePrefix = "admissiontest-hooks-"

// Names of the objects in the namespace.
const (
	serviceName    = "hooks"
	tokenKey       = "token"
	appLabel       = "app.kubernetes.io/name"
	tokenDirectory = "/etc/admissiontest"
)

// Ports of the pod. The listeners have firstPodPort and the ports after it, in their order.
// No port needs a privilege.
const (
	controlPort  = 7400
	healthPort   = 7401
	firstPodPort = 8443
)

// servicePortOf returns the port of the Service for a listener, by its index. The first
// listener, which has no Fault, has port 443: the default of a clientConfig.
func servicePortOf(index int) int {
	if index == 0 {
		return 443
	}
	return firstPodPort + index
}

// replaceLimit is the limit for the removal of the namespace of an earlier run.
const replaceLimit = time.Minute

// create creates the namespace and its objects.
func (s *Service) create(ctx context.Context) error {
	if err := s.createNamespace(ctx); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: serviceName, Labels: s.labels()}
	account := &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false)}
	if _, err := s.core.ServiceAccounts(s.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service account: %w", err)
	}
	secret := &corev1.Secret{ObjectMeta: meta, Immutable: ptr.To(true), Data: map[string][]byte{tokenKey: []byte(s.token)}}
	if _, err := s.core.Secrets(s.namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create secret: %w", err)
	}
	if err := s.createNetworkPolicy(ctx, meta); err != nil {
		return err
	}
	if _, err := s.apps.Deployments(s.namespace).Create(ctx, s.deployment(meta), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create deployment: %w", err)
	}
	made, err := s.core.Services(s.namespace).Create(ctx, s.service(meta), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create service: %w", err)
	}
	s.clusterIP = made.Spec.ClusterIP
	return nil
}

// createNetworkPolicy creates a NetworkPolicy for the sources, if there are any. Its effect
// depends on the network of the cluster. The port for the kubelet's probes stays open for all.
func (s *Service) createNetworkPolicy(ctx context.Context, meta metav1.ObjectMeta) error {
	if len(s.options.Sources) == 0 {
		return nil
	}
	hooks := networkingv1.NetworkPolicyIngressRule{}
	for _, source := range s.options.Sources {
		hooks.From = append(hooks.From, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: source.String()}})
	}
	health := networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(healthPort))}}}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: s.labels()},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{hooks, health},
	}}
	_, err := s.networking.NetworkPolicies(s.namespace).Create(ctx, policy, metav1.CreateOptions{})
	return wrap("create network policy", err)
}

func (s *Service) labels() map[string]string {
	return map[string]string{appLabel: "admissiontest-hooks", apiserver.RunLabel: s.options.Run}
}

// createNamespace creates the namespace. It first removes that of an earlier run with the same
// ID.
func (s *Service) createNamespace(ctx context.Context) error {
	labels := s.labels()
	labels["pod-security.kubernetes.io/enforce"] = "restricted"
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: labels}}
	_, err := s.core.Namespaces().Create(ctx, wanted, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return wrap("create namespace "+s.namespace, err)
	}
	found, err := s.core.Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
	if err == nil && found.Labels[apiserver.RunLabel] == "" {
		return fmt.Errorf("create namespace %s: it exists without the label %s, so it is not the namespace of an earlier run; delete it, or use another run ID", s.namespace, apiserver.RunLabel)
	}
	s.options.Progress("removing namespace " + s.namespace + ", which an earlier run left")
	err = wait.PollUntilContextTimeout(ctx, pollInterval, replaceLimit, true, func(ctx context.Context) (bool, error) {
		if err := s.remove(ctx); err != nil {
			return false, err
		}
		_, err := s.core.Namespaces().Create(ctx, wanted, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return false, nil
		}
		return err == nil, err
	})
	return wrap("replace namespace "+s.namespace+", which an earlier run left", err)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// remove deletes the namespace with all its objects, if it has the label of a run.
func (s *Service) remove(ctx context.Context) error {
	found, err := s.core.Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get namespace %s: %w", s.namespace, err)
	}
	if found.Labels[apiserver.RunLabel] == "" || found.DeletionTimestamp != nil {
		return nil
	}
	err = s.core.Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(found.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return wrap("delete namespace "+s.namespace, err)
}

// goneLimit limits the wait until the namespace is gone. The namespace controller takes
// some seconds.
const goneLimit = 90 * time.Second

// waitUntilGone waits until the namespace is gone, or belongs to another run.
func (s *Service) waitUntilGone(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, goneLimit, true, func(ctx context.Context) (bool, error) {
		found, err := s.core.Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && found.Labels[apiserver.RunLabel] == "", err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("namespace %s is still there after %s: an object in it has a finalizer, or the namespace controller does not work; `admissiontest cleanup --run %s` removes it later", s.namespace, goneLimit, s.options.Run)
	}
	return err
}

func (s *Service) service(meta metav1.ObjectMeta) *corev1.Service {
	made := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: s.labels()}}
	for i, listener := range s.listeners {
		name := "hooks"
		if listener.Fault != hook.NoFault {
			name = string(listener.Fault)
		}
		made.Spec.Ports = append(made.Spec.Ports, corev1.ServicePort{
			Name: name, Port: int32(servicePortOf(i)), TargetPort: intstr.FromInt32(int32(firstPodPort + i)),
		})
	}
	return made
}

func (s *Service) deployment(meta metav1.ObjectMeta) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1),
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		Selector: &metav1.LabelSelector{MatchLabels: s.labels()},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: s.labels()},
			Spec: corev1.PodSpec{
				ServiceAccountName:            serviceName,
				AutomountServiceAccountToken:  ptr.To(false),
				EnableServiceLinks:            ptr.To(false),
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532), FSGroup: ptr.To[int64](65532),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
				// So that a cluster works that only has a control-plane node.
				Tolerations: []corev1.Toleration{
					{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists},
					{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists},
				},
				Containers: []corev1.Container{s.container()},
				Volumes: []corev1.Volume{{Name: tokenKey, VolumeSource: corev1.VolumeSource{
					Secret: &corev1.SecretVolumeSource{SecretName: serviceName, DefaultMode: ptr.To[int32](0o440)},
				}}},
			},
		},
	}}
}

func (s *Service) container() corev1.Container {
	// The entry point of the image, explicitly: an image that was rebuilt may have none.
	args := []string{tokenDirectory + "/" + tokenKey, "127.0.0.1:" + strconv.Itoa(controlPort), ":" + strconv.Itoa(healthPort)}
	var ports []corev1.ContainerPort
	for i, listener := range s.listeners {
		if listener.Fault == hook.Refused {
			continue // this Fault is a port on which nothing listens
		}
		args = append(args, ":"+strconv.Itoa(firstPodPort+i))
		ports = append(ports, corev1.ContainerPort{ContainerPort: int32(firstPodPort + i)})
	}
	probe := func(period, failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(healthPort)}},
			PeriodSeconds: period, TimeoutSeconds: 5, FailureThreshold: failures,
		}
	}
	return corev1.Container{
		Name: serviceName, Image: s.options.Image, ImagePullPolicy: s.options.PullPolicy,
		Command: []string{entrypointOfRelay}, Args: args, Ports: ports,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		ReadinessProbe: probe(1, 10), LivenessProbe: probe(10, 3),
		VolumeMounts:             []corev1.VolumeMount{{Name: tokenKey, MountPath: tokenDirectory, ReadOnly: true}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}
