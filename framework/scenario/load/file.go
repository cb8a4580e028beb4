package load

import (
	"fmt"
	"reflect"

	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/framework/scenario/internal/grammar"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/check"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/decode"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/files"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/manifests"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/policytest"
	"github.com/admissiontest/admissiontest/framework/scenario/load/internal/strictyaml"
)

// kindUncovered is the kind of a list of behaviours without a scenario. The loader
// skips such documents.
const kindUncovered = "Uncovered"

// loaded is the result for one file.
type loaded struct {
	scenarios []scenario.Scenario
	// passedOver says why the file is passed over, or is empty.
	passedOver string
	errors     []*scenario.Error
}

// file reads, decodes and checks one file.
func (o Options) file(f *files.File, structs grammar.Structs) loaded {
	content, problem := f.Read()
	if problem != nil {
		if beginning, ok := f.Beginning(); ok {
			if why := foreign(f, beginning, nil); why != "" {
				return loaded{passedOver: why}
			}
		}
		return loaded{errors: []*scenario.Error{problem}}
	}
	documents, problems := parse(f.Name, content)
	if why := foreign(f, content, documents); why != "" {
		return loaded{passedOver: why}
	}
	if problem := decode.TooMany(f.Name, documents); problem != nil {
		return loaded{errors: []*scenario.Error{problem}}
	}
	result := loaded{errors: problems}
	for _, root := range documents {
		if root.Text("kind") == kindUncovered && root.Text("apiVersion") == scenario.APIVersion {
			continue
		}
		if root.Text("kind") == scenario.KindPolicyTest {
			tests, problems := policytest.Scenarios(f, root, structs)
			result.errors = append(result.errors, problems...)
			d := &decode.Decoder{File: f.Name, Structs: structs}
			check.Server(d, root.Get("server"), o.AllowServerFlags)
			result.errors = append(result.errors, d.Errors...)
			result.scenarios = append(result.scenarios, tests...)
			continue
		}
		one, problems := o.document(f, root, structs)
		result.errors = append(result.errors, problems...)
		result.scenarios = append(result.scenarios, one)
	}
	for i := range result.scenarios {
		result.scenarios[i].File, result.scenarios[i].Area = f.Name, f.Area
	}
	result.errors = decode.Limit(result.errors)
	return result
}

// parse returns the documents of a file, without empty ones. If a document is
// malformed, it returns those before it and the error.
func parse(name string, content []byte) ([]*strictyaml.Node, []*scenario.Error) {
	documents, problems := decode.Documents(name, content)
	if len(documents) == 0 && len(problems) == 0 {
		problems = []*scenario.Error{{
			File: name, Line: 1, Column: 1,
			Message: "the file is empty; expected a Scenario", Hint: "write one (admissiontest schema prints its JSON Schema) or remove the file",
		}}
	}
	return documents, problems
}

// document returns the scenario of a document. With errors, it contains what
// could be decoded.
func (o Options) document(from *files.File, root *strictyaml.Node, structs grammar.Structs) (scenario.Scenario, []*scenario.Error) {
	var one scenario.Scenario
	if root.Kind != strictyaml.KindMapping {
		return one, []*scenario.Error{{
			File: from.Name, Line: root.Line, Column: root.Column,
			Message: fmt.Sprintf("the document is %s; expected a Scenario", root.Describe()),
			Hint:    "begin with apiVersion: " + scenario.APIVersion,
		}}
	}
	d := &decode.Decoder{File: from.Name, Structs: structs}
	spec := root.Get("spec")
	origin := &manifests.Origin{Root: root, Steps: manifests.InSteps(d, from, spec)}
	d.Struct(root, reflect.ValueOf(&one).Elem(), nil)
	origin.Given = manifests.Given(d, from, spec)
	check.Scenario(d, origin, check.Options{Installed: check.Installed{Names: o.Installed, Any: o.AnyInstalled}, ServerFlags: o.AllowServerFlags})
	var given []map[string]any
	for _, manifest := range origin.Given {
		given = append(given, manifest.Node.Mapping())
	}
	one.Spec.Given = append(given, one.Spec.Given...)
	one.Origin = origin
	one.Line, one.Column = root.Line, root.Column
	if name := root.Get("metadata").Get("name"); name != nil {
		one.Line, one.Column = name.Line, name.Column
	}
	for _, step := range spec.List("when") {
		one.Lines = append(one.Lines, step.Line)
	}
	return one, d.Errors
}
