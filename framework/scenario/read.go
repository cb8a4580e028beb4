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
	// passedOver says why the file is passed over, or is empty.
	passedOver string
	problems   []document.Problem
}

// reader reads one file.
type reader struct {
	options LoadOptions
	format  *fileFormat
	from    *document.File
}

// read reads, decodes and checks the file. What is wrong with the YAML hides what is wrong in its documents.
func (r reader) read() loaded {
	var documents []*document.Node
	content, problems := r.from.Read()
	if len(problems) == 0 {
		documents, problems = document.Parse(r.from.Name, content)
	}
	if why := foreign(r.from, content, documents); content != nil && why != "" {
		return loaded{passedOver: why}
	}
	if len(documents) == 0 && len(problems) == 0 {
		problems = []document.Problem{{
			At:      document.At(r.from.Name, 1, 1),
			Message: "the file is empty; expected a Scenario", Hint: "write one (admissiontest schema prints its JSON Schema) or remove the file",
		}}
	}
	if len(problems) > 0 {
		return loaded{problems: limit(problems)}
	}
	var result loaded
	for _, root := range documents {
		d := &decoder{&document.Decoder{Shorts: r.format.shorts, Lists: lists()}, r.format, r.from}
		switch kind := root.Text("kind"); {
		case kind == kindUncovered && root.Text("apiVersion") == APIVersion:
		case root.Kind != document.KindMapping:
			d.Fail(root, fmt.Sprintf("the document is %s; expected a Scenario", root.Describe()), "begin with apiVersion: "+APIVersion)
		case kind == KindPolicyTest:
			result.scenarios = append(result.scenarios, d.policyTest(root, r.options)...)
		default:
			result.scenarios = append(result.scenarios, d.scenario(root, r.options)...)
		}
		result.problems = append(result.problems, d.Problems...)
	}
	for i := range result.scenarios {
		result.scenarios[i].File, result.scenarios[i].Area = r.from.Name, r.from.Area
	}
	result.problems = limit(result.problems)
	return result
}

// decoder decodes and checks one document.
type decoder struct {
	*document.Decoder
	format *fileFormat
	from   *document.File
}

// isFormat reports whether a document has the format that the schema describes.
func (d *decoder) isFormat(root *document.Node) bool {
	d.Problems = append(d.Problems, d.format.schema.Check(root)...)
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

// foreign returns why a file that was found in a folder is not one of scenarios, or "" if it is meant
// to be one. Documents are those that could be read.
func foreign(f *document.File, content []byte, documents []*document.Node) string {
	if !f.InFolder || ours.Match(content) {
		return ""
	}
	why := "not a Scenario"
	for i, root := range documents {
		apiVersion, kind := root.Text("apiVersion"), root.Text("kind")
		if strings.HasPrefix(apiVersion, "admissiontest") || strings.EqualFold(kind, Kind) || kind == "" && root.Get("spec").Has("when") {
			return ""
		}
		if i == 0 && kind != "" {
			why = fmt.Sprintf("a %s is not a Scenario", kind)
		}
	}
	return why
}
