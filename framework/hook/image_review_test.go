package hook

import "testing"

// A Hook answers an ImageReview with an ImageReview.
func TestImageReview(t *testing.T) {
	received := map[string]any{"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "spec": map[string]any{"namespace": "n"}}
	for name, one := range map[string]struct {
		reply   Reply
		allowed bool
		reason  any
	}{
		"zero":   {Reply{}, true, nil},
		"denied": {Reply{Status: map[string]any{"message": "too old"}}, false, "too old"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := one.reply.review(received)
			if err != nil {
				t.Fatal(err)
			}
			status, _ := got["status"].(map[string]any)
			if got["kind"] != "ImageReview" || status["allowed"] != one.allowed || status["reason"] != one.reason || got["response"] != nil {
				t.Errorf("got %v; want an ImageReview, allowed %t, reason %v", got, one.allowed, one.reason)
			}
		})
	}
	if other := map[string]any{"apiVersion": "imagepolicy.k8s.io/v2", "kind": "ImageReview"}; isImageReview(other) {
		t.Errorf("isImageReview(%v) = true; want only the known version", other)
	}
}
