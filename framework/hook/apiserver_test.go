package hook_test

import (
	"context"
	"net/url"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

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
