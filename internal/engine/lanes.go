package engine

import (
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/engine/execution"
	"github.com/admissiontest/admissiontest/internal/kinds"
	"github.com/admissiontest/admissiontest/internal/object"
)

// lanes says which scenarios run at once on one API server, narrowed to their namespaces, and which run one after
// another on a disposable one, as they are written: see docs/adr/0025-two-lanes.md.
type lanes struct {
	// install is installed for all scenarios.
	install []map[string]any
	// namespaced reports whether objects of a kind are in namespaces, if an API server runs that knows it.
	namespaced func(kind schema.GroupVersionKind) (bool, error)
	// definitions are the CustomResourceDefinitions of the scenarios that run at once, by name.
	definitions map[string]map[string]any
}

// alone reports whether a scenario runs alone: what it installs or sends is not only about its own namespaces.
func (l *lanes) alone(s scenario.Scenario) bool {
	if s.Spec.Isolation == scenario.IsolationNone || s.Spec.Exclusive {
		return true
	}
	f := filesOf(s)
	decides := slices.DeleteFunc(append(slices.Clone(f.manifests), l.install...), func(manifest map[string]any) bool { return !object.IsAdmission(manifest) })
	if slices.ContainsFunc(f.manifests, func(manifest map[string]any) bool { return l.outside(f, manifest) }) {
		return true
	}
	if slices.ContainsFunc(f.requests, func(request framework.Request) bool { return l.sendsOutside(f, decides, request) }) {
		return true
	}
	return l.redefines(f)
}

// redefines reports whether a scenario has another CustomResourceDefinition of the same name than a scenario
// before it. It notes the definitions of the scenario.
func (l *lanes) redefines(f files) bool {
	if l.definitions == nil {
		l.definitions = map[string]map[string]any{}
	}
	for _, definition := range f.definitions {
		name := (&unstructured.Unstructured{Object: definition}).GetName()
		if known, taken := l.definitions[name]; taken && !reflect.DeepEqual(known, definition) {
			return true
		}
	}
	for _, definition := range f.definitions {
		l.definitions[(&unstructured.Unstructured{Object: definition}).GetName()] = definition
	}
	return false
}

// outside reports whether an object that is installed is not in a namespace of the scenario, or can have the name of
// another scenario's object, or names namespaces of others.
func (l *lanes) outside(f files, manifest map[string]any) bool {
	is := unstructured.Unstructured{Object: manifest}
	switch {
	case object.IsAdmission(manifest):
		return namesOthers(manifest)
	case is.GetKind() == "CustomResourceDefinition":
		return false
	case l.isCluster(f, is.GroupVersionKind()):
		return !isOwn(is.GetName())
	default:
		return !isOwn(is.GetNamespace())
	}
}

// sendsOutside reports whether a request is not for an object in a namespace of the scenario, and one of some
// configurations decides about it, or it writes an object whose name is not the scenario's.
func (l *lanes) sendsOutside(f files, decides []map[string]any, request framework.Request) bool {
	cluster := l.isCluster(f, request.Kind)
	if request.Operation() == "" || !cluster && isOwn(request.Namespace) {
		return false
	}
	if slices.ContainsFunc(decides, func(manifest map[string]any) bool { return f.decides(manifest, request, cluster) }) {
		return true
	}
	review := request.Kind.Group != "" && strings.HasSuffix(request.Kind.Kind, "Review")
	if request.DryRun || review {
		return false
	}
	// One that is deleted can be the scenario's, and one that is written is not narrowed.
	configuration := request.Kind.Group == admissionGroup && request.Verb != framework.VerbDelete
	return configuration || request.Verb == framework.VerbDeleteCollection || !isOwn(request.Name) && !strings.Contains(request.Name, "$(steps.")
}

const admissionGroup = "admissionregistration.k8s.io"

// isOwn reports whether a name has the ID of the scenario or of the run, by a placeholder, or is generated.
func isOwn(name string) bool {
	return name == "" || strings.Contains(strings.ReplaceAll(strings.ReplaceAll(name, "$$(", ""), "$(steps.", ""), "$(")
}

