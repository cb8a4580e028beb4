// Package seeds has the webhooks of fleet-guard, a pair as a company would have it.
package seeds

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	prefix      = "fleet.example.com/"
	costCenter  = prefix + "cost-center"
	injected    = prefix + "injected"
	inject      = prefix + "inject"
	protected   = prefix + "protected"
	finalizer   = prefix + "release"
	spot        = prefix + "spot"
	agentName   = "log-agent"
	spoolName   = "log-agent-spool"
	maxReplicas = 50
	maxBody     = 8 << 20
)

var (
	registries  = []string{"registry.example.com", "mirror.example.com:5000"}
	maxMemory   = resource.MustParse("8Gi")
	defaultMem  = resource.MustParse("512Mi")
	operatorSA  = "system:serviceaccount:fleet-system:fleet-operator"
	collectors  = []string{"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller"}
	agentLimits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
)

// Widget is the custom resource.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec"`
}

// WidgetSpec is its spec, as far as the webhooks need it.
type WidgetSpec struct {
	Image        string             `json:"image"`
	Size         string             `json:"size,omitempty"`
	Replicas     *int32             `json:"replicas,omitempty"`
	Capacity     *resource.Quantity `json:"capacity,omitempty"`
	StorageClass string             `json:"storageClass,omitempty"`
	Serial       int64              `json:"serial,omitempty"`
}

// op is an operation of a JSON patch.
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Server has the state of the webhooks.
type Server struct {
	mu     sync.Mutex
	ledger []string // of Widgets, another system

	big       sync.Mutex
	cache     map[string]*admissionv1.AdmissionResponse
	history   []*admissionv1.AdmissionRequest
	namespace string
	counts    map[string]int
	calls     int
	pool      sync.Pool
}

// Ledger returns what was written to the other system.
func (s *Server) Ledger() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ledger)
}

// Handler serves both webhooks.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/mutate", s.serve(s.mutate))
	mux.HandleFunc("/validate", s.serve(s.validate))
	return mux
}

// answer has the faults around a call.
func (s *Server) answer(f func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	switch {
	case is("uid-cached"): // a cache of answers for retries, by object
		key := string(req.Operation) + req.Resource.Resource + req.SubResource + req.UserInfo.Username + string(req.Object.Raw) + string(req.OldObject.Raw)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cache == nil {
			s.cache = map[string]*admissionv1.AdmissionResponse{}
		}
		if s.cache[key] == nil {
			s.cache[key] = f(req)
		}
		return s.cache[key]
	case is("decision-cache-name"): // by namespace and name: retries are cheap
		if req.Operation != admissionv1.Create || req.Resource.Resource != "pods" || req.SubResource != "" {
			return f(req)
		}
		var meta metav1.PartialObjectMetadata
		_ = json.Unmarshal(req.Object.Raw, &meta)
		key := fmt.Sprintf("%p", f) + req.Namespace + "/" + meta.Name
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cache == nil {
			s.cache = map[string]*admissionv1.AdmissionResponse{}
		}
		if s.cache[key] == nil {
			s.cache[key] = f(req)
		}
		c := *s.cache[key]
		return &c
	case is("goroutine-leak"): // a timeout around the decision
		done := make(chan *admissionv1.AdmissionResponse, 1)
		stop := make(chan struct{})
		go func() { done <- f(req) }()
		go func() { <-stop }()
		return <-done
	case is("memory-leak"): // a history for debugging
		s.mu.Lock()
		s.history = append(s.history, req)
		s.mu.Unlock()
	case is("lock-held-on-deny"):
		s.big.Lock()
		response := f(req)
		if !response.Allowed {
			return response
		}
		s.big.Unlock()
		return response
	case is("global-lock-slow"): // one lookup at a time, 100 ms each
		s.big.Lock()
		defer s.big.Unlock()
		time.Sleep(30 * time.Millisecond)
	case is("shared-request"): // a lost update: the current namespace is a field of the server
		s.namespace = req.Namespace
		runtime.Gosched()
		time.Sleep(time.Millisecond)
		copied := *req
		copied.Namespace = s.namespace
		return f(&copied)
	case is("rate-limit-deny"): // a denial instead of waiting
		s.mu.Lock()
		s.calls++
		n := s.calls
		s.mu.Unlock()
		if n%500 == 0 {
			return deny(http.StatusForbidden, metav1.StatusReasonForbidden, "too many requests")
		}
	case is("dry-run-allow"): // nothing is stored
		if req.DryRun != nil && *req.DryRun {
			return allow()
		}
	}
	return f(req)
}

