package rules_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/admissiontest/admissiontest/suites/webhook/internal/check"
)

// incoming is a review that a webhook has received.
type incoming struct {
	raw                               []byte
	review, request                   map[string]any
	object, old                       map[string]any
	operation, subresource, kind, uid string
	dryRun                            bool
	agent                             string // the User-Agent
	end                               <-chan struct{}
}

// outgoing is what a webhook answers.
type outgoing struct {
	status     int // 0 means 200
	apiVersion string
	patch      []map[string]any
	patchType  bool // also without a patch
	response   map[string]any
}

func (o *outgoing) deny(code int, message string) {
	o.response["allowed"], o.response["status"] = false, map[string]any{"code": code, "message": message, "reason": "Forbidden"}
}

func (o *outgoing) allow() {
	delete(o.response, "status")
	o.response["allowed"] = true
}

func (o *outgoing) denied() bool { return o.response["allowed"] == false }

func (o *outgoing) operation(op, path string, value any) {
	one := map[string]any{"op": op, "path": path}
	if op != "remove" {
		one["value"] = value
	}
	o.patch = append(o.patch, one)
}

// sound is a correct pair of webhooks. The mutating one sets a label, and the imagePullPolicy of new containers. The
// validating one denies images named bad, and images of other registries than fixed.example.com.
type sound struct {
	// fault changes one of them. The others are what the fault needs.
	fault fault
	mu    sync.Mutex
	last  string
	kept  [][]byte
	wrote int
	turn  int
	calls int // that have not returned
	// gate is closed when what the webhooks wait for answers. Nil means that it answers.
	gate chan struct{}
}

// stall implements Stall of a Subject.
func (s *sound) stall() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
	return sync.OnceFunc(func() { close(s.gate) })
}

// wait waits for what the webhooks need.
func (s *sound) wait(end <-chan struct{}) {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate == nil {
		return
	}
	if s.fault.patient {
		end = nil
	}
	select {
	case <-gate:
	case <-end:
	}
}

// fault makes a correct webhook break one rule.
type fault struct {
	// before can answer the HTTP request itself, and returns true then.
	before func(*sound, http.ResponseWriter, *http.Request) bool
	// mutate and validate change an answer.
	mutate, validate func(*sound, incoming, *outgoing)
	// unlimited reads all of a body, careless decodes any content type, and trusting takes a review without a request.
	unlimited, careless, trusting bool
	// small refuses a body of 3 MiB, and locked reads a body with a lock. Lost answers at any path. Patient waits after its
	// caller has given up. Blind takes an object of another type for none. Everything is called for every kind.
	small, locked, lost, patient, blind, everything bool
	// ignored are containers of pods that are not checked: initContainers, or all behind the first one.
	ignored string
	// closed does not look at subresources. Alone is not checked beside others, which need memory too.
	closed, alone bool
	// mirrors changes mirror pods too, afresh adds labels without their parent, and marked stops at the own label.
	mirrors, parentless, marked bool
	// late and old: the validation of objects in deletion, and of what the old object has too.
	late, old bool
}

const label = "sound.example.com/seen"

// ServeHTTP implements http.Handler.
func (s *sound) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.fault.before != nil && s.fault.before(s, w, r) {
		return
	}
	if !s.fault.careless && r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "want application/json", http.StatusUnsupportedMediaType)
		return
	}
	raw, err := s.read(w, r)
	var in incoming
	if err == nil {
		in, err = s.decode(raw)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in.agent, in.end = r.Header.Get("User-Agent"), r.Context().Done()
	s.wait(in.end)
	out := &outgoing{apiVersion: fmt.Sprint(in.review["apiVersion"]), response: map[string]any{"uid": in.uid, "allowed": true}}
	switch {
	case r.URL.Path == "/mutate":
		s.mutate(in, out)
		if s.fault.mutate != nil {
			s.fault.mutate(s, in, out)
		}
	case r.URL.Path != "/validate" && !s.fault.lost:
		http.NotFound(w, r)
		return
	default:
		s.validate(in, out)
		if s.fault.validate != nil {
			s.fault.validate(s, in, out)
		}
	}
	out.write(w)
}

