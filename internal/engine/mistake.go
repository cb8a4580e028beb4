package engine

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/framework/scenario"
	"github.com/admissiontest/admissiontest/internal/fields"
	"github.com/admissiontest/admissiontest/internal/suggest"
)

// mistakeError is what an API server found wrong in the manifests of a scenario, with the
// positions in its files.
type mistakeError struct {
	problems []*scenario.Error
	// cause is the error of the request, or nil.
	cause error
}

// Error returns a line for each problem.
func (m *mistakeError) Error() string {
	lines := make([]string, len(m.problems))
	for i, problem := range m.problems {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the error of the request.
func (m *mistakeError) Unwrap() error { return m.cause }

// isMistake reports whether the cause of an error is in the files of the scenario.
func isMistake(err error) bool {
	var mistake *mistakeError
	return errors.As(err, &mistake)
}

// A strict API server names the fields that a kind does not have, and those that are there twice
// (k8s.io/apimachinery/pkg/runtime/error.go, sigs.k8s.io/json). Without a fieldValidation it sends
// the same texts as warnings.
var fieldProblem = regexp.MustCompile(`(unknown|duplicate) field "([^"]+)"`)

const strictPrefix = "strict decoding error: "

// manifestErrors writes errors about one manifest.
type manifestErrors struct {
	manifest map[string]any
	// in names the manifest: "given[1] ConfigMap a".
	in string
	// at returns an error about a field, with its position.
	at func(field, message, hint string) *scenario.Error
	// private is true if no error shows a value of the manifest.
	private bool
}

// errorsOf returns the manifestErrors of a manifest of the scenario. Path is its place in the spec:
// "given[1]".
func (c *scenarioCase) errorsOf(path string, manifest map[string]any) manifestErrors {
	return manifestErrors{
		manifest: manifest, in: c.describeAt(path, manifest),
		at: func(field, message, hint string) *scenario.Error {
			return c.scenario.ErrorAt(path, field, message, hint)
		},
		// What decides about requests is no secret, and its errors are about its values.
		private: c.scenario.FromFile(path) && !isAdmission(manifest),
	}
}

// asMistake returns a mistakeError if an API server refused a manifest because it is not valid, or
// if isolation makes it meaningless, and any other error as it is. Path is the place of the
// manifest in the spec: "given[1]".
func (c *scenarioCase) asMistake(err error, path string, manifest map[string]any) error {
	if errors.Is(err, framework.ErrNarrowed) {
		return &mistakeError{[]*scenario.Error{c.scenario.ErrorAt(path, "", fmt.Sprintf("%s: %v", path, err), "")}, err}
	}
	return c.errorsOf(path, manifest).asMistake(err)
}

func (m manifestErrors) asMistake(err error) error {
	var refusal apierrors.APIStatus
	if err == nil || !errors.As(err, &refusal) {
		return err
	}
	status := refusal.Status()
	if byAdmission(status.Message) || status.Code != http.StatusBadRequest && status.Code != http.StatusUnprocessableEntity {
		return err
	}
	problems := m.fieldProblems(status.Message)
	if len(problems) == 0 && status.Details != nil {
		for _, cause := range status.Details.Causes {
			message := cause.Message
			if m.private {
				message = withoutValues(message)
			}
			problems = append(problems, m.at(cause.Field, fmt.Sprintf("%s: %s: %s", m.in, cause.Field, message), ""))
		}
	}
	if len(problems) == 0 {
		message := status.Message
		if m.private {
			message = string(status.Reason) + notShown
		}
		problems = append(problems, m.at("", fmt.Sprintf("%s: the API server refuses it: %s", m.in, message), ""))
	}
	if m.private {
		err = errors.New("the API server refuses it" + notShown)
	}
	return &mistakeError{problems, err}
}

// notShown says why a message of an API server is not complete.
const notShown = " (its message is not shown: it can have values of the file)"

// withoutValues returns the kind of problem in a message about a field: "Invalid value", for instance.
// See k8s.io/apimachinery/pkg/util/validation/field.
func withoutValues(message string) string {
	kind, _, _ := strings.Cut(message, ":")
	switch kind {
	case "Required value", "Invalid value", "Unsupported value", "Duplicate value", "Too long", "Too many", "Too few", "Not found", "Forbidden":
		return kind + notShown
	default:
		return "not valid" + notShown
	}
}

// describeAt names a manifest at a place in the spec: "given[1] ConfigMap a". A case of a PolicyTest
// has no spec in its file.
func (c *scenarioCase) describeAt(path string, manifest map[string]any) string {
	if c.scenario.Installation != "" {
		return describe(manifest)
	}
	return path + " " + describe(manifest)
}

// byAdmission reports whether a policy or webhook refused, whatever its code.
func byAdmission(message string) bool {
	return strings.Contains(message, "ValidatingAdmissionPolicy '") || strings.Contains(message, "admission webhook ")
}

// fieldProblems returns the fields that a message of an API server names as unknown or duplicate.
func (m manifestErrors) fieldProblems(message string) []*scenario.Error {
	_, list, ok := strings.Cut(message, strictPrefix)
	if !ok {
		return nil
	}
	var problems []*scenario.Error
	for _, found := range fieldProblem.FindAllStringSubmatch(list, -1) {
		problems = append(problems, m.fieldError(found[1], found[2]))
	}
	return problems
}

// fieldError describes an unknown or duplicate field of the manifest.
func (m manifestErrors) fieldError(what, field string) *scenario.Error {
	apiVersion, _ := m.manifest["apiVersion"].(string)
	kind, _ := m.manifest["kind"].(string)
	name := field[strings.LastIndex(field, ".")+1:]
	hint := "check its name and indentation"
	if what == "duplicate" {
		hint = "remove one of them"
	} else if near := suggest.DidYouMean(name, fields.Names(apiVersion, kind, field)); near != "" {
		hint = strings.TrimPrefix(near, "; ")
	}
	return m.at(field, fmt.Sprintf("%s: %s field %q; expected a field of the API server's %s %s", m.in, what, field, apiVersion, kind), hint)
}

// misspelt returns a mistakeError if a step sent fields that the API server does not know. A step
// that says by options.fieldValidation what is to happen, expects warnings or has a raw
// body is about such fields, and has none that are a mistake.
func (c *scenarioCase) misspelt(step scenario.Step, result framework.Result) error {
	if _, set := step.Options[fieldValidation]; set || step.Body != nil || step.Then != nil && step.Then.Warnings != nil {
		return nil
	}
	path, manifest := c.sent(step)
	if manifest == nil {
		return nil
	}
	var problems []*scenario.Error
	for _, warning := range result.Warnings {
		if found := fieldProblem.FindStringSubmatch(warning); found != nil && found[0] == warning {
			problems = append(problems, c.errorsOf(path, manifest).fieldError(found[1], found[2]))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	for _, problem := range problems {
		if c.scenario.Installation != "" {
			break // a case of a PolicyTest has no options
		}
		problem.Hint += "; if the scenario is about such fields, write options: {fieldValidation: Warn}"
	}
	return &mistakeError{problems: problems}
}

// fieldValidation is the option of a request by which an API server refuses unknown fields.
// See https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation
const fieldValidation = "fieldValidation"

// sent returns the manifest that a step sends and its place in the spec, or nil.
func (c *scenarioCase) sent(step scenario.Step) (string, map[string]any) {
	switch {
	case step.Create != nil:
		return c.place + ".create", step.Create
	case step.Update != nil:
		return c.place + ".update", step.Update
	case step.Apply != nil:
		return c.place + ".apply", step.Apply
	case step.Patch != nil:
		patch := map[string]any{"apiVersion": step.Patch.APIVersion, "kind": step.Patch.Kind, "metadata": map[string]any{"name": step.Patch.Name}}
		for name, set := range map[string]bool{".json": step.Patch.JSON != nil, ".merge": step.Patch.Merge != nil, ".strategic": step.Patch.Strategic != nil} {
			if set {
				return c.place + ".patch" + name, patch
			}
		}
		return c.place + ".patch", patch
	default:
		return "", nil
	}
}

// at returns the case for a step at a place in the spec: "when[1]".
func (c *scenarioCase) at(place string) *scenarioCase {
	placed := *c
	placed.place = place
	return &placed
}
