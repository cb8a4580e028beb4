package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/admissiontest/admissiontest/framework/scenario/internal/document"
)

// kindUncovered is the kind of a list of behaviours without a scenario. Load
// skips such documents.
const kindUncovered = "Uncovered"

// loaded is the result for one file.
type loaded struct {
	scenarios []Scenario
	problems  []document.Problem
	// foreign is true if the file is passed over.
	foreign bool
}

// read reads, decodes and checks a file. What is wrong with the YAML hides what is wrong in its documents.
func (o LoadOptions) read(file *document.File, schema *document.Schema) loaded {
	var documents []*document.Node
	content, problems := file.Read()
	if len(problems) == 0 {
		documents, problems = document.Parse(file.Name, content)
	}
	if isForeign(file, content, documents) {
		return loaded{foreign: true}
	}
	if len(documents) == 0 && len(problems) == 0 {
		problems = []document.Problem{{
			At:      document.At(file.Name, 1, 1),
			Message: "the file is empty; expected a Scenario", Hint: "write one (admissiontest schema prints its JSON Schema) or remove the file",
		}}
	}
	result := loaded{problems: problems}
	if len(problems) > 0 {
		return result
	}
	for _, root := range documents {
		d := &decoder{&document.Decoder{Shorts: shorts(), Lists: lists()}, schema, file}
		switch kind := root.Text("kind"); {
		case kind == kindUncovered && root.Text("apiVersion") == APIVersion:
		case root.Kind != document.KindMapping:
			d.Fail(root, fmt.Sprintf("the document is %s; expected a Scenario", root.Describe()), "begin with apiVersion: "+APIVersion)
		case kind == KindPolicyTest:
			result.scenarios = append(result.scenarios, d.policyTest(root, o)...)
		default:
			result.scenarios = append(result.scenarios, d.scenario(root, o)...)
		}
		result.problems = append(result.problems, d.Problems...)
	}
	for i := range result.scenarios {
		result.scenarios[i].File, result.scenarios[i].Area = file.Name, file.Area
	}
	return result
}

// decoder decodes and checks one document.
type decoder struct {
	*document.Decoder
	schema *document.Schema
	from   *document.File
}

// isFormat reports whether a document has the format that the schema describes.
func (d *decoder) isFormat(root *document.Node) bool {
	problems, kind := d.schema.Check(root), root.Get("kind")
	if at := slices.IndexFunc(problems, func(p document.Problem) bool { return p.At == kind }); kind != nil && at >= 0 {
		problems = problems[at : at+1] // the fields of another kind are others
	}
	d.Problems = append(d.Problems, problems...)
	return len(d.Problems) == 0
}

// scenario returns the scenario of a document, or none with problems. The files that it names are read, and the rest is
// checked, if the format is right.
func (d *decoder) scenario(root *document.Node, options LoadOptions) []Scenario {
	if !d.isFormat(root) {
		return nil
	}
	spec, name := root.Get("spec"), root.Get("metadata").Get("name")
	d.stepFiles(spec.Get("when"), "spec.when")
	files := d.givenFiles(spec)
	if len(d.Problems) > 0 {
		return nil
	}
	one := Scenario{Line: name.Line, Column: name.Column, origin: &origin{spec: spec, given: slices.Concat(files, spec.List("given"))}}
	d.Decode(root, &one)
	d.checkScenario(&one, root, options)
	var given []map[string]any
	for _, manifest := range files {
		given = append(given, manifest.Mapping())
	}
	one.Spec.Given = append(given, one.Spec.Given...)
	for _, step := range spec.List("when") {
		one.Lines = append(one.Lines, step.Line)
	}
	return []Scenario{one}
}

// ours matches the line of a file that says that it has a scenario, or another document of this
// package.
var ours = regexp.MustCompile(`(?m)^[\s{]*"?(apiVersion"?:\s*"?admissiontest|kind"?:\s*"?(Scenario|PolicyTest)\b)`)

// isForeign reports whether a file that was found in a folder is not meant to be one of scenarios. Documents are those
// that could be read.
func isForeign(f *document.File, content []byte, documents []*document.Node) bool {
	return f.InFolder && content != nil && !ours.Match(content) && !slices.ContainsFunc(documents, func(root *document.Node) bool {
		kind := root.Text("kind")
		return strings.EqualFold(kind, Kind) || kind == "" && root.Get("spec").Has("when")
	})
}
