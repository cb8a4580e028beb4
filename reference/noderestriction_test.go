package reference

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/apis/authentication"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storage"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

const (
	nodeA, nodeB = "node-a", "node-b"
	nodeUID      = types.UID("10000000-0000-0000-0000-000000000001")
	podUID       = types.UID("10000000-0000-0000-0000-000000000002")
	accountUID   = types.UID("10000000-0000-0000-0000-000000000003")
)

// byKubelet is a request of the kubelet of nodeA.
func byKubelet(request framework.Request) framework.Request {
	return request.As("system:node:"+nodeA, "system:nodes")
}

// nodeWorld is what the plugin looks up: two nodes, a pod on each.
func nodeWorld() []runtime.Object {
	pod := func(name, node string, uid types.UID) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid},
			Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: "app", Volumes: []corev1.Volume{
				{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault"}},
					{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/s"}},
				}}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			}},
		}
	}
	return []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeA, UID: nodeUID}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeB}},
		pod("here", nodeA, podUID), pod("there", nodeB, ""),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app", UID: accountUID}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com"},
		}}},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "store"}}}},
	}
}

func tokenFor(pod string, uid types.UID, audiences ...string) framework.Request {
	account := &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}
	token := &authentication.TokenRequest{ObjectMeta: account.ObjectMeta, Spec: authentication.TokenRequestSpec{
		Audiences: audiences, BoundObjectRef: &authentication.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod, UID: uid},
	}}
	return framework.Create(token).WithSubresource("token", account)
}

func certificateFor(node string, nodeID, podID types.UID) framework.Request {
	return framework.Create(&certificates.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "r"},
		Spec: certificates.PodCertificateRequestSpec{
			SignerName: "example.com/s", PodName: "here", PodUID: podID, ServiceAccountName: "app", ServiceAccountUID: accountUID,
			NodeName: types.NodeName(node), NodeUID: nodeID,
		},
	})
}

// mirrorOf is a mirror pod of a node.
func mirrorOf(node string) *core.Pod {
	return podWith("default", "static", func(pod *core.Pod) {
		mirrored(pod)
		yes := true
		pod.Spec.NodeName = node
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: nodeUID, Controller: &yes}}
	})
}

