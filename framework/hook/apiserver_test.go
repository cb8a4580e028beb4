package hook_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/hook"
)

// callLikeAPIServer calls an Endpoint with client-go's REST client, configured as
// kube-apiserver configures it for webhooks, and returns the answer decoded.
func callLikeAPIServer(ctx context.Context, endpoint hook.ClientConfig, request, response runtime.Object) error {
	address, err := url.Parse(endpoint.URL)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		return err
	}
	if err := admissionv1beta1.AddToScheme(scheme); err != nil {
		return err
	}
	codec := serializer.NewCodecFactory(scheme).LegacyCodec(admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion)
	config := &rest.Config{
		Host: "https://" + address.Host, APIPath: address.Path, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: endpoint.CABundle},
		ContentConfig: rest.ContentConfig{
			ContentType:          runtime.ContentTypeJSON,
			NegotiatedSerializer: serializer.NegotiatedSerializerWrapper(runtime.SerializerInfo{Serializer: codec}),
		},
	}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	return client.Post().Body(request).Do(ctx).Into(response)
}

// TestFaultsAsClientGoSeesThem: the Faults that keep an API server from reading an
// AdmissionReview of the version asked for.
func TestFaultsAsClientGoSeesThem(t *testing.T) {
	server := start(t)
	for fault, want := range map[hook.Fault]string{
		hook.NoFault:      "",
		hook.HTTP404:      "could not find the requested resource",
		hook.HTTP500:      "an error on the server",
		hook.Redirect:     "302",
		hook.Refused:      "connection refused",
		hook.Reset:        "connection reset by peer",
		hook.Hang:         "deadline exceeded",
		hook.Slow:         "deadline exceeded",
		hook.Empty:        "0-length response",
		hook.NotJSON:      "control characters are not allowed",
		hook.WrongKind:    "NotAnAdmissionReview",
		hook.TLSWrongCA:   "certificate signed by unknown authority",
		hook.TLSExpired:   "certificate has expired",
		hook.TLSWrongName: "doesn't contain any IP SANs",
	} {
		t.Run(string(fault), func(t *testing.T) {
			endpoint, err := server.Register(hook.Hook{
				Owner: "o", Configuration: "c", Webhook: "w-" + string(fault), Phase: framework.Mutating,
				Script: hook.Script{Replies: []hook.Reply{{Fault: fault}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			limit := patience
			if fault == hook.Hang || fault == hook.Slow {
				limit = 100 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			request := &admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: v1, Kind: "AdmissionReview"},
				Request:  &admissionv1.AdmissionRequest{UID: "u-1"},
			}
			response := &admissionv1.AdmissionReview{}
			err = callLikeAPIServer(ctx, endpoint, request, response)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if err == nil && (response.Response == nil || response.Response.UID != "u-1" || !response.Response.Allowed) {
				t.Errorf("got %+v, want u-1 allowed", response.Response)
			}
		})
	}
}

func TestBetaAsClientGoSeesIt(t *testing.T) {
	endpoint, err := start(t).Register(hook.Hook{
		Owner: "o", Configuration: "c", Webhook: "w", Phase: framework.Mutating,
		Script: hook.Script{Replies: []hook.Reply{{Patch: []hook.PatchOperation{{Op: "remove", Path: "/a"}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	request := &admissionv1beta1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1, Kind: "AdmissionReview"},
		Request:  &admissionv1beta1.AdmissionRequest{UID: "u-1"},
	}
	response := &admissionv1beta1.AdmissionReview{}
	if err := callLikeAPIServer(t.Context(), endpoint, request, response); err != nil {
		t.Fatal(err)
	}
	if got := string(response.Response.Patch); got != `[{"op":"remove","path":"/a"}]` {
		t.Errorf("got patch %s, want the one scripted", got)
	}
}
