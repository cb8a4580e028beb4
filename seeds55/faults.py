s=open('FOLDER').read()
def r(old,new,count=1):
    global s
    assert s.count(old)>=1,(old)
    s=s.replace(old,new,count)
# --- protocol
r('''		out := review{TypeMeta: in.TypeMeta, Response: f(in.Request)}
		out.Response.UID = in.Request.UID
''','''		out := review{TypeMeta: in.TypeMeta, Response: s.answer(f, in.Request)}
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
''')
r('''type review struct {''','''// answer has the faults around a call.
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

type review struct {''')
r('''	ledger []string // of Widgets, another system
''','''	ledger []string // of Widgets, another system

	big       sync.Mutex
	cache     map[string]*admissionv1.AdmissionResponse
	history   []*admissionv1.AdmissionRequest
	namespace string
	calls     int
	pool      sync.Pool
''')
r('''"net/http"
''','''"net/http"
	"os"
	"runtime"
''')
r('''	"sync"
''','''	"sync"
	"time"
''')
r('''		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
''','''		limit := int64(maxBody)
		if is("body-1mb") {
			limit = 1 << 20
		}
		if is("body-unlimited") {
			limit = 1 << 60
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
''')
r('''		if err := json.Unmarshal(body, &in); err != nil {
''','''		unmarshal := json.Unmarshal
		if is("strict-decode") {
			unmarshal = func(raw []byte, v any) error {
				d := json.NewDecoder(strings.NewReader(string(raw)))
				d.DisallowUnknownFields()
				return d.Decode(v)
			}
		}
		if err := unmarshal(body, &in); err != nil {
''')
r('''func malformed(err error) *admissionv1.AdmissionResponse {
''','''func malformed(err error) *admissionv1.AdmissionResponse {
	if is("fail-open-decode") {
		return allow()
	}
''')
r('''func forbid(err error) *admissionv1.AdmissionResponse {
''','''func forbid(err error) *admissionv1.AdmissionResponse {
	if is("code-500") {
		return deny(http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
	}
	if is("status-success") {
		r := deny(http.StatusForbidden, metav1.StatusReasonForbidden, err.Error())
		r.Result.Status, r.Result.Code, r.Result.Reason = metav1.StatusSuccess, 200, ""
		return r
	}
''')
# --- mutate
r('''	if req.SubResource != "" || req.Operation''','''	if req.SubResource != "" && !is("status-mutated") || req.Operation''')
r('''	if meta.DeletionTimestamp != nil {
		return allow()
	}
	ops, err''','''	if meta.DeletionTimestamp != nil && !is("mutate-in-deletion") {
		return allow()
	}
	ops, err''')
r('''	if len(ops) > 0 {
''','''	if len(ops) > 0 || is("null-patch") {
''')
r('''		var pod corev1.Pod
		if err := json.Unmarshal(req.Object.Raw, &pod); err != nil {
			return nil, err
		}
''','''		var pod corev1.Pod
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
''')
r('''			if meta.Annotations[inject] != "false" {
				ops''','''			if is("annotation-panic") && pod.Spec.SecurityContext.RunAsUser != nil {
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
				ops''')
r('''		if create { // the spec of a Pod is immutable
''','''		if create || is("pod-update-injects") { // the spec of a Pod is immutable
''')
r('''		if create { // a later change would roll out
''','''		if is("deployment-diff") && create { // the encoded type: without fields that it does not know
			deployment.Spec.Template.Spec.Tolerations = append(deployment.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "x", Operator: "Exists"})
			return append(ops, op{"replace", "/spec/template/spec", deployment.Spec.Template.Spec}), nil
		}
		if create { // a later change would roll out
''')
r('''		if !slices.Contains(meta.Finalizers, finalizer) && create {
			if meta.Finalizers == nil {''','''		if !slices.Contains(meta.Finalizers, finalizer) && (create || is("mutate-in-deletion")) {
			if meta.Finalizers == nil || is("finalizers-overwritten") {''')
r('''		if widget.Spec.Replicas == nil {
''','''		if is("default-zero") && widget.Spec.Replicas != nil && *widget.Spec.Replicas == 0 {
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
''')
r('''	if m == nil {
		return []op{{"add", path, map''','''	if is("escape-order") {
		return []op{{"add", path, map[string]string{}}, {"add", path + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "/", "~1"), "~", "~0"), value}}[min(1, len(m)):]
	}
	if m == nil || is("labels-overwritten") {
		return []op{{"add", path, map''')
r('''	if slices.ContainsFunc(spec.Tolerations, func''','''	if !is("toleration-each-time") && slices.ContainsFunc(spec.Tolerations, func''')
r('''	for i := range spec.Containers {
		ops''','''	for i := range spec.Containers {
		if is("second-container-skipped") && i > 0 {
			break
		}
		ops''')