func (s *sound) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if s.fault.locked {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	limit := int64(7 << 20)
	if s.fault.small {
		limit = 3 << 20
	}
	if s.fault.unlimited {
		return io.ReadAll(r.Body)
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
}

func (s *sound) decode(raw []byte) (incoming, error) {
	in := incoming{raw: raw}
	if err := utiljson.Unmarshal(raw, &in.review); err != nil {
		return in, err
	}
	request, ok := in.review["request"].(map[string]any)
	if !ok && !s.fault.trusting {
		return in, fmt.Errorf("the review has no request")
	}
	in.request = request
	if in.object, ok = request["object"].(map[string]any); !ok && request["object"] != nil && !s.fault.blind {
		return in, fmt.Errorf("the object is not an object")
	}
	in.old, _ = request["oldObject"].(map[string]any)
	in.uid = request["uid"].(string)
	in.operation, _ = request["operation"].(string)
	in.subresource, _ = request["subResource"].(string)
	in.dryRun, _ = request["dryRun"].(bool)
	kind, _ := request["kind"].(map[string]any)
	in.kind, _ = kind["kind"].(string)
	return in, nil
}

func (o *outgoing) write(w http.ResponseWriter) {
	if len(o.patch) > 0 {
		data, _ := json.Marshal(o.patch)
		o.response["patch"] = data
	}
	if len(o.patch) > 0 || o.patchType {
		o.response["patchType"] = "JSONPatch"
	}
	if o.status != 0 {
		http.Error(w, "denied", o.status)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": o.apiVersion, "kind": "AdmissionReview", "response": o.response})
}

func (s *sound) mutate(in incoming, out *outgoing) {
	u := unstructured.Unstructured{Object: in.object}
	if in.object == nil || in.subresource != "" || u.GetAnnotations()["kubernetes.io/config.mirror"] != "" && !s.fault.mirrors {
		return
	}
	if _, ok := in.object["spec"].(map[string]any); !ok {
		out.deny(422, "spec is not an object")
		return
	}
	if in.operation == "CREATE" && (!s.fault.marked || u.GetLabels()[label] == "") {
		setPullPolicy(u, out)
	}
	if u.GetLabels()[label] == "" {
		s.addLabel(u, out, label, "true")
	}
}

// addLabel adds or changes a label.
func (s *sound) addLabel(u unstructured.Unstructured, out *outgoing, key, value string) {
	added := false
	for _, each := range out.patch {
		added = added || strings.HasPrefix(fmt.Sprint(each["path"]), "/metadata/labels")
	}
	if u.GetLabels() == nil && !added && !s.fault.parentless {
		out.operation("add", "/metadata/labels", map[string]any{})
	}
	out.operation("add", "/metadata/labels/"+strings.ReplaceAll(key, "/", "~1"), value)
}

func podPath(u unstructured.Unstructured) []string {
	if u.GetKind() == "Pod" {
		return []string{"spec"}
	}
	return []string{"spec", "template", "spec"}
}

func setPullPolicy(u unstructured.Unstructured, out *outgoing) {
	path := append(podPath(u), "containers")
	containers, _, _ := unstructured.NestedSlice(u.Object, path...)
	for i, each := range containers {
		if container, ok := each.(map[string]any); ok && container["imagePullPolicy"] == nil {
			out.operation("add", fmt.Sprintf("/%s/%d/imagePullPolicy", strings.Join(path, "/"), i), "IfNotPresent")
		}
	}
}

// tooLarge reports whether an object has more than 100 replicas.
func tooLarge(object map[string]any) bool {
	replicas, _, _ := unstructured.NestedInt64(object, "spec", "replicas")
	return replicas > 100
}

func badImage(object map[string]any, names ...string) bool {
	u := unstructured.Unstructured{Object: object}
	var containers []any
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		some, _, _ := unstructured.NestedSlice(object, append(podPath(u), list)...)
		containers = append(containers, some...)
	}
	for _, each := range containers {
		container, _ := each.(map[string]any)
		for _, name := range names {
			image, _ := container["image"].(string)
			host, _, elsewhere := strings.Cut(image, "/")
			if strings.Contains(image, name) || elsewhere && name == "bad" && host != "fixed.example.com" {
				return true
			}
		}
	}
	return false
}

// looksAt returns an object with the containers that are checked.
func (s *sound) looksAt(object map[string]any) map[string]any {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	if s.fault.ignored == "" || (&unstructured.Unstructured{Object: object}).GetKind() != "Pod" {
		return u.Object
	}
	if s.fault.ignored == "initContainers" {
		unstructured.RemoveNestedField(u.Object, "spec", "initContainers")
	} else if containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "containers"); len(containers) > 1 {
		_ = unstructured.SetNestedSlice(u.Object, containers[:1], "spec", "containers") // it has a spec
	}
	return u.Object
}