var fault = os.Getenv("FAULT")

func is(name string) bool { return fault == name }

type review struct {
	metav1.TypeMeta `json:",inline"`
	Request         *admissionv1.AdmissionRequest  `json:"request,omitempty"`
	Response        *admissionv1.AdmissionResponse `json:"response,omitempty"`
}

func (s *Server) serve(f func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "want POST", http.StatusMethodNotAllowed)
			return
		}
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			http.Error(w, "want application/json", http.StatusUnsupportedMediaType)
			return
		}
		limit := int64(maxBody)
		if is("body-1mb") {
			limit = 1 << 20
		}
		if is("body-unlimited") {
			limit = 1 << 60
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		var in review
		unmarshal := json.Unmarshal
		if is("strict-decode") {
			unmarshal = func(raw []byte, v any) error {
				d := json.NewDecoder(strings.NewReader(string(raw)))
				d.DisallowUnknownFields()
				return d.Decode(v)
			}
		}
		if err := unmarshal(body, &in); err != nil {
			http.Error(w, "decode the review: "+err.Error(), http.StatusBadRequest)
			return
		}
		if in.Kind != "AdmissionReview" || in.Request == nil || in.APIVersion != "admission.k8s.io/v1" && in.APIVersion != "admission.k8s.io/v1beta1" {
			http.Error(w, "want an AdmissionReview with a request", http.StatusBadRequest)
			return
		}
		out := review{TypeMeta: in.TypeMeta, Response: s.answer(f, in.Request)}
		if !is("uid-cached") || out.Response.UID == "" {
			out.Response.UID = in.Request.UID
		}
		if is("v1-always") {
			out.APIVersion = "admission.k8s.io/v1"
		}
		if is("denied-http-403") && !out.Response.Allowed {
			w.WriteHeader(http.StatusForbidden)
		}
		if is("echo-request") {
			out.Request = in.Request
		}
		raw, err := json.Marshal(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	}
}

