package hook

// isImageReview reports whether a review is what the admission plugin ImagePolicyWebhook
// sends to its backend. A Hook can be this backend: a kubeconfig with its URL leads to it.
// See https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#imagepolicywebhook
func isImageReview(review map[string]any) bool {
	return review["kind"] == "ImageReview" && review["apiVersion"] == "imagepolicy.k8s.io/v1alpha1"
}

// imageReview returns the ImageReview of a Reply to a received one: of the response to an
// AdmissionReview it has allowed, auditAnnotations, and the message as the reason.
func imageReview(received map[string]any, r Reply, response map[string]any) map[string]any {
	status := map[string]any{"allowed": response["allowed"]}
	if message, ok := r.Status["message"]; ok {
		status["reason"] = message
	}
	if r.AuditAnnotations != nil {
		status["auditAnnotations"] = r.AuditAnnotations
	}
	return map[string]any{"apiVersion": received["apiVersion"], "kind": "ImageReview", "spec": received["spec"], "status": status}
}
