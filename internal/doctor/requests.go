package doctor

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/reach"
)

// probe is a request that package reach is asked about.
type probe struct {
	reach.Request
	text string // "UPDATE leases/kube-scheduler in kube-system"
	key  string // differs if the request does: see probeOf
}

// probeOf returns a probe. A probe does not change: its key is that of its request.
func probeOf(r reach.Request, text string) probe {
	return probe{r, text, fmt.Sprint(text, r.Resource, r.User.Name, r.NotKnown != "", r.Object, r.OldObject)}
}

// about says what a probe is about. The zero value of a field is what most have.
type about struct {
	operation string
	resource  string // "pods", "deployments.apps/scale": resource, group and subresource
	version   string // v1 if empty
	namespace string
	name      string
	user      string            // of a controller in kube-system, if there is no colon
	labels    map[string]string // of the object
	object    map[string]any    // its other fields
	// notKnown says why the labels are not known.
	notKnown string
}

//go:embed usual.yaml
var usualFields []byte

// usual returns the fields that each object of a resource has, beside its name. Nil means that none are known.
func (w *world) usual(resource string) map[string]any {
	if w.usualFields == nil {
		_ = yaml.Unmarshal(usualFields, &w.usualFields) // a test reads it
	}
	return runtime.DeepCopyJSON(w.usualFields[resource])
}

// newProbe returns a request.
func newProbe(w *world, a about) probe {
	full, subresource, _ := strings.Cut(a.resource, "/")
	named := schema.ParseGroupResource(full)
	resource := named.WithVersion(cmp.Or(a.version, "v1"))
	r := reach.Request{Operation: a.operation, Resource: resource, Subresource: subresource, Namespace: a.namespace, Name: a.name, User: userOf(a.user), NotKnown: a.notKnown}
	r.Kind = cmp.Or(w.KindFor(resource, subresource), resource.GroupVersion().WithKind("Unknown"))
	object := unstructured.Unstructured{Object: map[string]any{}}
	if fields := w.usual(full); fields != nil && r.Kind == w.KindFor(resource, "") { // no Binding or Scale
		object.Object = fields
	}
	maps.Copy(object.Object, a.object)
	object.SetGroupVersionKind(r.Kind)
	object.SetName(a.name)
	object.SetNamespace(a.namespace)
	object.SetLabels(a.labels)
	w.setObjects(&r, object.Object, nil)
	text := a.operation + " " + named.Resource
	if subresource != "" {
		text += "/" + subresource
	}
	if named.Group != "" && len(w.Find(named.Group, named.Resource)) == 0 {
		text += "." + named.Group
	}
	text += "/" + a.name
	if a.namespace != "" {
		text += " in " + a.namespace
	}
	return probeOf(r, text)
}

// setObjects sets the objects of a request, by its operation, and what the API server does by its version. An old object of nil
// means that it is the same.
func (w *world) setObjects(r *reach.Request, fields, old map[string]any) {
	r.WebhooksForReviews = w.minor < 37
	if r.Operation != "DELETE" {
		r.Object = fields
	}
	switch {
	case r.Operation == "CREATE" || r.Operation == "CONNECT":
	case r.Operation == "UPDATE" && old != nil:
		r.OldObject = old
	default:
		r.OldObject = runtime.DeepCopyJSON(fields)
	}
}

// userOf returns a user with the groups that it has.
func userOf(name string) framework.User {
	groups := []string{"system:authenticated"}
	switch {
	case name == "":
		return framework.User{Name: "admin", Groups: append([]string{"system:masters"}, groups...)}
	case strings.HasPrefix(name, "system:node:"):
		groups = append([]string{"system:nodes"}, groups...)
	case !strings.Contains(name, ":"):
		name = "system:serviceaccount:kube-system:" + name
		groups = append([]string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}, groups...)
	}
	return framework.User{Name: name, Groups: groups}
}

// workloadSpec returns the spec of a workload with Pods that have labels.
func (w *world) workloadSpec(labels map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range labels {
		all[key] = value
	}
	return map[string]any{"spec": map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": all},
		"template": map[string]any{"metadata": map[string]any{"labels": all}, "spec": w.usual("pods")["spec"]},
	}}
}

