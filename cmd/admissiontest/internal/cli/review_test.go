package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// TestReview: review prints the reviews of the operations, which the types of the API can decode.
func TestReview(t *testing.T) {
	pod := filepath.Join(write(t, map[string]string{"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec: {containers: [{name: c, image: i}]}\n"}), "pod.yaml")
	for name, test := range map[string]struct {
		args        []string
		kind        string
		object, old bool
	}{
		"create": {nil, "Pod", true, false},
		"update": {[]string{"--operation", "update"}, "Pod", true, true},
		"delete": {[]string{"--operation", "DELETE", "--dry-run"}, "Pod", false, true},
		"exec":   {[]string{"--operation", "CONNECT", "--subresource", "exec", "--as", "joe"}, "PodExecOptions", true, false},
		"evict":  {[]string{"--subresource", "eviction"}, "Eviction", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, append([]string{"review", pod}, test.args...)...)
			got.check(t, exitPass)
			var review admissionv1.AdmissionReview
			decoder := json.NewDecoder(strings.NewReader(got.stdout))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&review); err != nil || review.Request == nil {
				t.Fatalf("decode %s: %v", got.stdout, err)
			}
			r := review.Request
			if r.Kind.Kind != test.kind || r.Resource.Resource != "pods" || r.Namespace != "shop" || r.Name != "a" || r.UID == "" ||
				(r.Object.Raw != nil) != test.object || (r.OldObject.Raw != nil) != test.old {
				t.Errorf("got %s", got.stdout)
			}
		})
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"operation":   {[]string{pod, "--operation", "CRATE"}, `did you mean "CREATE"?`},
		"subresource": {[]string{pod, "--subresource", "exec"}, `CREATE of subresource "exec": want status`},
		"old":         {[]string{pod, "--old", pod}, "--old needs --operation UPDATE"},
		"no file":     {nil, "got 0 arguments; want one file"},
		"missing":     {[]string{"none.yaml"}, "none.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t.Context(), nil, append([]string{"review"}, test.args...)...)
			got.check(t, exitUsage)
			if !strings.Contains(got.stderr, test.want) {
				t.Errorf("stderr is %q, want %q in it", got.stderr, test.want)
			}
		})
	}
}