// namesOthers reports whether a configuration is only for namespaces of other names than the scenario's have, or takes
// its parameters from one. If that cannot be read, it does.
func namesOthers(manifest map[string]any) bool {
	read, err := execution.ReadConfiguration(manifest)
	if err != nil || read.Spec.ParamRef != nil && !isOwn(read.Spec.ParamRef.Namespace) {
		return true
	}
	var selectors []*metav1.LabelSelector
	for _, webhook := range read.Webhooks {
		selectors = append(selectors, webhook.NamespaceSelector)
	}
	for _, match := range []*admissionregistrationv1.MatchResources{read.Spec.MatchConstraints, read.Spec.MatchResources} {
		if match != nil {
			selectors = append(selectors, match.NamespaceSelector)
		}
	}
	return slices.ContainsFunc(selectors, func(selector *metav1.LabelSelector) bool {
		if selector == nil {
			return false
		}
		var names []string
		if name, ok := selector.MatchLabels[corev1.LabelMetadataName]; ok {
			names = append(names, name)
		}
		for _, one := range selector.MatchExpressions {
			if one.Key == corev1.LabelMetadataName && one.Operator == metav1.LabelSelectorOpIn {
				names = append(names, one.Values...)
			}
		}
		return len(names) > 0 && !slices.ContainsFunc(names, isOwn)
	})
}

// files is what the files of a scenario say before it runs. Placeholders are not replaced.
type files struct {
	// manifests are installed: what is given, and what steps install. definitions are the
	// CustomResourceDefinitions among them and among the objects of requests.
	manifests, definitions []map[string]any
	requests               []framework.Request
}

func filesOf(s scenario.Scenario) files {
	f := files{manifests: slices.Clone(s.Spec.Given)}
	spec := s.Spec
	for _, one := range scenario.Cases([]scenario.Scenario{s}) {
		if s.IsPolicyTest() {
			spec.When = append(slices.Clip(spec.When), one.Spec.When...)
		}
	}
	composer := execution.Composer{Namespaced: func(schema.GroupVersionKind) (bool, error) { return true, nil }}
	_ = execution.EachStep(spec, func(_ string, step scenario.Step) error { // it returns no error
		f.manifests = append(f.manifests, step.Install...)
		if request, _, err := composer.Compose(step); err == nil {
			f.requests = append(f.requests, request)
		}
		return nil
	})
	objects := slices.Clone(f.manifests)
	for _, request := range f.requests {
		if one, ok := request.Object.(*unstructured.Unstructured); ok {
			objects = append(objects, one.Object)
		}
	}
	f.definitions = slices.DeleteFunc(objects, func(manifest map[string]any) bool { return manifest["kind"] != "CustomResourceDefinition" })
	return f
}

// definitionOf returns the definition of a kind, or nil.
func (f files) definitionOf(kind schema.GroupKind) map[string]any {
	at := slices.IndexFunc(f.definitions, func(definition map[string]any) bool {
		group, _, _ := unstructured.NestedString(definition, "spec", "group")
		name, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
		return group == kind.Group && name == kind.Kind
	})
	if at < 0 {
		return nil
	}
	return f.definitions[at]
}

// isCluster reports whether objects of a kind are in no namespace. Of a kind that is not known, they are in one.
func (l *lanes) isCluster(f files, kind schema.GroupVersionKind) bool {
	if definition := f.definitionOf(kind.GroupKind()); definition != nil {
		of, _, _ := unstructured.NestedString(definition, "spec", "scope")
		return of == "Cluster"
	}
	if l.namespaced != nil {
		if namespaced, err := l.namespaced(kind); err == nil {
			return !namespaced
		}
	}
	return kinds.IsCluster(kind.GroupKind())
}

// decides reports whether a rule of a configuration is for the resource of a request. If that cannot be read, it is.
func (f files) decides(manifest map[string]any, request framework.Request, cluster bool) bool {
	plural, _ := meta.UnsafeGuessKindToResource(request.Kind)
	resource := metav1.APIResource{Group: request.Kind.Group, Version: "*", Name: plural.Resource, Namespaced: !cluster}
	if definition := f.definitionOf(request.Kind.GroupKind()); definition != nil {
		resource.Name, _, _ = unstructured.NestedString(definition, "spec", "names", "plural")
	}
	if request.Subresource != "" {
		resource.Name += "/" + request.Subresource
	}
	read, err := execution.ReadConfiguration(manifest)
	return err != nil || read.Decides(resource)
}
