package execution

import (
	"fmt"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/object"
)

// manifest is a manifest of a scenario.
type manifest struct {
	// path is its field path in the spec: "given[1]".
	path   string
	object map[string]any
}

// given reports whether the scenario is given the manifest. Otherwise, a step writes it.
func (m manifest) given() bool { return strings.HasPrefix(m.path, "given[") }

// manifests returns what the scenario is given, and what its steps install or write. Placeholders of results that are
// not known are not replaced.
func (c *Case) manifests() []manifest {
	var all []manifest
	for i, given := range c.Given {
		all = append(all, manifest{fmt.Sprintf("given[%d]", i), given})
	}
	_ = EachStep(c.Scenario.Spec, func(where string, raw scenario.Step) error { // it returns no error
		step, err := scenario.Replace(raw, c.lookup)
		if err != nil {
			step = raw
		}
		for i, installed := range step.Install {
			all = append(all, manifest{fmt.Sprintf("%s.install[%d]", where, i), installed})
		}
		for name, written := range map[string]map[string]any{"create": step.Create, "update": step.Update, "apply": step.Apply} {
			if written != nil {
				all = append(all, manifest{where + "." + name, written})
			}
		}
		return nil
	})
	return all
}

// Own returns the manifests of the webhooks and policies that the scenario gives, that its steps install or
// write, and that the run installed for all scenarios.
func (c *Case) Own() []map[string]any {
	var all []map[string]any
	for _, m := range c.manifests() {
		all = append(all, m.object)
	}
	var own []map[string]any
	for _, one := range append(all, c.project.Objects()...) {
		if object.IsAdmission(one) {
			own = append(own, one)
		}
	}
	return own
}

// groups returns the groups of the CustomResourceDefinitions and APIServices that the scenario is given, and of
// those that its steps write.
func (c *Case) groups() (given, written []string) {
	for _, m := range c.manifests() {
		spec, _ := m.object["spec"].(map[string]any)
		group, ok := spec["group"].(string)
		switch defines := m.object["kind"] == "CustomResourceDefinition" || m.object["kind"] == "APIService"; {
		case !ok || !defines:
		case m.given():
			given = append(given, group)
		default:
			written = append(written, group)
		}
	}
	return given, written
}
