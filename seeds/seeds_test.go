package seeds_test

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/seeds"
	"github.com/admissiontest/admissiontest/suites/contract"
)

var group = schema.GroupVersion{Group: "tenancy.example.com", Version: "v1"}

func namespace(name, tenant string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if tenant != "" {
		ns.Labels = map[string]string{seeds.Label: tenant}
	}
	return ns
}

func custom(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(group.WithKind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func blue() *unstructured.Unstructured {
	return custom("Tenant", "", "blue", map[string]any{
		"id": "t-1", "owners": []any{"olga"}, "namePrefix": "blue", "maxStorage": "20Gi", "maxReplicas": int64(5),
		"registries":   []any{"registry.example.com/blue", "mirror.example.com"},
		"nodeSelector": map[string]any{"pool": "blue"}, "dedicated": map[string]any{"blue": "true", "gpu": "none"},
	})
}

func red() *unstructured.Unstructured {
	return custom("Tenant", "", "red", map[string]any{"id": "t-2", "maxPods": int64(2)})
}

func pod(namespace, name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func running(namespace, name, tenant string) *corev1.Pod {
	p := pod(namespace, name, "registry.example.com/blue/web:1")
	p.Labels = map[string]string{seeds.Label: tenant}
	p.Spec.NodeSelector = map[string]string{"pool": tenant}
	p.Status.Phase = corev1.PodRunning
	return p
}

func claim(namespace, name, size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

func storedClaim() *corev1.PersistentVolumeClaim {
	c := claim("blue-shop", "db", "10Gi")
	c.Labels = map[string]string{seeds.Label: "blue"}
	return c
}

func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "blue-shop", Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
}

func scale(replicas int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "blue-shop", Name: "web"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
}

func debug(image string) framework.Request {
	return framework.UpdateWith(running("blue-shop", "blue-web", "blue"), func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: image}}}
	}).WithSubresource("ephemeralcontainers")
}

const configuration = `
exemptUsers: [ops]
maxReplicas: 10
nodeSelector: {region: eu}
deprecatedRegistries: [mirror.example.com]
tolerations: [{key: spot, operator: Exists}]
`

func subject() contract.Subject {
	good := pod("blue-shop", "blue-api", "registry.example.com/blue/api:1")
	good.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "mirror.example.com/tools:1"}}

	badImage := pod("blue-shop", "blue-api", "docker.io/nginx")
	yes := true
	privileged := pod("blue-shop", "blue-node", "registry.example.com/blue/node:1")
	privileged.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}

	finished := running("red-shop", "job", "red")
	finished.Status.Phase = corev1.PodSucceeded
	agent := running("red-shop", "agent", "red")
	agent.Labels[seeds.UnmeteredLabel] = ""
	protected := running("blue-shop", "blue-db", "blue")
	protected.Annotations = map[string]string{seeds.ProtectedAnnotation: "true"}
	web := running("blue-shop", "blue-web", "blue")
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "blue-shop", Name: "blue-web"}}
	exec := &corev1.PodExecOptions{Container: "main", Command: []string{"sh"}}
	ns := namespace("blue-new", "blue")

	return contract.Subject{
		Name:   "Tenancy",
		Source: harness.FromRegister(seeds.PluginName, seeds.Register),
		Config: configuration,
		Configs: contract.Configs{
			Valid:   []string{"maxReplicas: 0", "exemptNamespaces: []"},
			Invalid: []string{"maxReplicas: -1", "exemptUsers: ['']", "nodeSelector: {'a b': c}", "tolerations: [{}]"},
		},
		World: []fakes.Option{
			fakes.WithMappings(
				meta.RESTMapping{Resource: group.WithResource("tenants"), GroupVersionKind: group.WithKind("Tenant"), Scope: meta.RESTScopeRoot},
				meta.RESTMapping{Resource: group.WithResource("grants"), GroupVersionKind: group.WithKind("Grant"), Scope: meta.RESTScopeNamespace},
			),
			fakes.WithObjects(
				blue(), red(), custom("Tenant", "", "unused", map[string]any{"id": "t-3"}),
				namespace("blue-shop", "blue"), namespace("red-shop", "red"), namespace("plain", ""), namespace("lost", "gone"),
				web, protected, running("red-shop", "one", "red"), finished, agent,
				storedClaim(), deployment(2),
				custom("Grant", "blue-shop", "joe", map[string]any{"user": "joe", "permissions": []any{"exec"}}),
				custom("Grant", "blue-shop", "ann", map[string]any{"user": "ann", "permissions": []any{"exec"}, "expires": "2020-01-01T00:00:00Z"}),
			),
			fakes.WithAuthorizer(fakes.Deny().Unless("olga", "use", "tenants.tenancy.example.com", "blue").Unless("olga", "use", "tenants.tenancy.example.com/privileged", "blue")),
		},
		AnnotationPrefix: "tenancy.example.com/",
		Subresources:     []string{"attach", "exec"},
		Allow: []framework.Request{
			framework.Create(good),
			framework.Create(pod("red-shop", "two", "docker.io/nginx")),
			framework.UpdateWith(web, func(p *corev1.Pod) { p.Labels["app"] = "web" }),
			framework.Create(claim("blue-shop", "cache", "10Gi")),
			framework.Update(scale(2), scale(5)).WithSubresource("scale", deployment(2)),
			framework.Connect(web, "exec", exec).As("joe"),
			framework.Create(eviction).WithSubresource("eviction", web),
			framework.Create(ns).As("olga"),
			framework.Create(pod("blue-shop", "rescue", "docker.io/nginx")).As("ops"),
		},
		Reject: []framework.Request{
			framework.Connect(web, "exec", exec).As("ann"),
			framework.Create(&policyv1.Eviction{ObjectMeta: protected.ObjectMeta}).WithSubresource("eviction", protected),
			debug("docker.io/busybox"),
		},
		RejectWith: []contract.Refusal{
			{Request: framework.Create(badImage), Reason: metav1.StatusReasonInvalid, Field: "spec.containers[0].image"},
			{Request: framework.Create(privileged).As("joe"), Reason: metav1.StatusReasonForbidden, Text: "privileged"},
			{Request: framework.Create(claim("blue-shop", "cache", "11Gi")), Reason: metav1.StatusReasonForbidden, Text: "20Gi"},
			{Request: framework.Update(scale(2), scale(6)).WithSubresource("scale", deployment(2)), Reason: metav1.StatusReasonInvalid, Field: "spec.replicas"},
			{Request: framework.Delete(blue()), Reason: metav1.StatusReasonForbidden, Text: "belongs to the tenant"},
		},
	}
}