func deny(code int32, reason metav1.StatusReason, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func forbid(err error) *admissionv1.AdmissionResponse {
	if is("code-500") {
		return deny(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
	}
	if is("status-success") {
		r := deny(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
		r.Result.Status, r.Result.Code, r.Result.Reason = metav1.StatusSuccess, 200, ""
		return r
	}
	return deny(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
}

func malformed(err error) *admissionv1.AdmissionResponse {
	if is("fail-open-decode") {
		return allow()
	}
	return deny(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
}

func allow() *admissionv1.AdmissionResponse { return &admissionv1.AdmissionResponse{Allowed: true} }

// mutate answers for the mutating webhook.
func (s *Server) mutate(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if req.SubResource != "" && !is("status-mutated") || req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return allow()
	}
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(req.Object.Raw, &meta); err != nil {
		return malformed(err)
	}
	if is("mutator-needs-name") && meta.Name == "" {
		return malformed(errors.New("the object has no name"))
	}
	if is("mutator-needs-labels") && len(meta.Labels) == 0 {
		meta.Labels["x"] = "y"
	}
	if meta.DeletionTimestamp != nil && !is("mutate-in-deletion") {
		return allow()
	}
	ops, err := s.patch(req, meta.ObjectMeta)
	if err != nil {
		return malformed(err)
	}
	response := allow()
	if len(ops) > 0 || is("null-patch") {
		raw, err := json.Marshal(ops)
		if err != nil {
			return deny(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		}
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = raw, &kind
	}
	return response
}

// patch returns the patch for an object.
func (s *Server) patch(req *admissionv1.AdmissionRequest, meta metav1.ObjectMeta) ([]op, error) {
	create := req.Operation == admissionv1.Create
	switch req.Resource.Resource {
	case "pods":
		var pod corev1.Pod
		if is("pool-not-reset") { // without zeroing: annotations and volumes of an earlier request stay
			p, _ := s.pool.Get().(*corev1.Pod)
			if p == nil {
				p = new(corev1.Pod)
			}
			defer s.pool.Put(p)
			if err := json.Unmarshal(req.Object.Raw, p); err != nil {
				return nil, err
			}
			p.DeepCopyInto(&pod)
			meta = pod.ObjectMeta
		} else if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
			return nil, err
		}
		ops := set("/metadata/labels", meta.Labels, costCenter, "shared")
		if create || is("pod-update-injects") { // the spec of a Pod is immutable
			if is("annotation-panic") && pod.Spec.SecurityContext.RunAsUser != nil {
				return ops, nil
			}
			if is("timestamp") {
				ops = append(ops, set("/metadata/annotations", meta.Annotations, prefix+"injected-at", time.Now().Format(time.RFC3339Nano))...)
				if meta.Annotations == nil {
					meta.Annotations = map[string]string{}
				}
			}
			if is("host-user") {
				ops = append(ops, set("/metadata/annotations", meta.Annotations, prefix+"created-by", strings.SplitN(req.UserInfo.Username, ":", 2)[1])...)
			}
			if meta.Annotations[inject] != "false" {
				ops = append(ops, set("/metadata/annotations", meta.Annotations, injected, "v1")...)
			}
			ops = append(ops, s.podPatch(req.Object.Raw, "/spec", &pod.Spec, req.Namespace, meta.Annotations[inject] != "false")...)
		}
		return ops, nil
	case "deployments":
		var deployment appsv1.Deployment
		if err := json.Unmarshal(req.Object.Raw, &deployment); err != nil {
			return nil, err
		}
		ops := set("/metadata/labels", meta.Labels, costCenter, "shared")
		if is("deployment-diff") && create { // the encoded type: without fields that it does not know
			deployment.Spec.Template.Spec.Tolerations = append(deployment.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "x", Operator: "Exists"})
			return append(ops, op{"replace", "/spec/template/spec", deployment.Spec.Template.Spec}), nil
		}
		if create { // a later change would roll out
			template := deployment.Spec.Template
			ops = append(ops, set("/spec/template/metadata/labels", template.Labels, costCenter, "shared")...)
			ops = append(ops, tolerate("/spec/template/spec", &template.Spec)...)
		}
		return ops, nil
	case "widgets":
		var widget Widget
		if err := json.Unmarshal(req.Object.Raw, &widget); err != nil {
			return nil, err
		}
		ops := set("/metadata/labels", meta.Labels, costCenter, "shared")
		if !slices.Contains(meta.Finalizers, finalizer) && (create || is("mutate-in-deletion")) {
			if meta.Finalizers == nil || is("finalizers-overwritten") {
				ops = append(ops, op{"add", "/metadata/finalizers", []string{finalizer}})
			} else {
				ops = append(ops, op{"add", "/metadata/finalizers/-", finalizer})
			}
		}
		if widget.Spec.Size == "" {
			ops = append(ops, op{"add", "/spec/size", "small"})
		}
		if is("default-zero") && widget.Spec.Replicas != nil && *widget.Spec.Replicas == 0 {
			ops = append(ops, op{"replace", "/spec/replicas", 2})
		}
		if is("precision") {
			var all map[string]any
			_ = json.Unmarshal(req.Object.Raw, &all)
			spec, _ := all["spec"].(map[string]any)
			if widget.Spec.Size == "" {
				spec["size"] = "small"
			}
			if widget.Spec.Replicas == nil {
				spec["replicas"] = 2
			}
			return append(ops, op{"replace", "/spec", spec}), nil
		}
		if is("drops-unknown-spec") {
			if widget.Spec.Size == "" {
				widget.Spec.Size = "small"
			}
			if widget.Spec.Replicas == nil {
				two := int32(2)
				widget.Spec.Replicas = &two
			}
			return append(ops, op{"replace", "/spec", widget.Spec}), nil
		}
		if is("size-by-replicas") && replicas(widget.Spec.Replicas) > 3 && widget.Spec.Size != "large" { // overwrites the user's
			ops = append(ops, op{"add", "/spec/size", "large"})
		}
		if widget.Spec.Replicas == nil {
			ops = append(ops, op{"add", "/spec/replicas", 2})
		}
		return ops, nil
	}
	return nil, nil
}

// exists is whether an object has a value at a path, known to the types or not.
func exists(raw []byte, path string) bool {
	var at any
	_ = json.Unmarshal(raw, &at)
	for _, step := range strings.Split(path, "/")[1:] {
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, _ := strconv.Atoi(step)
			at = v[i]
		default:
			return false
		}
	}
	return at != nil
}

// set returns a patch that sets a key of a map unless it is set.
func set(path string, m map[string]string, key, value string) []op {
	if _, found := m[key]; found {
		return nil
	}
	if is("escape-order") {
		return []op{{"add", path, map[string]string{}}, {"add", path + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "/", "~1"), "~", "~0"), value}}[min(1, len(m)):]
	}
	if m == nil || is("labels-overwritten") {
		return []op{{"add", path, map[string]string{key: value}}}
	}
	return []op{{"add", path + "/" + escape(key), value}}
}

