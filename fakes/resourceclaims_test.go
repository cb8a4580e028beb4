package fakes_test

import (
	"slices"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	applyresourcev1 "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/tools/cache"
)

// The objects of dynamic resource allocation are in clients, informers and the RESTMapper, with
// their scopes and subresources.
func TestDynamicResourceAllocation(t *testing.T) {
	node := "n"
	slice := func(name string, at *string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: at, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "d"}},
		}}
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	w := fakes.NewWorld(t, fakes.WithObjects(class, slice("here", &node), slice("elsewhere", nil)))
	client, ctx := w.Client().ResourceV1(), t.Context()
	var classes []string
	_, err := w.Informers().Resource().V1().DeviceClasses().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		classes = append(classes, object.(*resourcev1.DeviceClass).Name) //nolint:forcetypeassert // classes
	}})
	must(t, 0, err)

	made, err := client.ResourceClaims("default").Create(ctx, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Finalizers: []string{resourcev1.Finalizer}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2},
		}}}},
	}, metav1.CreateOptions{})
	must(t, made, err)
	for _, driver := range []string{"a", "b"} { // a map list with three keys
		status := applyresourcev1.ResourceClaimStatus().WithDevices(applyresourcev1.AllocatedDeviceStatus().WithDriver(driver).WithPool("p").WithDevice("d"))
		must(t, 0, second(client.ResourceClaims("default").ApplyStatus(ctx, applyresourcev1.ResourceClaim("c", "default").WithStatus(status), metav1.ApplyOptions{FieldManager: driver})))
	}
	cached, err := w.Informers().Resource().V1().ResourceClaims().Lister().ResourceClaims("default").Get("c")
	if must(t, cached, err); cached.Spec.Devices.Requests[0].Exactly.Count != 2 || len(cached.Status.Devices) != 2 {
		t.Errorf("the cache has %v, want two devices requested and two in the status", cached)
	}
	here, err := client.ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: resourcev1.ResourceSliceSelectorNodeName + "=n"})
	if must(t, here, err); len(here.Items) != 1 || here.Items[0].Name != "here" {
		t.Errorf("got slices %v of the node, want the one that is here", here.Items)
	}
	must(t, 0, second(client.DeviceClasses().Create(ctx, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "nic"}}, metav1.CreateOptions{})))
	must(t, 0, w.WaitHandlers(ctx))
	if !slices.Equal(classes, []string{"gpu", "nic"}) {
		t.Errorf("handlers got classes %v, want both", classes)
	}
	must(t, 0, client.ResourceClaims("default").Delete(ctx, "c", metav1.DeleteOptions{}))
	if left, err := w.Informers().Resource().V1().ResourceClaims().Lister().List(labels.Everything()); err != nil || len(left) != 1 || left[0].DeletionTimestamp == nil {
		t.Errorf("got %v, %v, want the claim in deletion: it has a finalizer", left, err)
	}
}
