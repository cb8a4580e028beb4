package doctor

import (
	_ "embed"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework/reach"
)

// builtInTable are the resources that a kube-apiserver serves by default. A line has the group and version, the resource,
// the kind (with group and version if they differ), the scope, the singular name, and the short names. A test compares
// it with an API server and writes it with -update.
//
//go:embed resources.tsv
var builtInTable string

// builtIn returns builtInTable in the form of a discovery.
func builtIn() []*metav1.APIResourceList {
	var lists []*metav1.APIResourceList
	for line := range strings.Lines(builtInTable) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		resource := metav1.APIResource{Name: cells[1], Kind: cells[2], Namespaced: cells[3] == "namespaced", SingularName: cells[4]}
		if parts := strings.Split(cells[2], "/"); len(parts) == 3 {
			resource.Group, resource.Version, resource.Kind = parts[0], parts[1], parts[2]
		}
		if cells[5] != "" {
			resource.ShortNames = strings.Split(cells[5], ",")
		}
		if len(lists) == 0 || lists[len(lists)-1].GroupVersion != cells[0] {
			lists = append(lists, &metav1.APIResourceList{GroupVersion: cells[0]})
		}
		last := lists[len(lists)-1]
		last.APIResources = append(last.APIResources, resource)
	}
	return lists
}

// servedResource is a resource that the API server serves.
type servedResource struct {
	schema.GroupResource
	kind         string
	versions     []string
	namespaced   bool
	subresources []string
}

// catalogue knows the resources that the API server serves.
type catalogue struct {
	mapper runtime.EquivalentResourceMapper
	byName map[schema.GroupResource]*servedResource
	// aliases has the resources by kind, singular and short name, in lower case.
	aliases map[string][]*servedResource
	// complete is true if a resource that is not in it does not exist.
	complete bool
}

// newCatalogue returns the resources of a discovery and of CustomResourceDefinitions.
func newCatalogue(lists []*metav1.APIResourceList, definitions []map[string]any, complete bool) *catalogue {
	c := &catalogue{mapper: reach.NewMapper(lists, definitions...), byName: map[schema.GroupResource]*servedResource{}, aliases: map[string][]*servedResource{}, complete: complete}
	for _, list := range lists {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, item := range list.APIResources {
			c.add(groupVersion, item)
		}
	}
	for _, definition := range definitions {
		c.define(definition)
	}
	return c
}

func (c *catalogue) add(groupVersion schema.GroupVersion, item metav1.APIResource) {
	name, subresource, _ := strings.Cut(item.Name, "/")
	key := schema.GroupResource{Group: groupVersion.Group, Resource: name}
	known := c.byName[key]
	if known == nil {
		known = &servedResource{GroupResource: key, kind: item.Kind, namespaced: item.Namespaced}
		c.byName[key] = known
		if subresource == "" {
			for _, alias := range append([]string{item.Kind, item.SingularName}, item.ShortNames...) {
				if alias = strings.ToLower(alias); alias != "" && alias != name && !slices.Contains(c.aliases[alias], known) {
					c.aliases[alias] = append(c.aliases[alias], known)
				}
			}
		}
	}
	if subresource != "" && !slices.Contains(known.subresources, subresource) {
		known.subresources = append(known.subresources, subresource)
	}
	if !slices.Contains(known.versions, groupVersion.Version) {
		known.versions = append(known.versions, groupVersion.Version)
	}
}

// define adds the resource of a CustomResourceDefinition.
func (c *catalogue) define(definition map[string]any) {
	crd := unstructured.Unstructured{Object: definition}
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(crd.Object, fields...)
		return value
	}
	names, _, _ := unstructured.NestedStringSlice(crd.Object, "spec", "names", "shortNames")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		name, _ := version["name"].(string)
		groupVersion := schema.GroupVersion{Group: text("spec", "group"), Version: name}
		resource := metav1.APIResource{Name: text("spec", "names", "plural"), Kind: text("spec", "names", "kind"), SingularName: text("spec", "names", "singular"), ShortNames: names, Namespaced: text("spec", "scope") == "Namespaced"}
		c.add(groupVersion, resource)
		subresources, _ := version["subresources"].(map[string]any)
		for _, sub := range []string{"status", "scale"} {
			if subresources[sub] != nil {
				resource.Name = text("spec", "names", "plural") + "/" + sub
				c.add(groupVersion, resource)
			}
		}
	}
}

// serves reports whether a kind is served, and as which resource.
func (c *catalogue) serves(kind schema.GroupVersionKind) (*servedResource, bool) {
	for _, known := range c.aliases[strings.ToLower(kind.Kind)] {
		if known.Group == kind.Group && known.kind == kind.Kind && slices.Contains(known.versions, kind.Version) {
			return known, true
		}
	}
	return nil, false
}

// groupsOf returns the groups that have a resource of that name.
func (c *catalogue) groupsOf(name string) []string {
	var groups []string
	for key := range c.byName {
		if key.Resource == name {
			groups = append(groups, key.Group)
		}
	}
	slices.Sort(groups)
	return groups
}

// isBuiltInGroup reports whether a kube-apiserver serves an API group, or reserves it for Kubernetes.
func (c *catalogue) isBuiltInGroup(group string) bool {
	if !strings.Contains(group, ".") {
		return true
	}
	return strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, ".x-k8s.io") && slices.ContainsFunc(builtInGroups(), func(one string) bool { return one == group })
}

func builtInGroups() []string {
	return []string{
		"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
		"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
		"networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
	}
}

// find returns a resource, or nil if it is not known. A subresource is ignored.
func (c *catalogue) find(group, resource string) *servedResource {
	name, _, _ := strings.Cut(resource, "/")
	return c.byName[schema.GroupResource{Group: group, Resource: name}]
}