func nodeRestrictionEntry() entry {
	subject := kubeSubject("NodeRestriction", nodeWorld()...)
	subject.Inject = func(*fakes.World) []fakes.Injector {
		return []fakes.Injector{
			fakes.InjectFeatureGates(fakes.Gates(map[featuregate.Feature]bool{"PodCertificateRequest": true})),
			fakes.InjectAuthorizer(fakes.Deny()),
		}
	}
	subject.Subresources = []string{contract.AnySubresource} // of pods it refuses all but status and eviction
	running := func(name, node string) *core.Pod {
		return podWith("default", name, func(pod *core.Pod) { pod.Spec.NodeName = node })
	}
	node := func(name string) *core.Node { return &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	lease := func(name string) *coordination.Lease {
		return &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}}
	}
	slice := func(node string) *resource.ResourceSlice {
		return &resource.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resource.ResourceSliceSpec{Driver: "d.example.com", NodeName: &node}}
	}
	csiNode := func(name string) *storage.CSINode { return &storage.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	evict := func(name string) framework.Request {
		return framework.Create(&policy.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}).WithSubresource("eviction", plainPod("default", name))
	}
	ready := func(pod *core.Pod) { pod.Status.Phase = core.PodRunning }
	taint := func(n *core.Node) { n.Spec.Taints = []core.Taint{{Key: "k", Effect: core.TaintEffectNoSchedule}} }
	restricted := func(n *core.Node) { n.Labels = map[string]string{"node-restriction.kubernetes.io/tier": "db"} }
	storedClaim := claim("default", "1Gi")
	grown := framework.UpdateWith(storedClaim, func(c *core.PersistentVolumeClaim) {
		c.Status.Capacity = quantities[core.ResourceName]("storage", "2Gi")
	}).WithSubresource("status")
	relabeled := framework.UpdateWith(storedClaim, func(c *core.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} })
	csr := func(request string) framework.Request {
		return framework.Create(&certificates.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "csr"},
			Spec:       certificates.CertificateSigningRequestSpec{SignerName: "kubernetes.io/kubelet-serving", Request: []byte(request)},
		})
	}
	allow := []framework.Request{
		framework.Create(mirrorOf(nodeA)), framework.Delete(running("here", nodeA)), framework.UpdateWith(running("here", nodeA), ready).WithSubresource("status"), evict("here"),
		framework.Create(node(nodeA)), framework.UpdateWith(node(nodeA), func(n *core.Node) { n.Labels = map[string]string{"team": "blue"} }), framework.Delete(node(nodeA)),
		framework.Create(lease(nodeA)), framework.Delete(lease(nodeA)), framework.Create(csiNode(nodeA)), framework.Create(slice(nodeA)), framework.Delete(slice(nodeA)),
		tokenFor("here", podUID, "vault"), tokenFor("here", podUID, "store"), certificateFor(nodeA, nodeUID, podUID), grown,
	}
	reject := []framework.Request{
		framework.Create(plainPod("default", "p")), framework.Create(mirrorOf(nodeB)), framework.Delete(running("there", nodeB)), framework.DeleteCollection(running("there", nodeB)),
		framework.UpdateWith(running("here", nodeA), labelPod), framework.UpdateWith(running("there", nodeB), ready).WithSubresource("status"),
		framework.UpdateWith(running("here", nodeA), labelPod).WithSubresource("status"), evict("there"), evict("absent"), bindingOf(running("here", nodeA), nodeA),
		framework.Create(node(nodeB)), framework.UpdateWith(node(nodeA), taint), framework.UpdateWith(node(nodeA), restricted),
		framework.Create(lease(nodeB)), framework.Create(csiNode(nodeB)), framework.Create(slice(nodeB)), framework.Delete(slice(nodeB)),
		tokenFor("there", podUID, "vault"), tokenFor("here", podUID, "elsewhere"), tokenFor("here", ""), csr("not a request"),
		certificateFor(nodeB, nodeUID, podUID), certificateFor(nodeA, podUID, podUID), relabeled.WithSubresource("status"), relabeled,
	}
	for _, request := range allow {
		subject.Allow = append(subject.Allow, byKubelet(request))
	}
	for _, request := range reject {
		subject.Reject = append(subject.Reject, byKubelet(request))
	}
	subject.Reject = append(subject.Reject, framework.Create(node(nodeA)).As("system:node:", "system:nodes"))
	subject.Allow = append(subject.Allow, framework.Create(plainPod("default", "p")).As("jane"))
	return entry{subject: subject, waivers: []waiver{
		{"H3", "it only refuses, and does so in Admit: later plugins and webhooks can still change the request; historical", "plugin/pkg/admission/noderestriction/admission.go:191"},
		{"E1", "a PodCertificateRequest whose UIDs do not match is refused with a plain error, 500 of unknown reason; intended, so that the client retries", "plugin/pkg/admission/noderestriction/admission.go:897"},
		{"S1", "every request of a node user without a node name is refused; intended", "plugin/pkg/admission/noderestriction/admission.go:201"},
		{"I3", "if the feature gates are injected after the informers or the authorizer, listers are missing and ValidateInitialization fails; documented order", "plugin/pkg/admission/noderestriction/admission.go:123"},
		{"R3", "it asks only its cache: the node, or the pod of an eviction, delete or token, is not found; the node authorizer has the same caches; not intended", "plugin/pkg/admission/noderestriction/admission.go:267"},
		{"Y2", "it compares the name of the request, which a delete of a collection does not have; nodes have no right to delete collections", "plugin/pkg/admission/noderestriction/admission.go:551"},
		{"Y1", "a node may create and delete its mirror pods and not update them, also in deletion; intended", "plugin/pkg/admission/noderestriction/admission.go:281"},
	}}
}
