// Package knative tests webhooks that are written with knative.dev/pkg/webhook, with its versions of Kubernetes, as their
// repository would.
package knative

import (
	"context"
	"net/http"
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/pkg/apis"
	_ "knative.dev/pkg/client/injection/kube/client/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/mutatingwebhookconfiguration/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration/fake"
	_ "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret/fake"
	"knative.dev/pkg/logging"
	fake "knative.dev/pkg/reconciler/testing"
	_ "knative.dev/pkg/system/testing"
	knative "knative.dev/pkg/webhook"
	"knative.dev/pkg/webhook/resourcesemantics"
	"knative.dev/pkg/webhook/resourcesemantics/defaulting"
	"knative.dev/pkg/webhook/resourcesemantics/validation"

	"github.com/admissiontest/admissiontest/hack/importers"
	"github.com/admissiontest/admissiontest/suites/webhook"
)

const project = "knative.dev/pkg"

// Adding the conformance suite to knative.dev/pkg does not change its versions.
func TestVersions(t *testing.T) { importers.Versions(t, project) }

// Channel is a custom resource: testdata/crd.yaml.
type Channel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   ChannelSpec    `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

type ChannelSpec struct {
	Partitions int64  `json:"partitions,omitempty"`
	Retention  string `json:"retention,omitempty"`
}

func (c *Channel) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status = runtime.DeepCopyJSON(c.Status)
	return &out
}

// SetDefaults does nothing: see setDefaults.
func (c *Channel) SetDefaults(context.Context) {}

// Validate refuses too many partitions, unless the object has so many already.
func (c *Channel) Validate(ctx context.Context) *apis.FieldError {
	if apis.IsInUpdate(ctx) && apis.GetBaseline(ctx).(*Channel).Spec.Partitions == c.Spec.Partitions {
		return nil
	}
	if c.Spec.Partitions < 0 || c.Spec.Partitions > 100 {
		return apis.ErrOutOfBoundsValue(c.Spec.Partitions, 0, 100, "spec.partitions")
	}
	return nil
}

// setDefaults sets the retention, but not if only the status changes, or while the object is deleted. It is a callback for
// unstructured objects: with SetDefaults, an object loses the fields that Channel does not have.
func setDefaults(ctx context.Context, channel *unstructured.Unstructured) error {
	_, found, err := unstructured.NestedString(channel.Object, "spec", "retention")
	if err != nil || found || apis.IsInStatusUpdate(ctx) || channel.GetDeletionTimestamp() != nil {
		return err
	}
	return unstructured.SetNestedField(channel.Object, "24h", "spec", "retention")
}

// handler serves both webhooks, with clients and informers that have no objects.
func handler(t *testing.T) http.Handler {
	t.Helper()
	ctx, _ := fake.SetupFakeContext(t)
	ctx = logging.WithLogger(knative.WithOptions(ctx, knative.Options{SecretName: "channels"}), zap.NewNop().Sugar())
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Channel"}
	types := map[schema.GroupVersionKind]resourcesemantics.GenericCRD{kind: &Channel{}}
	callbacks := map[schema.GroupVersionKind]defaulting.Callback{kind: defaulting.NewCallback(setDefaults, knative.Create, knative.Update)}
	made, err := knative.New(ctx, []any{
		defaulting.NewAdmissionController(ctx, "channels.example.com", "/defaulting", nil, nil, false, callbacks).Reconciler,
		validation.NewAdmissionController(ctx, "channels.example.com", "/validation", types, nil, false).Reconciler,
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestContract checks the rules for webhooks. The waivers are findings: docs/findings.md.
func TestContract(t *testing.T) {
	webhook.Run(t, webhook.Subject{
		Handler:        handler(t),
		Configurations: webhook.Files("testdata/*.yaml"),
		Allow:          webhook.SampleFiles("testdata/allow/good.yaml"),
		Reject:         []webhook.Sample{{Manifest: webhook.Manifest{File: "testdata/reject/bad.yaml"}, Message: "expected 0 <= 200 <= 100: spec.partitions"}},
	},
		webhook.Waive("malformed-reviews-are-refused", "webhook/admission.go uses the request without a check for nil"),
		webhook.Waive("large-reviews-are-decided", "webhook/webhook.go reads at most 3 MiB"),
	)
}
