package pairs

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
)

// decide returns the message of a refusal, or "", and the operations of a JSON patch.
type decide func(*admissionv1.AdmissionRequest) (refusal string, patch []any)

// webhooks are the webhooks of the pairs, by the name of the pair.
func webhooks() map[string]decide {
	return map[string]decide{
		"labels": labels, "images": images, "replicas": replicas, "resources": resources, "hostpaths": hostPaths,
		"names": names, "quantities": quantities, "immutable": immutable, "deletion": deletion, "defaults": defaults,
	}
}

// serve serves the webhooks, each at a path with its name.
func serve(t *testing.T) framework.Endpoint {
	mux := http.NewServeMux()
	for name, decides := range webhooks() {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			var review admissionv1.AdmissionReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
				http.Error(w, "want an AdmissionReview", http.StatusBadRequest)
				return
			}
			response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
			refusal, patch := decides(review.Request)
			if refusal != "" {
				response.Allowed, response.Result = false, &metav1.Status{Message: refusal, Code: http.StatusForbidden}
			}
			if len(patch) > 0 {
				kind := admissionv1.PatchTypeJSONPatch
				response.PatchType = &kind
				response.Patch, _ = json.Marshal(patch)
			}
			review.Request, review.Response = nil, response
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(review)
		})
	}
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	return framework.Endpoint{URL: server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
}

// read reads an object of a request. What is no object is empty.
func read[T any](raw []byte) (object T) {
	_ = json.Unmarshal(raw, &object)
	return object
}

// podOf returns the Pod, or the template of a Deployment or DaemonSet.
func podOf(r *admissionv1.AdmissionRequest) corev1.PodTemplateSpec {
	if r.Kind.Kind == "Pod" {
		pod := read[corev1.Pod](r.Object.Raw)
		return corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	}
	return read[appsv1.Deployment](r.Object.Raw).Spec.Template
}

func labels(r *admissionv1.AdmissionRequest) (string, []any) {
	teams := []string{"blue", "green"}
	switch object := read[metav1.PartialObjectMetadata](r.Object.Raw); {
	case !slices.Contains(teams, object.Labels["team"]):
		return "the label team is blue or green", nil
	case !slices.Contains(teams, podOf(r).Labels["team"]):
		return "the label team of the template is blue or green", nil
	}
	return "", nil
}

func images(r *admissionv1.AdmissionRequest) (string, []any) {
	spec := podOf(r).Spec
	var all []string
	for _, each := range slices.Concat(spec.Containers, spec.InitContainers) {
		all = append(all, each.Image)
	}
	for _, each := range spec.EphemeralContainers {
		all = append(all, each.Image)
	}
	for _, image := range all {
		if !strings.HasPrefix(image, "registry.example.com/") {
			return "images come from registry.example.com", nil
		}
	}
	return "", nil
}

func replicas(r *admissionv1.AdmissionRequest) (string, []any) {
	wanted := read[autoscalingv1.Scale](r.Object.Raw).Spec.Replicas // a Deployment has it at the same place
	if wanted < 2 || wanted > 10 {
		return "want 2 to 10 replicas", nil
	}
	return "", nil
}

func resources(r *admissionv1.AdmissionRequest) (string, []any) {
	spec, most := podOf(r).Spec, resource.MustParse("2Gi")
	for _, each := range slices.Concat(spec.Containers, spec.InitContainers) {
		if limit, has := each.Resources.Limits[corev1.ResourceMemory]; !has || limit.Cmp(most) > 0 {
			return "want a limit of memory of at most 2Gi", nil
		}
	}
	return "", nil
}

func hostPaths(r *admissionv1.AdmissionRequest) (string, []any) {
	if slices.Contains(r.UserInfo.Groups, "storage-admins") {
		return "", nil
	}
	for _, each := range podOf(r).Spec.Volumes {
		if each.HostPath != nil && !strings.HasPrefix(each.HostPath.Path+"/", "/var/log/") {
			return "host paths are in /var/log", nil
		}
	}
	return "", nil
}

func names(r *admissionv1.AdmissionRequest) (string, []any) {
	if !regexp.MustCompile(`^(app|cfg)-[a-z0-9-]+$`).MatchString(read[metav1.PartialObjectMetadata](r.Object.Raw).Name) {
		return "names begin with app- or cfg-", nil
	}
	return "", nil
}

func quantities(r *admissionv1.AdmissionRequest) (string, []any) {
	storage := read[corev1.PersistentVolumeClaim](r.Object.Raw).Spec.Resources.Requests[corev1.ResourceStorage]
	if storage.Cmp(resource.MustParse("100Gi")) > 0 {
		return "want at most 100Gi", nil
	}
	return "", nil
}

func immutable(r *admissionv1.AdmissionRequest) (string, []any) {
	const owner = "example.com/owner"
	if read[metav1.PartialObjectMetadata](r.Object.Raw).Annotations[owner] != read[metav1.PartialObjectMetadata](r.OldObject.Raw).Annotations[owner] {
		return "the owner does not change", nil
	}
	return "", nil
}

func deletion(r *admissionv1.AdmissionRequest) (string, []any) {
	controller := slices.Contains([]string{"namespace-controller", "generic-garbage-collector"}, strings.TrimPrefix(r.UserInfo.Username, "system:serviceaccount:kube-system:"))
	if !controller && read[metav1.PartialObjectMetadata](r.OldObject.Raw).Labels["protected"] == "true" {
		return "is protected", nil
	}
	return "", nil
}

func defaults(r *admissionv1.AdmissionRequest) (_ string, patch []any) {
	object := read[metav1.PartialObjectMetadata](r.Object.Raw)
	put := func(of map[string]string, in, key, value string) {
		if of == nil {
			patch = append(patch, map[string]any{"op": "add", "path": "/metadata/" + in, "value": map[string]string{}})
		}
		patch = append(patch, map[string]any{"op": "add", "path": fmt.Sprintf("/metadata/%s/%s", in, strings.ReplaceAll(key, "/", "~1")), "value": value})
	}
	tier, has := object.Labels["tier"]
	if !has {
		tier = "standard"
		put(object.Labels, "labels", "tier", tier)
	}
	cost := "200"
	if tier == "standard" {
		cost = "100"
	}
	put(object.Annotations, "annotations", "example.com/cost", cost)
	return "", patch
}