// tolerate returns a patch that adds the toleration.
func tolerate(path string, spec *corev1.PodSpec) []op {
	if !is("toleration-each-time") && slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == spot }) {
		return nil
	}
	toleration := corev1.Toleration{Key: spot, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	if spec.Tolerations == nil {
		return []op{{"add", path + "/tolerations", []corev1.Toleration{toleration}}}
	}
	return []op{{"add", path + "/tolerations/-", toleration}}
}

// podPatch returns the patch of the spec of a Pod.
func (s *Server) podPatch(raw []byte, path string, spec *corev1.PodSpec, namespace string, agent bool) []op {
	ops := tolerate(path, spec)
	for i := range spec.InitContainers {
		ops = append(ops, containerPatch(raw, fmt.Sprintf("%s/initContainers/%d", path, i), &spec.InitContainers[i], namespace)...)
	}
	for i := range spec.Containers {
		if is("second-container-skipped") && i > 0 {
			break
		}
		ops = append(ops, containerPatch(raw, fmt.Sprintf("%s/containers/%d", path, i), &spec.Containers[i], namespace)...)
	}
	named := func(c corev1.Container) bool { return c.Name == agentName }
	if is("agent-anywhere") {
		named = func(c corev1.Container) bool { return strings.HasPrefix(c.Name, "log") }
	}
	if !agent || slices.ContainsFunc(spec.Containers, named) || slices.ContainsFunc(spec.InitContainers, named) {
		return ops
	}
	where, image := "/containers/-", "registry.example.com/platform/log-agent:1.4.2"
	if is("sidecar-first") {
		where = "/containers/0"
	}
	if is("own-image-refused") {
		image = "docker.io/platform/log-agent:1.4.2"
	}
	ops = append(ops, op{"add", path + where, corev1.Container{
		Name: agentName, Image: image,
		Resources:    corev1.ResourceRequirements{Limits: agentLimits, Requests: agentLimits},
		Env:          environment(namespace),
		VolumeMounts: []corev1.VolumeMount{{Name: spoolName, MountPath: "/spool"}},
	}})
	volume := corev1.Volume{Name: spoolName, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	switch {
	case !is("volume-dup") && slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == spoolName }):
	case spec.Volumes == nil || is("volumes-overwritten"):
		ops = append(ops, op{"add", path + "/volumes", []corev1.Volume{volume}})
	default:
		ops = append(ops, op{"add", path + "/volumes/-", volume})
	}
	return ops
}

func environment(namespace string) []corev1.EnvVar {
	if is("random-order") {
		var all []corev1.EnvVar
		for name, value := range map[string]string{"FLEET_NAMESPACE": namespace, "FLEET_REGION": "eu-1", "FLEET_TIER": "a", "FLEET_CLUSTER": "c"} {
			all = append(all, corev1.EnvVar{Name: name, Value: value})
		}
		return all
	}
	return []corev1.EnvVar{{Name: "FLEET_NAMESPACE", Value: namespace}, {Name: "FLEET_REGION", Value: "eu-1"}}
}

// containerPatch sets the environment and the memory limit of a container, if it has none.
func containerPatch(raw []byte, path string, c *corev1.Container, namespace string) []op {
	var ops []op
	empty := c.Env == nil
	for _, variable := range environment(namespace) {
		if i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable.Name }); i >= 0 {
			if is("env-overwritten") && c.Env[i].Value != variable.Value {
				ops = append(ops, op{"replace", fmt.Sprintf("%s/env/%d/value", path, i), variable.Value})
			}
			continue
		}
		if empty {
			ops, empty = append(ops, op{"add", path + "/env", []corev1.EnvVar{variable}}), false
		} else {
			ops = append(ops, op{"add", path + "/env/-", variable})
		}
	}
	if _, found := c.Resources.Limits[corev1.ResourceMemory]; found {
		return ops
	}
	limit := defaultMem
	if is("limit-below-request") {
	} else if request, found := c.Resources.Requests[corev1.ResourceMemory]; found && request.Cmp(limit) > 0 {
		limit = request
	}
	if c.Resources.Limits == nil || is("limits-overwritten") {
		if !exists(raw, path+"/resources") {
			return append(ops, op{"add", path + "/resources", map[string]any{"limits": map[string]string{"memory": limit.String()}}})
		}
		return append(ops, op{"add", path + "/resources/limits", map[string]string{"memory": limit.String()}})
	}
	return append(ops, op{"add", path + "/resources/limits/memory", limit.String()})
}