r('''	if !agent || slices''','''	if is("agent-anywhere") {
		named = func(c corev1.Container) bool { return strings.HasPrefix(c.Name, "log") }
	}
	if !agent || slices''')
r('''	ops = append(ops, op{"add", path + "/containers/-", corev1.Container{
		Name: agentName, Image: "registry.example.com/platform/log-agent:1.4.2",
''','''	where, image := "/containers/-", "registry.example.com/platform/log-agent:1.4.2"
	if is("sidecar-first") {
		where = "/containers/0"
	}
	if is("own-image-refused") {
		image = "docker.io/platform/log-agent:1.4.2"
	}
	ops = append(ops, op{"add", path + where, corev1.Container{
		Name: agentName, Image: image,
''')
r('''	case spec.Volumes == nil:
''','''	case spec.Volumes == nil || is("volumes-overwritten"):
''')
r('''	return []corev1.EnvVar{{Name: "FLEET_NAMESPACE"''','''	if is("random-order") {
		var all []corev1.EnvVar
		for name, value := range map[string]string{"FLEET_NAMESPACE": namespace, "FLEET_REGION": "eu-1", "FLEET_TIER": "a", "FLEET_CLUSTER": "c"} {
			all = append(all, corev1.EnvVar{Name: name, Value: value})
		}
		return all
	}
	return []corev1.EnvVar{{Name: "FLEET_NAMESPACE"''')
r('''		if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable.Name }) {
			continue
		}
''','''		if i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable.Name }); i >= 0 {
			if is("env-overwritten") && c.Env[i].Value != variable.Value {
				ops = append(ops, op{"replace", fmt.Sprintf("%s/env/%d/value", path, i), variable.Value})
			}
			continue
		}
''')
r('''	limit := defaultMem
	if request''','''	limit := defaultMem
	if is("limit-below-request") {
	} else if request''')
r('''	if c.Resources.Limits == nil {
		if''','''	if c.Resources.Limits == nil || is("limits-overwritten") {
		if''')
# --- validate
r('''	switch req.Resource.Resource + "/" + req.SubResource {
''','''	if is("trust-system-users") && strings.HasPrefix(req.UserInfo.Username, "system:") {
		return allow()
	}
	if is("trust-operator-prefix") && strings.HasPrefix(req.UserInfo.Username, "system:serviceaccount:fleet-system") {
		return allow()
	}
	switch req.Resource.Resource + "/" + req.SubResource {
''')
r('''		var scale, old autoscalingv1.Scale
''','''		if is("scale-ignored") {
			return allow()
		}
		var scale, old autoscalingv1.Scale
''')
r('''	case "pods/eviction":
''','''	case "pods/eviction":
		if is("eviction-as-pod") {
			return s.validatePod(req)
		}
''')
r('''	case "widgets/":
		return''','''	case "widgets/status":
		if is("status-checks-spec") {
			return s.validateWidget(req)
		}
		return allow()
	case "widgets/":
		return''')
r('''	host, _, found := strings.Cut(image, "/")
''','''	if is("registry-prefix") {
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
''')
r('''	for _, c := range spec.InitContainers {
		all["init''','''	for _, c := range spec.InitContainers {
		if is("init-ignored") {
			break
		}
		all["init''')
r('''	for _, c := range spec.Containers {
		all[''','''	for i, c := range spec.Containers {
		if is("first-container-only") && i > 0 {
			break
		}
		all[''')
r('''	for _, c := range spec.EphemeralContainers {
''','''	for _, c := range spec.EphemeralContainers {
		if is("ephemeral-ignored") {
			break
		}
''')
r('''	was := images(old)
''','''	was := images(old)
	if is("old-objects-blocked") {
		was = nil
	}
	if is("old-by-index") { // any image of the old object, moved or not, is fine
		if len(was) > 0 {
			return nil, nil
		}
	}
''')
r('''			warnings = append(warnings, name+": the tag latest can change")
''','''			warnings = append(warnings, name+": the tag latest can change")
			if is("warning-long") {
				raw, _ := json.MarshalIndent(spec, "", "  ")
				warnings = append(warnings, string(raw))
			}
''')
r('''			} else if limit.Cmp(maxMemory) > 0 {
''','''			} else if limit.Cmp(maxMemory) > 0 || is("memory-boundary") && limit.Cmp(maxMemory) >= 0 {
''')
r('''	slices.Sort(errs)
	slices.Sort(warnings)
''','''	if !is("unsorted-message") {
		slices.Sort(errs)
		slices.Sort(warnings)
	}
''')
r('''	if pod.DeletionTimestamp != nil || req.Operation == admissionv1.Delete {
''','''	if is("pod-name-required") && pod.Name == "" {
		return forbid(errors.New("it has no name"))
	}
	if is("pod-user-nil") && *pod.Spec.SecurityContext.RunAsUser == 0 {
		return forbid(errors.New("it runs as root"))
	}
	if is("ns-from-object") {
		req.Namespace = pod.Namespace
	}
	if (pod.DeletionTimestamp != nil || req.Operation == admissionv1.Delete) && !is("pod-deletion-blocked") {
''')
r('''	response.AuditAnnotations = map[string]string{"containers"''','''	if is("audit-key") {
		response.AuditAnnotations = map[string]string{prefix + "containers": fmt.Sprint(len(images(&pod.Spec)))}
		return response
	}
	response.AuditAnnotations = map[string]string{"containers"''')
