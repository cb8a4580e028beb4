package builtin_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/framework/harness/builtin"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"
)

// decode decodes a manifest of a kind that not every minor of Kubernetes has.
func decode(t *testing.T, manifest string) runtime.Object {
	t.Helper()
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(manifest), nil, nil)
	if runtime.IsNotRegisteredError(err) {
		t.Skipf("MutatingAdmissionPolicy is on by default since Kubernetes 1.36: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// labelling is a plugin that sets a label.
type labelling struct {
	*admission.Handler
	key string
}

func (l labelling) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	metav1.SetMetaDataLabel(&a.GetObject().(*corev1.Pod).ObjectMeta, l.key, "yes")
	return nil
}

// A MutatingAdmissionPolicy changes an object by both kinds of patches, with the OpenAPI of the
// World, and is called again after a later plugin.
func TestMutatingPolicy(t *testing.T) {
	objects := builtin.Stored(t, decode(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: a}
spec:
  reinvocationPolicy: IfNeeded
  matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'applied': has(object.metadata.labels) && 'by' in object.metadata.labels ? 'late' : 'early'}}}"}
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/labels/patched', value: 'yes'}]"}
`), decode(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: a}
spec: {policyName: a}
`))
	w := fakes.NewWorld(t, fakes.WithObjects(append(objects, namespace("default"))...))
	late := harness.FromFactory(func(io.Reader) (admission.Interface, error) {
		return labelling{admission.NewHandler(admission.Create), "by"}, nil
	}).Named("Late")
	h := harness.NewChain(t, harness.Chain{Plugins: append(builtin.Plugins(), late)}, harness.WithWorld(w))
	var result harness.Result
	// The plugin reads the list of schemas in the background, and refuses until it has it.
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		result = h.Do(framework.Create(pod()))
		return result.Allowed(), nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, result)
	}
	if diff := cmp.Diff(map[string]string{"applied": "late", "patched": "yes", "by": "yes"}, harness.Mutated[*corev1.Pod](t, result).Labels); diff != "" {
		t.Errorf("labels, -want +got:\n%s", diff)
	}
	if !result.Reinvoked {
		t.Error("the policy was not called again")
	}
}
