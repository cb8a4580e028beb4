package check

import (
	"net/textproto"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// review is what an API server sends to a webhook: an AdmissionReview, or an ImageReview.
type review struct {
	admissionv1.AdmissionReview `json:",inline"`
	Spec                        imagepolicyv1alpha1.ImageReviewSpec   `json:"spec"`
	Status                      imagepolicyv1alpha1.ImageReviewStatus `json:"status"`
}

// response is the response of a webhook. Its patch is a list of operations.
type response struct {
	admissionv1.AdmissionResponse `json:",inline"`
	Patch                         []any `json:"patch"`
}

// auditEvent is what an expectation of an audit event is compared with.
type auditEvent struct {
	Level          string            `json:"level"`
	Annotations    map[string]string `json:"annotations"`
	RequestObject  any               `json:"requestObject"`
	ResponseObject any               `json:"responseObject"`
}

// refusal is what the expectation of a refusal by a plugin is compared with.
type refusal struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// sample is a sample of a metric.
type sample struct {
	Labels  map[string]string `json:"labels"`
	Value   float64           `json:"value"`
	Buckets []float64         `json:"buckets"`
}

// headers are the HTTP headers of calls that an API server can send, also those by which a proxy or a
// client says who the user is.
func headers() []string {
	return []string{
		"Accept", "Accept-Encoding", "Authorization", "Baggage", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie",
		"Forwarded", "Impersonate-Group", "Impersonate-Uid", "Impersonate-User", "Traceparent", "Tracestate", "Transfer-Encoding",
		"Upgrade", "User-Agent", "Via", "X-Forwarded-For", "X-Remote-Group", "X-Remote-Uid", "X-Remote-User", "X-Request-Id",
	}
}

// calls checks expected calls of webhooks.
func (c *checker) calls(n *strictyaml.Node, where *decode.Place) {
	for i, call := range n.Items {
		here := where.Item(i)
		c.calledWebhook(call)
		c.calledWebhook(call.Get("webhook"))
		c.Enum(call, "phase", []string{string(framework.Mutating), string(framework.Validating)})
		for _, name := range []string{"review", "request", "query", "header", "response"} {
			c.notEmpty(call.Get(name), here.Field(name))
			c.Expected(call.Get(name), here.Field(name))
		}
		for _, name := range []string{"path", "proto", "serverName", "protocols", "clientCertificate", "connection", "code", "latencyMillis", "requestBytes", "responseBytes"} {
			c.Expected(call.Get(name), here.Field(name))
		}
		for _, name := range []string{"path", "proto", "connection", "requestBytes"} {
			c.anyValue(call.Get(name), here.Field(name))
		}
		for _, name := range []string{"code", "latencyMillis", "requestBytes", "responseBytes"} {
			c.anyNumber(call.Get(name), here.Field(name))
		}
		c.Fields(call.Get("review"), here.Field("review"), reflect.TypeFor[review](), "an AdmissionReview")
		c.Fields(call.Get("request"), here.Field("request"), reflect.TypeFor[admissionv1.AdmissionRequest](), "the request of an AdmissionReview")
		c.Fields(call.Get("response"), here.Field("response"), reflect.TypeFor[response](), "the response of an AdmissionReview")
		c.Keys(call.Get("header"), here.Field("header"), headers(), textproto.CanonicalMIMEHeaderKey, "header")
		c.Keys(call.Get("query"), here.Field("query"), []string{"timeout"}, func(name string) string { return name }, "query parameter")
	}
}