r('''	if req.SubResource == "ephemeralcontainers" && !slices''','''	if is("group-substring") && strings.Contains(strings.Join(req.UserInfo.Groups, ","), "debuggers") {
		req.UserInfo.Groups = append(req.UserInfo.Groups, "debuggers")
	}
	if req.SubResource == "ephemeralcontainers" && !slices''')
r('''	errs, warnings := s.validateSpec(&deployment.Spec.Template.Spec, &old.Spec.Template.Spec, req.Namespace, false)
''','''	namespace := req.Namespace
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
''')
r('''n > maxReplicas && n > replicas(old.Spec.Replicas) {''','''(n > maxReplicas || is("replicas-boundary") && n >= maxReplicas) && n > replicas(old.Spec.Replicas) {''')
r('''	if req.Operation == admissionv1.Delete {
		if old''','''	if req.Operation == admissionv1.Delete {
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
		if old''')
r('''	if widget.DeletionTimestamp != nil {
		return allow()
	}
''','''	if widget.DeletionTimestamp != nil && !is("widget-deletion-blocked") {
		return allow()
	}
''')
r('''	if widget.Spec.Image != old.Spec.Image && !''','''	if (widget.Spec.Image != old.Spec.Image || is("widget-old-blocked") || is("widget-deletion-blocked")) && !''')
r('''		if widget.Spec.StorageClass != old.Spec.StorageClass {
''','''		if is("immutable-unset") && (widget.Spec.StorageClass == "" || old.Spec.StorageClass == "") {
		} else if widget.Spec.StorageClass != old.Spec.StorageClass {
''')
r('''		if o, n := old.Spec.Capacity, widget.Spec.Capacity; o != nil''','''		if is("quantity-strings") {
			if o, n := old.Spec.Capacity, widget.Spec.Capacity; o != nil && n != nil && n.String() < o.String() {
				errs = append(errs, "spec.capacity must not shrink")
			}
		} else if is("capacity-nil-panic") {
			if widget.Spec.Capacity.Cmp(*old.Spec.Capacity) < 0 {
				errs = append(errs, "spec.capacity must not shrink")
			}
		} else if o, n := old.Spec.Capacity, widget.Spec.Capacity; o != nil''')
r('''req.DryRun == nil || !*req.DryRun) {''','''req.DryRun == nil || !*req.DryRun || is("dry-run-writes")) {''')
open('webhooks.go','w').write(s)
import re
names=[]
for n in re.findall(r'is\("([a-z0-9-]+)"\)',s):
    if n not in names: names.append(n)
open('FOLDER','w').write('\n'.join(names)+'\n')
print(len(names),names)
# second batch
n0=len(names)
r('''	case "widgets/status":
''','''	case "widgets/status":
		if is("status-old-blocked") {
			var widget, old Widget
			_ = decode(req, &widget, &old)
			if !trusted(widget.Spec.Image, req.Namespace) {
				return forbid(fmt.Errorf("image %q is not of an allowed registry", widget.Spec.Image))
			}
		}
''')
r('''	if is("trust-system-users") &&''','''	if is("shared-map") { // a metric
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
	if is("trust-system-users") &&''')
r('''	namespace string
''','''	namespace string
	counts    map[string]int
''')
r('''			errs = append(errs, fmt.Sprintf("%s: image %q is not of an allowed registry", name, image))
''','''			errs = append(errs, fmt.Sprintf("%s: image %q is not of an allowed registry", name, image))
			if is("message-leaks") {
				raw, _ := json.Marshal(spec)
				errs = append(errs, string(raw))
			}
''')
r('''	case slices.ContainsFunc(spec.Volumes, func''','''	case !is("volume-dup") && slices.ContainsFunc(spec.Volumes, func''')
open('webhooks.go','w').write(s)
new=[]
for n in re.findall(r'is\("([a-z0-9-]+)"\)',s):
    if n not in names and n not in new: new.append(n)
open('FOLDER','w').write('\n'.join(new)+'\n')
print(new)
r('''	if meta.DeletionTimestamp != nil && !is("mutate''','''	if is("mutator-needs-name") && meta.Name == "" {
		return malformed(errors.New("the object has no name"))
	}
	if is("mutator-needs-labels") && len(meta.Labels) == 0 {
		meta.Labels["x"] = "y"
	}
	if meta.DeletionTimestamp != nil && !is("mutate''')
open('webhooks.go','w').write(s)
