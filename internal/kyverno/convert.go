package kyverno

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Conversion is the result for one kyverno-test.yaml.
type Conversion struct {
	// Name is the name for a file: that of the folder of the test.
	Name string
	// Text is a PolicyTest in YAML, or "" if nothing of the test can be converted.
	Text string
	// LeftOut are the parts of the test that are not converted, and why.
	LeftOut []string
}

// converter converts one test.
type converter struct {
	test
	// folder is the folder of the test. Prefix is its path, relative to the folder of the PolicyTest.
	folder, prefix string
	policies       []manifest
	objects        []manifest
	out            Conversion
}

// Convert converts a kyverno-test.yaml. The paths in the result are relative to a folder. Nothing
// is written. The error is that of reading the files.
func Convert(file, folder string) (Conversion, error) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return Conversion{}, fmt.Errorf("find %s: %w", file, err)
	}
	c := &converter{folder: filepath.Dir(absolute), out: Conversion{Name: filepath.Base(filepath.Dir(absolute))}}
	target, err := filepath.Abs(folder)
	if err != nil {
		return Conversion{}, fmt.Errorf("find %s: %w", folder, err)
	}
	if c.prefix, err = filepath.Rel(target, c.folder); err != nil {
		return Conversion{}, fmt.Errorf("find the relative path from %s to %s: %w", folder, file, err)
	}
	if err := c.read(file); err != nil {
		return Conversion{}, fmt.Errorf("read kyverno test: %w", err)
	}
	cases := c.cases()
	if len(cases) == 0 {
		return c.out, nil
	}
	c.out.Text, err = c.text(file, cases)
	return c.out, err
}

// read reads the test and the manifests.
func (c *converter) read(file string) error {
	if err := readAs(filepath.Dir(file), filepath.Base(file), &c.test); err != nil {
		return err
	}
	if c.Kind != "Test" {
		return fmt.Errorf("%s: kind is %q; expected a kyverno Test", file, c.Kind)
	}
	var err error
	if c.policies, err = readManifests(c.folder, c.Policies); err != nil {
		return err
	}
	c.objects, err = readManifests(c.folder, append(slices.Clone(c.Resources), c.TargetResources...))
	return err
}

func (c *converter) leaveOut(format string, arguments ...any) {
	c.out.LeftOut = append(c.out.LeftOut, fmt.Sprintf(format, arguments...))
}

// oneCase is a case of the PolicyTest.
type oneCase struct {
	objects []manifest
	// fields are the expectation, in YAML.
	fields []string
	remark string
}

// cases returns the cases for the results of the test.
func (c *converter) cases() []oneCase {
	for _, exception := range c.Exceptions {
		c.leaveOut("exception %s: admission policies have no exceptions", exception)
	}
	refused := c.refusals()
	var out []oneCase
	for i, r := range c.Results {
		where := fmt.Sprintf("results[%d] for policy %s", i, r.Policy)
		policy, ok := c.policy(r)
		if !ok {
			c.leaveOut("%s: not a ValidatingAdmissionPolicy or MutatingAdmissionPolicy of the test", where)
			continue
		}
		objects := c.selected(r, where)
		if r.Result == "pass" || r.Result == "skip" {
			objects = slices.DeleteFunc(objects, func(o manifest) bool {
				by, ok := refused[key(o)]
				if ok && by != r.Policy {
					c.leaveOut("%s, %s %s: policy %s refuses the object, so the API server refuses the request whatever this policy decides", where, o.kind(), o.name(), by)
				}
				return ok && by != r.Policy
			})
		}
		if len(objects) > 0 {
			out = append(out, c.expect(r, policy, objects, where)...)
		}
	}
	return out
}

// key identifies an object of the test.
func key(o manifest) string { return o.kind() + "/" + o.namespace() + "/" + o.name() }

// refusals returns the policy that refuses each object that one refuses.
func (c *converter) refusals() map[string]string {
	out := map[string]string{}
	for _, r := range c.Results {
		policy, ok := c.policy(r)
		if !ok || r.Result != "fail" || policy.kind() != "ValidatingAdmissionPolicy" {
			continue
		}
		if !c.actions(policy)["Deny"] {
			continue
		}
		for _, object := range c.matching(r) {
			out[key(object)] = r.Policy
		}
	}
	return out
}

// policy returns the policy of a result.
func (c *converter) policy(r result) (manifest, bool) {
	for _, policy := range c.policies {
		if policy.isPolicy() && policy.name() == r.Policy && r.Mutating == (policy.kind() == "MutatingAdmissionPolicy") {
			return policy, true
		}
	}
	return manifest{}, false
}

// selected returns the objects of a result, and reports the names without an object.
func (c *converter) selected(r result, where string) []manifest {
	found := c.matching(r)
	for _, name := range r.names() {
		if !slices.ContainsFunc(found, func(o manifest) bool { return named(o, name) }) {
			c.leaveOut("%s: the resources have no %s %s", where, r.Kind, name)
		}
	}
	return found
}

