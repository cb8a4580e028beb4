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

// read reads, decodes and checks the file.
func (r reader) read() loaded {
	content, problem := r.from.Read()
	if problem != nil {
		if why := foreign(r.from, content, nil); content != nil && why != "" {
			return loaded{passedOver: why}
		}
		return loaded{problems: []document.Problem{*problem}}
	}
	documents, problems := document.Parse(r.from.Name, content)
	if len(documents) == 0 && len(problems) == 0 {
		problems = []document.Problem{{
			At:      document.At(r.from.Name, 1, 1),
			Message: "the file is empty; expected a Scenario", Hint: "write one (admissiontest schema prints its JSON Schema) or remove the file",
		}}
	}
	if why := foreign(r.from, content, documents); why != "" {
		return loaded{passedOver: why}
	}
	result := loaded{problems: problems}
	for _, root := range documents {
		if root.Text("kind") == kindUncovered && root.Text("apiVersion") == APIVersion {
			continue
		}
		var found []Scenario
		if root.Text("kind") == KindPolicyTest {
			found, problems = r.policyTest(root)
		} else {
			found, problems = r.scenario(root)
		}
		result.scenarios, result.problems = append(result.scenarios, found...), append(result.problems, problems...)
	}
	for i := range result.scenarios {
		result.scenarios[i].File, result.scenarios[i].Area = r.from.Name, r.from.Area
	}
	result.problems = limit(result.problems)
	return result
}

// scenario returns the scenario of a document. With problems, it contains what could be decoded.
func (r reader) scenario(root *document.Node) ([]Scenario, []document.Problem) {
	if root.Kind != document.KindMapping {
		return nil, []document.Problem{{
			At:      root,
			Message: fmt.Sprintf("the document is %s; expected a Scenario", root.Describe()),
			Hint:    "begin with apiVersion: " + APIVersion,
		}}
	}
	d := r.decoder()
	spec := root.Get("spec")
	d.stepFiles(spec)
	var one Scenario
	d.Decode(root, r.format.schema, &one)
	files := d.givenFiles(spec)
	one.origin = &origin{spec: spec, given: slices.Concat(files, spec.List("given"))}
	d.checkScenario(&one, root, r.options)
	var given []map[string]any
	for _, manifest := range files {
		given = append(given, manifest.Mapping())
	}
	one.Spec.Given = append(given, one.Spec.Given...)
	one.Line, one.Column = root.Line, root.Column
	if name := root.Get("metadata").Get("name"); name != nil {
		one.Line, one.Column = name.Line, name.Column
	}
	for _, step := range spec.List("when") {
		one.Lines = append(one.Lines, step.Line)
	}
	return []Scenario{one}, d.Problems
}

// decoder decodes and checks one document.
type decoder struct {
	*document.Decoder
	format *fileFormat
	from   *document.File
}

func (r reader) decoder() *decoder {
	return &decoder{&document.Decoder{Shorts: r.format.shorts, Lists: lists()}, r.format, r.from}
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