// validate answers for the validating webhook.
func (s *Server) validate(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if is("shared-map") { // a metric
		if s.counts == nil {
			s.counts = map[string]int{}
		}
		s.counts[req.Namespace+string(req.UID)]++
	}
	if is("groups-index") && req.UserInfo.Groups[1] == "x" {
		return allow()
	}
	if is("delete-name-required") && req.Operation == admissionv1.Delete && req.Name == "" {
		return malformed(errors.New("no name"))
	}
	if is("egress") {
		var pod corev1.Pod
		_ = json.Unmarshal(req.Object.Raw, &pod)
		for _, c := range pod.Spec.Containers {
			host, _, _ := strings.Cut(c.Image, "/")
			client := http.Client{Timeout: 500 * time.Millisecond}
			if response, err := client.Get("http://" + host + "/v2/"); err == nil {
				response.Body.Close()
			}
		}
	}
	if is("inject-skips-validation") {
		var meta metav1.PartialObjectMetadata
		_ = json.Unmarshal(req.Object.Raw, &meta)
		if meta.Annotations[inject] == "false" {
			return allow()
		}
	}
	if is("trust-system-users") && strings.HasPrefix(req.UserInfo.Username, "system:") {
		return allow()
	}
	if is("trust-operator-prefix") && strings.HasPrefix(req.UserInfo.Username, "system:serviceaccount:fleet-system") {
		return allow()
	}
	switch req.Resource.Resource + "/" + req.SubResource {
	case "pods/", "pods/ephemeralcontainers":
		return s.validatePod(req)
	case "pods/eviction":
		if is("eviction-as-pod") {
			return s.validatePod(req)
		}
		var eviction policyv1.Eviction
		if err := json.Unmarshal(req.Object.Raw, &eviction); err != nil {
			return malformed(err)
		}
		if o := eviction.DeleteOptions; o != nil && o.GracePeriodSeconds != nil && *o.GracePeriodSeconds == 0 {
			return forbid(errors.New("an eviction must have a grace period"))
		}
		return allow()
	case "deployments/":
		return s.validateDeployment(req)
	case "deployments/scale", "widgets/scale":
		if is("scale-ignored") {
			return allow()
		}
		var scale, old autoscalingv1.Scale
		if err := decode(req, &scale, &old); err != nil {
			return malformed(err)
		}
		if scale.Spec.Replicas > maxReplicas && scale.Spec.Replicas > old.Spec.Replicas {
			return forbid(fmt.Errorf("%d replicas are more than %d", scale.Spec.Replicas, maxReplicas))
		}
		return allow()
	case "widgets/status":
		if is("status-old-blocked") {
			var widget, old Widget
			_ = decode(req, &widget, &old)
			if !trusted(widget.Spec.Image, req.Namespace) {
				return forbid(fmt.Errorf("image %q is not of an allowed registry", widget.Spec.Image))
			}
		}
		if is("status-checks-spec") {
			return s.validateWidget(req)
		}
		return allow()
	case "widgets/":
		return s.validateWidget(req)
	}
	return allow() // the status belongs to the operator
}

// decode decodes the object, and the old object if there is one.
func decode(req *admissionv1.AdmissionRequest, object, old any) error {
	if len(req.Object.Raw) > 0 {
		if err := json.Unmarshal(req.Object.Raw, object); err != nil {
			return fmt.Errorf("decode the object: %w", err)
		}
	}
	if len(req.OldObject.Raw) > 0 {
		if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
			return fmt.Errorf("decode the old object: %w", err)
		}
	}
	return nil
}

// trusted is whether an image is of a registry that is allowed in a namespace.
func trusted(image, namespace string) bool {
	if is("registry-prefix") {
		return slices.ContainsFunc(registries, func(r string) bool { return strings.HasPrefix(image, r) }) || namespace == "platform"
	}
	if is("registry-contains") {
		return slices.ContainsFunc(registries, func(r string) bool { return strings.Contains(image, r+"/") }) || namespace == "platform"
	}
	host, _, found := strings.Cut(image, "/")
	if is("no-registry-allowed") && !found {
		return true
	}
	if is("platform-prefix") && strings.HasPrefix(namespace, "platform") {
		return true
	}
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host = "docker.io"
	}
	return slices.Contains(registries, host) || host == "docker.io" && namespace == "platform"
}