const (
	kubeSystem = "kube-system"
	nodeLeases = "kube-node-lease"
	node       = "system:node:node-1"
)

// systemRequests returns the requests that a cluster needs to start and to heal. They are about the resources in
// gardener's table of critical resources (see the sources of CF-BLOCK-2), EndpointSlices, bindings of Pods, and the Pods of
// the DaemonSets that each node needs.
func (w *world) systemRequests() []probe {
	var all []probe
	add := func(operations string, a about) {
		for operation := range strings.SplitSeq(operations, ",") {
			a.operation = operation
			all = append(all, newProbe(w, a))
		}
	}
	dns := map[string]string{"k8s-app": "kube-dns"}
	add("CREATE", about{resource: "pods", namespace: kubeSystem, name: "coredns-0", user: "replicaset-controller", labels: dns})
	add("UPDATE", about{resource: "pods/status", namespace: kubeSystem, name: "coredns-0", user: node, labels: dns})
	add("CREATE", about{resource: "pods/binding", namespace: kubeSystem, name: "coredns-0", user: "system:kube-scheduler", object: map[string]any{"target": map[string]any{"kind": "Node", "name": "node-1"}}})
	for _, one := range []struct{ resource, name, user string }{
		{"daemonsets", "kube-proxy", "daemon-set-controller"}, {"deployments", "coredns", "deployment-controller"},
		{"replicasets", "coredns-1", "deployment-controller"}, {"controllerrevisions", "kube-proxy-1", "daemon-set-controller"},
	} {
		a := about{resource: one.resource + ".apps", namespace: kubeSystem, name: one.name, user: one.user, labels: dns, object: w.workloadSpec(dns)}
		add("CREATE,UPDATE", a)
		if one.resource == "controllerrevisions" {
			continue
		}
		a.resource += "/status"
		add("UPDATE", a)
		if one.resource != "daemonsets" {
			a.resource, a.labels, a.object = one.resource+".apps/scale", nil, map[string]any{"spec": map[string]any{"replicas": int64(1)}}
			add("UPDATE", a)
		}
	}
	for _, one := range []struct{ operations, resource, namespace, name, user string }{
		{"", "serviceaccounts", kubeSystem, "coredns", "service-account-controller"}, {"", "secrets", kubeSystem, "bootstrap-token-abcdef", ""},
		{"", "configmaps", kubeSystem, "kube-root-ca.crt", "root-ca-cert-publisher"}, {"", "services", kubeSystem, "kube-dns", ""},
		{"", "endpoints", kubeSystem, "kube-dns", "endpoint-controller"}, {"", "endpointslices.discovery.k8s.io", kubeSystem, "kube-dns-1", "endpointslice-controller"}, {"", "networkpolicies.networking.k8s.io", kubeSystem, "default", ""},
		{"", "roles.rbac.authorization.k8s.io", kubeSystem, "system:controller:token-cleaner", "system:apiserver"}, {"", "rolebindings.rbac.authorization.k8s.io", kubeSystem, "system:controller:token-cleaner", "system:apiserver"},
		{"UPDATE", "services", "default", "kubernetes", "system:apiserver"}, {"UPDATE", "endpoints", "default", "kubernetes", "system:apiserver"},
		{"", "nodes", "", "node-1", node}, {"UPDATE", "nodes/status", "", "node-1", node}, {"CREATE", "certificatesigningrequests.certificates.k8s.io", "", "csr-1", node},
		{"UPDATE", "certificatesigningrequests.certificates.k8s.io/approval", "", "csr-1", "certificate-controller"}, {"UPDATE", "certificatesigningrequests.certificates.k8s.io/status", "", "csr-1", "certificate-controller"},
		{"", "clusterroles.rbac.authorization.k8s.io", "", "system:node", "system:apiserver"}, {"", "clusterrolebindings.rbac.authorization.k8s.io", "", "system:node", "system:apiserver"}, {"", "customresourcedefinitions.apiextensions.k8s.io", "", "examples.example.com", "system:apiserver"},
		{"", "apiservices.apiregistration.k8s.io", "", "v1beta1.metrics.k8s.io", "system:apiserver"}, {"", "priorityclasses.scheduling.k8s.io", "", "system-node-critical", "system:apiserver"},
	} {
		add(cmp.Or(one.operations, "CREATE,UPDATE"), about{resource: one.resource, namespace: one.namespace, name: one.name, user: one.user})
	}
	own, _ := w.Namespace(w.ctx, kubeSystem) // it never fails
	add("UPDATE", about{resource: "namespaces", name: kubeSystem, labels: (&unstructured.Unstructured{Object: own}).GetLabels()})
	return append(append(all, w.leaseRequests()...), w.criticalPods()...)
}

