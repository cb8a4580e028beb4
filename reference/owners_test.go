package reference

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/suites/contract"
)

// ownedBy gives a pod an owner, whose deletion it may block.
func ownedBy(version, kind string, blocks bool) func(*core.Pod) {
	return func(pod *core.Pod) {
		owner := metav1.OwnerReference{APIVersion: version, Kind: kind, Name: "owner", UID: nodeUID}
		if blocks {
			owner.BlockOwnerDeletion = &blocks
		}
		pod.OwnerReferences = []metav1.OwnerReference{owner}
	}
}

func ownersEntry() entry {
	subject := kubeSubject("OwnerReferencesPermissionEnforcement")
	subject.Subresources = []string{contract.AnySubresource} // it looks at the metadata of each object
	subject.Inject = func(*fakes.World) []fakes.Injector {
		return []fakes.Injector{fakes.InjectAuthorizer(fakes.Deny().
			Unless("deleter", "delete", "pods").Unless("controller", "delete", "pods").
			Unless("controller", "update", "replicasets/finalizers").Unless("controller", "update", "nodes/finalizers").
			Unless("root", "*", "*"))}
	}
	set, node := ownedBy("apps/v1", "ReplicaSet", true), ownedBy("v1", "Node", true)
	owned, loose := ownedBy("apps/v1", "ReplicaSet", false), plainPod("default", "p")
	by := func(edit func(*core.Pod)) *core.Pod { return podWith("default", "p", edit) }
	subject.Allow = []framework.Request{
		framework.Create(loose).As("jane"), framework.Create(by(owned)).As("jane"), framework.UpdateWith(by(set), labelPod).As("jane"),
		framework.UpdateWith(loose, owned).As("deleter"), framework.UpdateWith(by(set), owned).As("deleter"), framework.CreateOnUpdate(by(set)).As("controller"),
		framework.Create(by(node)).As("controller"), framework.UpdateWith(loose, set).As("controller"), framework.UpdateWith(loose, set).As("root"),
		framework.UpdateWith(loose, set).WithSubresource("status").As("jane"), bindingOf(by(set), "node").As("jane"),
		framework.Delete(by(set)).As("jane"),
	}
	subject.Reject = []framework.Request{
		framework.UpdateWith(loose, owned).As("jane"), framework.UpdateWith(by(owned), func(pod *core.Pod) { pod.OwnerReferences[0].UID = podUID }).As("jane"),
		framework.Create(by(set)).As("jane"), framework.UpdateWith(loose, set).As("deleter"), framework.UpdateWith(by(owned), set).As("deleter"), framework.Create(by(node)).As("deleter"),
		framework.Create(by(ownedBy("example.com/v1", "Unknown", true))).As("controller"), framework.Create(by(ownedBy("a/b/c", "Odd", true))).As("controller"),
		framework.UpdateWith(loose, set).WithSubresource("ephemeralcontainers").As("jane"),
	}
	return entry{subject: subject, waivers: []waiver{
		{"S1", "it checks the owners of objects of every resource, including custom resources; this is its purpose", "plugin/pkg/admission/gc/gc_admission.go:96"},
	}}
}
