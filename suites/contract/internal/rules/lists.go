package rules

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// listsRules returns the rule for the elements of lists.
func listsRules() []check.Rule {
	return []check.Rule{{
		ID: "S8", Name: "every-list-element-is-checked", Level: framework.Should,
		Title:  "What the plugin refuses in an element of a list, it also refuses if the element is behind another one. What it refuses in a container, it also refuses in an init container, and in the containers of the other kinds that it checks.",
		Why:    "Otherwise users can bypass the plugin: they add a harmless container in front of the one that the plugin would refuse, or run the same container as an init container, or in another workload.",
		Fix:    "Check every element, and do not return after the first one. Check spec.initContainers too, and the templates of all workloads with the same function.",
		Source: []string{"https://github.com/kubernetes/kubernetes/pull/25830", "https://github.com/kubernetes/kubernetes/pull/118356", "https://github.com/kubescape/regolibrary/issues/709"},
		Check:  checkListElements,
	}}
}

// checkListElements puts the elements of a refused object before and behind the elements of an admitted one. A
// plugin that refuses neither object looks for something that is missing.
func checkListElements(t *check.T) {
	shared, containers := t.Probe(func() *harness.Harness { return t.Plugin() }), []elements{}
	eachRefusedObject(t, func(refused framework.Request, admitted runtime.Object) (found bool) {
		if refused.Verb != framework.VerbCreate {
			return false // an update can compare elements with the elements of the old object by index
		}
		check.Locations(refused.Object, func(at check.Location, bad reflect.Value) {
			if !isSet(at, bad) {
				return
			}
			e := elements{t: t, request: refused, list: at, bad: at.In(check.Copy(refused.Object)), good: at.In(check.Copy(admitted))}
			if !e.good.IsValid() || e.good.Len() == 0 || e.good.Type() != e.bad.Type() {
				e.good = at.Altered(refused.Object)
			}
			e.renameGood()
			if !e.decide(shared) {
				return
			}
			found = true
			t.Reached()
			if what := shared.Confirmed(e.fault); what != "" {
				t.Errorf("%s: the plugin refuses what is in %s of this request, but admits it %s", refused, at.Path, what)
			}
			if at.Name == "Containers" {
				containers = append(containers, e)
			}
		})
		return found
	})
	for _, e := range containers {
		e.checkOtherKinds(shared, containers)
	}
}

// isSet reports whether a value is a list whose order does not matter, as far as is known. In a command it does.
func isSet(at check.Location, value reflect.Value) bool {
	if value.Kind() != reflect.Slice || value.Len() == 0 || slices.Contains([]string{"command", "args"}, strings.ToLower(at.Name)) {
		return false
	}
	kind := value.Type().Elem().Kind()
	return kind == reflect.Struct || kind == reflect.String || kind == reflect.Interface
}

// elements are the elements of a list of a refused object, and harmless ones: of the same list of an admitted object,
// or altered.
type elements struct {
	t         *check.T
	request   framework.Request
	list      check.Location
	bad, good reflect.Value
}

// decide reports whether the elements are the reason why the plugin refuses the object.
func (e elements) decide(p *check.Probe) bool {
	return e.admits(p, e.good) && !e.admits(p, e.bad) && (!e.admits(p, e.bad, e.good) || !e.admits(p, e.good, e.bad))
}

// fault returns where the plugin admits the refused elements.
func (e elements) fault(p *check.Probe) string {
	before := e.admits(p, e.bad, e.good)
	switch {
	case !e.decide(p):
		return ""
	case before || e.admits(p, e.good, e.bad):
		return map[bool]string{true: "before", false: "behind"}[before] + " the elements of a request that it admits. want: it checks every element"
	case e.list.Name == "Containers" && e.admitsIn(p, "InitContainers"):
		return "as init containers. want: it checks the init containers too"
	case e.list.Name == "InitContainers" && e.admitsIn(p, "Containers"):
		return "as containers. want: it checks these too"
	}
	return ""
}

// admitsIn reports whether the plugin admits the refused containers in another list of containers, without the fields
// that only one kind of containers can have (https://pkg.go.dev/k8s.io/api/core/v1#Container).
func (e elements) admitsIn(p *check.Probe, other string) bool {
	e.good, e.bad = joined(e.good), joined(e.bad)
	for _, containers := range []reflect.Value{e.good, e.bad} {
		for i := range containers.Len() {
			for _, name := range []string{"LivenessProbe", "ReadinessProbe", "StartupProbe", "Lifecycle", "RestartPolicy", "RestartPolicyRules"} {
				if field := containers.Index(i).FieldByName(name); field.IsValid() {
					field.SetZero()
				}
			}
		}
	}
	sibling, ok := e.list.Sibling(e.request.Object, other)
	if !ok || !e.decide(p) {
		return false
	}
	moved := e.request
	moved.Object = e.list.With(moved.Object, e.good)
	if list := sibling.In(moved.Object); list.Type() == e.bad.Type() {
		moved.Object = sibling.With(moved.Object, joined(list, e.bad))
		return p.Admits(moved)
	}
	return false
}

// checkOtherKinds puts the refused containers into the objects of other kinds that the plugin admits. It must check the
// containers of that kind too, or the containers of more templates than the pod.
func (e elements) checkOtherKinds(shared *check.Probe, known []elements) {
	for _, admitted := range e.t.Subject.Allow {
		same := func(other elements) bool {
			return reflect.TypeOf(other.request.Object) == reflect.TypeOf(admitted.Object)
		}
		if admitted.Verb != framework.VerbCreate || admitted.Subresource != "" || admitted.Namespace != e.request.Namespace || same(e) ||
			!strings.Contains(e.list.Path, "emplate.") && !slices.ContainsFunc(known, same) {
			continue
		}
		admitted.User = e.request.User
		check.Locations(admitted.Object, func(at check.Location, list reflect.Value) {
			if at.Name != "Containers" || list.Type() != e.bad.Type() {
				return
			}
			bad := admitted
			bad.Object = at.With(admitted.Object, joined(list, e.bad))
			if shared.Confirmed(func(p *check.Probe) string {
				return map[bool]string{true: at.Path}[e.decide(p) && p.Admits(admitted) && p.Admits(bad)]
			}) != "" {
				e.t.Errorf("%s: the plugin refuses what is in %s of this request, but admits it in %s of %s. want: it checks the containers of all kinds in the same way", e.request, e.list.Path, at.Path, admitted)
			}
		})
	}
}

// renameGood gives the admitted elements other names than the refused ones.
func (e elements) renameGood() {
	if e.bad.Type().Elem().Kind() != reflect.Struct {
		return
	}
	for i := range e.good.Len() {
		name := e.good.Index(i).FieldByName("Name")
		for k := range e.bad.Len() {
			if name.IsValid() && name.Kind() == reflect.String && name.String() == e.bad.Index(k).FieldByName("Name").String() {
				name.SetString(name.String() + "-admitted")
			}
		}
	}
}

// joined returns a new list with the elements of others.
func joined(lists ...reflect.Value) reflect.Value {
	all := reflect.MakeSlice(lists[0].Type(), 0, 0)
	for _, each := range lists {
		all = reflect.AppendSlice(all, each)
	}
	return all
}

func (e elements) admits(p *check.Probe, lists ...reflect.Value) bool {
	request := e.request
	request.Object = e.list.With(request.Object, joined(lists...))
	return p.Admits(request)
}