func (s *sound) validate(in incoming, out *outgoing) {
	u := unstructured.Unstructured{Object: in.object}
	switch {
	case in.object == nil || in.subresource != "" && s.fault.closed:
		return
	case in.subresource != "" && in.subresource != "ephemeralcontainers" && in.subresource != "scale":
		return
	case u.GetDeletionTimestamp() != nil && !s.fault.late:
		return
	case in.old != nil && (badImage(in.old, "bad") || tooLarge(in.old)) && (u.GetDeletionTimestamp() != nil || !s.fault.old) && (u.GetDeletionTimestamp() == nil || !s.fault.late):
		return
	case badImage(s.looksAt(in.object), "bad"):
		out.deny(403, "an image is bad: use another one")
	case tooLarge(in.object):
		out.deny(403, "spec.replicas is more than 100: use fewer")
	}
	out.response["warnings"] = []string{"images are checked by name only"}
	out.response["auditAnnotations"] = map[string]string{"checked": "images"}
}

func pod(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}, Annotations: map[string]string{"example.com/team": "blue"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image, Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}}}}},
	}
}

func deployment(replicas int32) *appsv1.Deployment {
	template := pod("", "good").Spec
	selector := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", Labels: selector},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: template},
		},
	}
}

// configurations returns the configurations of the sound webhooks.
func configurations(everything bool) []check.Manifest {
	client := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "sound", Name: "sound", Path: &path}}
	}
	on := func(operations []admissionregistrationv1.OperationType, group string, resources ...string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources}}
	}
	writes := []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}
	onPods, onApps := on([]admissionregistrationv1.OperationType{"*"}, "", "pods", "pods/*"), on([]admissionregistrationv1.OperationType{"*"}, "apps", "deployments", "deployments/scale")
	if everything {
		onPods = on([]admissionregistrationv1.OperationType{"*"}, "*", "*")
	}
	none, one := admissionregistrationv1.SideEffectClassNone, int32(1)
	return []check.Manifest{
		{Object: &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "sound"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.sound.example.com", ClientConfig: client("/mutate"), SideEffects: &none, AdmissionReviewVersions: []string{"v1", "v1beta1"},
			Rules: []admissionregistrationv1.RuleWithOperations{on(writes, "", "pods", "pods/status", "pods/ephemeralcontainers"), on(writes, "apps", "deployments", "replicasets")},
		}}}},
		{Object: &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "sound"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.sound.example.com", ClientConfig: client("/validate"), SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: &one,
			Rules: []admissionregistrationv1.RuleWithOperations{onPods, onApps},
		}}}},
	}
}

// soundSubject returns a Subject that breaks no rule, except for the fault.
func soundSubject(f fault) check.Subject {
	s := &sound{fault: f}
	return check.Subject{
		Name: "sound", Handler: s, Configurations: configurations(f.everything), Stall: s.stall,
		Allow: []check.Sample{{Manifest: check.Manifest{Object: pod("good", "good")}}, {Manifest: check.Manifest{Object: deployment(1)}}},
		Reject: []check.Sample{{
			Manifest: check.Manifest{Object: pod("wrong", "bad.example.com/app")}, Message: "an image is bad",
			Fix: `[{"op": "replace", "path": "/spec/containers/0/image", "value": "fixed.example.com/app"}]`,
		}, {
			Manifest: check.Manifest{Object: deployment(200)}, Message: "more than 100", Fix: `[{"op": "replace", "path": "/spec/replicas", "value": 2}]`,
		}},
		Effects: func() any {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.wrote
		},
		APIServer: check.APIServer{Namespace: "contract-run", DryRun: apiServer{handler: s}.dryRun},
	}
}