// rich is the subject with the requests that a careful author adds: RICH=1 ./run.sh.
func rich() contract.Subject {
	s := subject()
	terminating := storedClaim()
	terminating.Name, terminating.Finalizers = "going", []string{"kubernetes.io/pvc-protection"}
	now := metav1.Now()
	terminating.DeletionTimestamp = &now
	guarded := namespace("guarded", "")
	guarded.Annotations = map[string]string{seeds.ProtectedAnnotation: "true"}
	web := running("blue-shop", "blue-web", "blue")
	exec := &corev1.PodExecOptions{Container: "main", Command: []string{"sh"}}
	moved := blue()
	moved.Object["spec"].(map[string]any)["id"] = "t-9"
	unset := deployment(0)
	unset.Name, unset.Spec.Replicas = "unset", nil
	unprivileged := pod("blue-shop", "blue-sc", "registry.example.com/blue/web:1")
	unprivileged.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{}
	otherPool := pod("blue-shop", "blue-pool", "registry.example.com/blue/web:1")
	otherPool.Spec.NodeSelector = map[string]string{"pool": "red"}
	s.World = append(s.World, fakes.WithObjects(
		custom("Tenant", "", "green", map[string]any{"id": "t-4", "maxPods": int64(1)}),
		namespace("green-shop", "green"), running("green-shop", "one", "green"), terminating, guarded,
		custom("Grant", "blue-shop", "kim-old", map[string]any{"user": "kim", "permissions": []any{"exec"}, "expires": "2020-01-01T00:00:00Z"}),
		custom("Grant", "blue-shop", "kim-web", map[string]any{"user": "kim", "permissions": []any{"exec"}, "pods": []any{"blue-web"}}),
		custom("Grant", "red-shop", "max", map[string]any{"user": "max", "permissions": []any{"exec"}}),
	))
	s.Allow = append(s.Allow,
		framework.UpdateWith(storedClaim(), func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("15Gi")
		}),
		framework.Create(unset), framework.Create(unprivileged),
		framework.Connect(web, "exec", exec).As("kim"),
		framework.UpdateWith(blue(), func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }),
		framework.Delete(namespace("plain", "")),
		framework.Create(pod("plain", "a", "docker.io/nginx")),
	)
	s.Reject = append(s.Reject,
		framework.Create(pod("green-shop", "two", "docker.io/nginx")),
		framework.Create(pod("blue-shop", "blue-x", "mirror.example.com.evil.org/x")),
		framework.Create(pod("blue-shop", "bluegreen", "mirror.example.com/x")),
		framework.Create(otherPool),
		framework.Create(pod("lost", "a", "docker.io/nginx")),
		framework.Connect(running("blue-shop", "blue-db", "blue"), "exec", exec).As("kim"),
		framework.Connect(web, "exec", exec).As("max"),
		framework.Delete(guarded),
		framework.Update(blue(), moved),
		framework.UpdateWith(web, func(p *corev1.Pod) { delete(p.Labels, seeds.Label) }),
		framework.Create(namespace("blue-new", "blue")).As("joe"),
		framework.Create(pod("blue-shop", "rescue", "docker.io/nginx")).As("OPS"),
		framework.UpdateWith(storedClaim(), func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("21Gi")
		}),
	)
	return s
}

func TestContract(t *testing.T) {
	if os.Getenv("RICH") != "" {
		contract.Run(t, rich())
		return
	}
	contract.Run(t, subject())
}
