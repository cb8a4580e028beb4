package rules

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/harness"
	"github.com/admissiontest/admissiontest/suites/contract/internal/check"
)

// listsRules returns the rule for the elements of lists.
func listsRules() []check.Rule {
	return []check.Rule{{
		ID: "S8", Name: "every-list-element-is-checked", Level: framework.Should,
		Title:  "What the plugin refuses in an element of a list, it also refuses if the element is behind another one. What it refuses in a container, it also refuses in an init container.",
		Why:    "Otherwise users can bypass the plugin: they add a harmless container in front of the one that the plugin would refuse, or run the same container as an init container.",
		Fix:    "Check every element, and do not return after the first one. Check spec.initContainers too.",
		Source: []string{"https://github.com/kubernetes/kubernetes/pull/25830", "https://github.com/kubernetes/kubernetes/pull/118356", "https://github.com/kubescape/regolibrary/issues/709"},
		Check:  checkListElements,
	}}
}

// checkListElements puts the elements of a refused object before and behind the elements of an admitted one. A
// plugin that refuses neither object looks for something that is missing.
func checkListElements(t *check.T) {
	eachRefusedObject(t, func(refused framework.Request, admitted runtime.Object) (found bool) {
		if refused.Verb != framework.VerbCreate {
			return false // an update can compare elements with the elements of the old object by index
		}
		for _, list := range check.ListsOfStructs(refused.Object) {
			e := elements{t: t, request: refused, list: list, bad: list.In(check.Copy(refused.Object)), good: list.In(check.Copy(admitted))}
			if e.good.IsValid() && e.good.Len() > 0 {
				found = e.check() || found
			}
		}
		return found
	})
}

// elements are the elements of a list of a refused object, and of the same list of an admitted one.
type elements struct {
	t         *check.T
	request   framework.Request
	list      check.List
	bad, good reflect.Value
}

// check returns false if the elements are not the reason why the plugin refuses the object.
func (e elements) check() bool {
	e.renameGood()
	if !e.admits(e.good) || e.admits(e.bad) {
		return false
	}
	before, behind := e.admits(e.bad, e.good), e.admits(e.good, e.bad)
	if before && behind {
		return false
	}
	e.t.Reached()
	if before != behind {
		where := map[bool]string{true: "before", false: "behind"}
		e.t.Errorf("%s: the plugin refuses what is in %s of this request, but admits it %s the elements of a request that it admits. want: it checks every element", e.request, e.list.Path, where[before])
		return true
	}
	e.checkInit()
	return true
}

// checkInit moves the refused containers to the init containers. It removes the fields that an init container
// cannot have (https://pkg.go.dev/k8s.io/api/core/v1#Container).
func (e elements) checkInit() {
	last := len(e.list.Fields) - 1
	if e.list.Fields[last] != "Containers" {
		return
	}
	for _, containers := range []reflect.Value{e.good, e.bad} {
		for i := range containers.Len() {
			for _, name := range []string{"LivenessProbe", "ReadinessProbe", "StartupProbe", "Lifecycle"} {
				if field := containers.Index(i).FieldByName(name); field.IsValid() {
					field.SetZero()
				}
			}
		}
	}
	moved := e.with(e.good)
	init := check.List{Fields: append(slices.Clone(e.list.Fields[:last]), "InitContainers")}.In(moved)
	if !init.IsValid() || init.Type() != e.bad.Type() || !e.admits(e.good) || e.admits(e.good, e.bad) {
		return
	}
	init.Set(reflect.AppendSlice(init, e.bad))
	if result, ok := e.send(moved); ok && result.Err == nil {
		e.t.Errorf("%s: the plugin refuses what is in %s of this request, but admits it as init containers. want: it checks the init containers too", e.request, e.list.Path)
	}
}

// renameGood gives the admitted elements other names than the refused ones.
func (e elements) renameGood() {
	for i := range e.good.Len() {
		name := e.good.Index(i).FieldByName("Name")
		for k := range e.bad.Len() {
			if name.IsValid() && name.Kind() == reflect.String && name.String() == e.bad.Index(k).FieldByName("Name").String() {
				name.SetString(name.String() + "-admitted")
			}
		}
	}
}

// with returns the object of the request with these elements in the list.
func (e elements) with(lists ...reflect.Value) runtime.Object {
	object := check.Copy(e.request.Object)
	list := e.list.In(object)
	all := reflect.MakeSlice(list.Type(), 0, 0)
	for _, each := range lists {
		all = reflect.AppendSlice(all, each)
	}
	list.Set(all)
	return check.Copy(object) // the lists are used again
}

func (e elements) send(object runtime.Object) (harness.Result, bool) {
	request := e.request
	request.Object = object
	return e.t.Do(e.t.Plugin(), request)
}

func (e elements) admits(lists ...reflect.Value) bool {
	result, ok := e.send(e.with(lists...))
	return ok && result.Err == nil
}