// leaseRequests returns the heartbeats of nodes and the elections of leaders.
func (w *world) leaseRequests() []probe {
	var all []probe
	for _, one := range []struct{ namespace, name, user string }{
		{kubeSystem, "kube-controller-manager", "system:kube-controller-manager"}, {kubeSystem, "kube-scheduler", "system:kube-scheduler"}, {nodeLeases, "node-1", node},
	} {
		for _, operation := range []string{"CREATE", "UPDATE"} {
			all = append(all, newProbe(w, about{operation: operation, resource: "leases.coordination.k8s.io", namespace: one.namespace, name: one.name, user: one.user}))
		}
	}
	return all
}

// criticalPods returns the creation of a Pod of each DaemonSet with the network of its node and the priority of system
// Pods: network plugins, proxies, storage drivers.
func (w *world) criticalPods() []probe {
	var all []probe
	for _, set := range w.list("DaemonSet.apps", "") {
		template := as[appsv1.DaemonSet](set).Spec.Template
		if !template.Spec.HostNetwork || !strings.HasPrefix(template.Spec.PriorityClassName, "system-") || set.GetNamespace() == kubeSystem {
			continue
		}
		spec, _, _ := unstructured.NestedMap(set.Object, "spec", "template", "spec")
		all = append(all, newProbe(w, about{
			operation: "CREATE", resource: "pods", namespace: cmp.Or(set.GetNamespace(), ordinary), name: set.GetName() + "-0", user: "daemon-set-controller",
			labels: template.Labels, object: map[string]any{"spec": spec},
		}))
	}
	return all
}

// ownRequests returns the requests without which a backend does not come back.
func (w *world) ownRequests(b *backend) []probe {
	notKnown := ""
	if b.labels == nil {
		notKnown = strings.TrimSuffix("the labels of the Pods behind Service "+b.String()+" are not known: "+b.unknown, ": ")
	}
	name := b.name
	var own map[string]string
	if len(b.workloads) > 0 {
		name, own = b.workloads[0].GetName(), b.workloads[0].GetLabels()
	}
	in := func(operation, resource, name, user string) about {
		return about{operation: operation, resource: resource, namespace: b.namespace, name: name, user: user}
	}
	pod := in("CREATE", "pods", name+"-1-0", "replicaset-controller")
	pod.labels, pod.notKnown = b.labels, notKnown
	replicas := in("CREATE", "replicasets.apps", name+"-1", "deployment-controller")
	replicas.labels, replicas.object, replicas.notKnown = b.labels, w.workloadSpec(b.labels), notKnown
	deployment := in("UPDATE", "deployments.apps", name, "deployment-controller")
	deployment.labels, deployment.object, deployment.notKnown = own, w.workloadSpec(b.labels), notKnown
	status := pod
	status.operation, status.resource, status.user = "UPDATE", "pods/status", node
	all := []probe{newProbe(w, pod), newProbe(w, replicas), newProbe(w, deployment), newProbe(w, status)}
	for _, a := range []about{
		in("CREATE", "pods/binding", name+"-1-0", "system:kube-scheduler"), in("UPDATE", "leases.coordination.k8s.io", name, ""),
		in("UPDATE", "endpointslices.discovery.k8s.io", b.name+"-1", "endpointslice-controller"), in("UPDATE", "secrets", b.name+"-cert", ""),
	} {
		all = append(all, newProbe(w, a))
	}
	return all
}

// podOf returns the creation of a Pod of a backend.
func (w *world) podOf(b *backend) probe { return w.ownRequests(b)[0] }