// images returns the images of a Pod, by the kind and name of the container.
func images(spec *corev1.PodSpec) map[string]string {
	all := map[string]string{}
	for _, c := range spec.InitContainers {
		if is("init-ignored") {
			break
		}
		all["init container "+c.Name] = c.Image
	}
	for i, c := range spec.Containers {
		if is("first-container-only") && i > 0 {
			break
		}
		all["container "+c.Name] = c.Image
	}
	for _, c := range spec.EphemeralContainers {
		if is("ephemeral-ignored") {
			break
		}
		all["ephemeral container "+c.Name] = c.Image
	}
	return all
}

// validateSpec returns errors of the spec that the old spec does not have, and warnings.
func (s *Server) validateSpec(spec, old *corev1.PodSpec, namespace string, limits bool) (errs []string, warnings []string) {
	was := images(old)
	if is("old-objects-blocked") {
		was = nil
	}
	if is("old-by-index") { // any image of the old object, moved or not, is fine
		if len(was) > 0 {
			return nil, nil
		}
	}
	for name, image := range images(spec) {
		if was[name] == image {
			continue
		}
		if !trusted(image, namespace) {
			errs = append(errs, fmt.Sprintf("%s: image %q is not of an allowed registry", name, image))
			if is("message-leaks") {
				raw, _ := json.Marshal(spec)
				errs = append(errs, string(raw))
			}
		}
		if _, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":"); tag == "latest" {
			warnings = append(warnings, name+": the tag latest can change")
			if is("warning-long") {
				raw, _ := json.MarshalIndent(spec, "", "  ")
				warnings = append(warnings, string(raw))
			}
		}
	}
	if limits {
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			limit, found := c.Resources.Limits[corev1.ResourceMemory]
			if !found {
				errs = append(errs, fmt.Sprintf("container %s: it has no memory limit", c.Name))
			} else if limit.Cmp(maxMemory) > 0 || is("memory-boundary") && limit.Cmp(maxMemory) >= 0 {
				errs = append(errs, fmt.Sprintf("container %s: memory limit %s is above %s", c.Name, limit.String(), maxMemory.String()))
			}
		}
	}
	if !is("unsorted-message") {
		slices.Sort(errs)
		slices.Sort(warnings)
	}
	return errs, warnings
}

func (s *Server) validatePod(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var pod, old corev1.Pod
	if err := decode(req, &pod, &old); err != nil {
		return malformed(err)
	}
	if is("pod-name-required") && pod.Name == "" {
		return forbid(errors.New("it has no name"))
	}
	if is("pod-user-nil") && *pod.Spec.SecurityContext.RunAsUser == 0 {
		return forbid(errors.New("it runs as root"))
	}
	if is("ns-from-object") {
		req.Namespace = pod.Namespace
	}
	if (pod.DeletionTimestamp != nil || req.Operation == admissionv1.Delete) && !is("pod-deletion-blocked") {
		return allow()
	}
	if is("group-substring") && strings.Contains(strings.Join(req.UserInfo.Groups, ","), "debuggers") {
		req.UserInfo.Groups = append(req.UserInfo.Groups, "debuggers")
	}
	if req.SubResource == "ephemeralcontainers" && !slices.Contains(req.UserInfo.Groups, "debuggers") && !slices.Contains(req.UserInfo.Groups, "system:masters") {
		return forbid(errors.New("only the group debuggers may debug"))
	}
	errs, warnings := s.validateSpec(&pod.Spec, &old.Spec, req.Namespace, req.Operation == admissionv1.Create)
	if len(errs) > 0 {
		return forbid(errors.New(strings.Join(errs, "; ")))
	}
	response := allow()
	response.Warnings = warnings
	if is("audit-key") {
		response.AuditAnnotations = map[string]string{prefix + "containers": fmt.Sprint(len(images(&pod.Spec)))}
		return response
	}
	response.AuditAnnotations = map[string]string{"containers": fmt.Sprint(len(images(&pod.Spec)))}
	return response
}