func (r result) names() []string {
	if r.Resource != "" {
		return append(slices.Clone(r.Resources), r.Resource)
	}
	return r.Resources
}

// matching returns the objects of a result: those it names, or all of the kind.
func (c *converter) matching(r result) []manifest {
	names := r.names()
	var out []manifest
	for _, object := range c.objects {
		isNamed := slices.ContainsFunc(names, func(name string) bool { return named(object, name) })
		if (r.Kind == "" || r.Kind == object.kind()) && (isNamed || len(names) == 0) {
			out = append(out, object)
		}
	}
	return out
}

// named reports whether an object is meant by NAME or NAMESPACE/NAME.
func named(o manifest, name string) bool {
	namespace, plain, both := strings.Cut(name, "/")
	if !both {
		return o.name() == name
	}
	return o.name() == plain && (o.namespace() == namespace || o.namespace() == "" && namespace == "default")
}

// actions returns the validationActions of the bindings of a policy. Without any that is Deny.
func (c *converter) actions(policy manifest) map[string]bool {
	out := map[string]bool{}
	for _, binding := range c.policies {
		if binding.kind() != policy.kind()+"Binding" || binding.text("spec", "policyName") != policy.name() {
			continue
		}
		spec, _ := binding.fields["spec"].(map[string]any)
		list, _ := spec["validationActions"].([]any)
		for _, action := range list {
			if text, ok := action.(string); ok {
				out[text] = true
			}
		}
	}
	if len(out) == 0 {
		out["Deny"] = true
	}
	return out
}

// expect returns the cases of one result.
func (c *converter) expect(r result, policy manifest, objects []manifest, where string) []oneCase {
	remark := ""
	if r.Result == "skip" {
		remark = "the policy does not match"
	}
	if r.Mutating {
		return c.expectMutation(r, objects, remark, where)
	}
	switch actions := c.actions(policy); {
	case r.Result == "pass" || r.Result == "skip":
		return []oneCase{{objects, []string{"allowed: true"}, remark}}
	case r.Result != "fail":
		c.leaveOut("%s: the result is %s; pass, fail and skip are converted", where, r.Result)
		return nil
	case actions["Deny"] && c.policyCount() > 1:
		return []oneCase{{objects, []string{"denied: {policy: " + scalar(r.Policy) + "}"}, ""}}
	case actions["Deny"]:
		return []oneCase{{objects, []string{"denied: true"}, ""}}
	case actions["Warn"]:
		return []oneCase{{objects, []string{"warned: " + scalar("Validation failed for ValidatingAdmissionPolicy")}, ""}}
	default:
		c.leaveOut("%s: its bindings only audit; write audited with the message", where)
		return nil
	}
}

// policyCount returns the number of policies of the test.
func (c *converter) policyCount() int {
	count := 0
	for _, policy := range c.policies {
		if policy.isPolicy() {
			count++
		}
	}
	return count
}

// expectMutation returns the cases of a result of a MutatingAdmissionPolicy.
func (c *converter) expectMutation(r result, objects []manifest, remark, where string) []oneCase {
	patched := r.PatchedResources + r.PatchedResource // kyverno has both fields
	var out []oneCase
	switch {
	case r.Result == "skip":
		for _, object := range objects {
			out = append(out, oneCase{[]manifest{object}, []string{"mutated: " + unchanged(object)}, remark})
		}
	case r.Result != "pass":
		c.leaveOut("%s: the result is %s; pass and skip are converted", where, r.Result)
	case patched == "":
		out = append(out, oneCase{objects, []string{"allowed: true"}, "no patchedResources"})
	default:
		expected, err := readManifests(c.folder, []string{patched})
		if err != nil {
			c.leaveOut("%s: %v", where, err)
			return nil
		}
		for _, object := range objects {
			at := slices.IndexFunc(expected, func(e manifest) bool { return e.kind() == object.kind() && e.name() == object.name() })
			if at < 0 {
				c.leaveOut("%s: %s has no %s %s", where, patched, object.kind(), object.name())
				continue
			}
			out = append(out, oneCase{[]manifest{object}, []string{"mutated: " + c.reference(expected[at], expected)}, ""})
		}
	}
	return out
}

// unchanged returns an expectation that labels and annotations are the labels and annotations of the object.
func unchanged(o manifest) string {
	metadata, _ := o.fields["metadata"].(map[string]any)
	var fields []string
	for _, name := range []string{"annotations", "labels"} {
		if values, ok := metadata[name].(map[string]any); ok {
			fields = append(fields, name+": {$exact: "+flow(values)+"}")
		} else {
			fields = append(fields, name+": {$absent: true}")
		}
	}
	return "{metadata: {" + strings.Join(fields, ", ") + "}}"
}

// sortedKeys returns the keys of a map, sorted.
func sortedKeys[T any](values map[string]T) []string { return slices.Sorted(maps.Keys(values)) }