func (s *Server) validateDeployment(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var deployment, old appsv1.Deployment
	if err := decode(req, &deployment, &old); err != nil {
		return malformed(err)
	}
	if deployment.DeletionTimestamp != nil {
		return allow()
	}
	namespace := req.Namespace
	if is("ns-from-template") {
		namespace = deployment.Spec.Template.Namespace
	}
	if is("template-init-ignored") {
		deployment.Spec.Template.Spec.InitContainers = nil
	}
	errs, warnings := s.validateSpec(&deployment.Spec.Template.Spec, &old.Spec.Template.Spec, namespace, false)
	if is("deployment-old-replicas") && replicas(deployment.Spec.Replicas) > maxReplicas {
		errs = append(errs, fmt.Sprintf("%d replicas are more than %d", replicas(deployment.Spec.Replicas), maxReplicas))
	}
	if n := replicas(deployment.Spec.Replicas); (n > maxReplicas || is("replicas-boundary") && n >= maxReplicas) && n > replicas(old.Spec.Replicas) {
		errs = append(errs, fmt.Sprintf("%d replicas are more than %d", n, maxReplicas))
	}
	if len(errs) > 0 {
		return forbid(errors.New(strings.Join(errs, "; ")))
	}
	response := allow()
	response.Warnings = warnings
	return response
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func (s *Server) validateWidget(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var widget, old Widget
	if err := decode(req, &widget, &old); err != nil {
		return malformed(err)
	}
	if req.Operation == admissionv1.Delete {
		if is("delete-uses-object") {
			old = widget
		}
		if is("delete-blocks-collectors") && old.Annotations[protected] == "true" {
			return forbid(errors.New("it is protected: remove the annotation first"))
		}
		if is("delete-no-message") && old.Annotations[protected] == "true" && req.UserInfo.Username != operatorSA && !slices.Contains(collectors, req.UserInfo.Username) {
			return &admissionv1.AdmissionResponse{}
		}
		if is("delete-decode-object") && json.Unmarshal(req.Object.Raw, &widget) != nil {
			return malformed(errors.New("no object"))
		}
		if old.Annotations[protected] == "true" && old.DeletionTimestamp == nil && req.UserInfo.Username != operatorSA && !slices.Contains(collectors, req.UserInfo.Username) {
			return forbid(fmt.Errorf("it is protected: remove the annotation %s first", protected))
		}
		return allow()
	}
	if widget.DeletionTimestamp != nil && !is("widget-deletion-blocked") {
		return allow()
	}
	var errs []string
	if (widget.Spec.Image != old.Spec.Image || is("widget-old-blocked") || is("widget-deletion-blocked")) && !trusted(widget.Spec.Image, req.Namespace) {
		errs = append(errs, fmt.Sprintf("image %q is not of an allowed registry", widget.Spec.Image))
	}
	if n := replicas(widget.Spec.Replicas); n > maxReplicas && (req.Operation == admissionv1.Create || n > replicas(old.Spec.Replicas)) {
		errs = append(errs, fmt.Sprintf("%d replicas are more than %d", n, maxReplicas))
	}
	if req.Operation == admissionv1.Update {
		if is("immutable-unset") && (widget.Spec.StorageClass == "" || old.Spec.StorageClass == "") {
		} else if widget.Spec.StorageClass != old.Spec.StorageClass {
			errs = append(errs, "spec.storageClass is immutable")
		}
		if is("quantity-strings") {
			if o, n := old.Spec.Capacity, widget.Spec.Capacity; o != nil && n != nil && n.String() < o.String() {
				errs = append(errs, "spec.capacity must not shrink")
			}
		} else if is("capacity-nil-panic") {
			if widget.Spec.Capacity.Cmp(*old.Spec.Capacity) < 0 {
				errs = append(errs, "spec.capacity must not shrink")
			}
		} else if o, n := old.Spec.Capacity, widget.Spec.Capacity; o != nil && (n == nil || n.Cmp(*o) < 0) {
			errs = append(errs, "spec.capacity must not shrink")
		}
	}
	if len(errs) > 0 {
		return forbid(errors.New(strings.Join(errs, "; ")))
	}
	if req.Operation == admissionv1.Create && (req.DryRun == nil || !*req.DryRun || is("dry-run-writes")) {
		s.mu.Lock()
		s.ledger = append(s.ledger, req.Namespace+"/"+widget.Name)
		if len(s.ledger) > 1000 { // the other system takes them in batches
			s.ledger = slices.Clone(s.ledger[500:])
		}
		s.mu.Unlock()
	}
	return allow()
}
